/* SPDX-License-Identifier: Apache-2.0 */
/* The help of the commands that operate a store: see runner/cli/help.c for its forms. */
#include "runner/cli/operate-help.h"

const char help_of_start[] =
  "durakit start ID: stores the start of an instance; a runtime on the store then runs it.\n"
  "\n"
  "  durakit start order-1 --name order --provider sqlite --set store=orders.db\n"
  "  durakit start order-1 --name order --input '{\"sum\": 12}' --provider sqlite --settings s\n"
  "  durakit start order-1 --name order --input @order.json --provider sqlite --settings s\n"
  "\n"
  "  --name NAME             the orchestration, as it is registered with the runtime; required\n"
  "  --version VERSION       its version, 1.2.3; default: the newest that is registered\n"
  "  --input TEXT|@FILE|-    its input: the text itself, a file, or standard input\n"
  "  --create                makes the store if it does not exist; without this option a missing\n"
  "                          store is an error, so that a mistyped path makes no store\n";

const char help_of_status[] =
  "durakit status ID...: shows the status of instances, and the messages that wait for them.\n"
  "\n"
  "  durakit status order-1 --provider sqlite --set store=orders.db\n"
  "  durakit status order-1 order-2 --json --provider sqlite --set store=orders.db\n"
  "\n"
  "An instance is not started as long as its start is stored and no runtime has taken it.  A\n"
  "cancelled instance is shown with when, by whom and why it was cancelled.\n";

const char help_of_wait[] =
  "durakit wait ID...: waits until instances have ended.\n"
  "\n"
  "  durakit wait order-1 --provider sqlite --set store=orders.db\n"
  "  durakit wait order-1 order-2 --timeout 30s --provider sqlite --set store=orders.db\n"
  "\n"
  "  --timeout DURATION      the limit for all of them together: 30 or 30s, 5m, 2h; default: none\n"
  "\n"
  "Exit: 0 all have completed; 1 one has failed, was cancelled, has not ended in time or does\n"
  "not exist; 2 wrong usage or settings; 3 the plugin cannot be loaded, or does not offer what\n"
  "is needed; 4 the store failed, does not exist or refuses access; 5 interrupted, or the reader\n"
  "has closed the output.\n";

const char help_of_history[] =
  "durakit history ID: lists what has happened to an instance, event by event.\n"
  "\n"
  "  durakit history order-1 --provider sqlite --set store=orders.db\n"
  "  durakit history order-1 --execution 3 --from 100 --limit 50 --provider sqlite --settings s\n"
  "\n"
  "A cancellation is shown with who asked for it and why.  A call that it cancelled is shown\n"
  "with the code of the reason.\n"
  "  --execution N           lists the events of execution N; default: the latest\n"
  "  --from EVENT            begins with the event of this number\n"
  "  --limit N               lists at most N events\n";

const char help_of_raise[] =
  "durakit raise ID EVENT: sends an event to an instance.\n"
  "\n"
  "  durakit raise order-1 paid --data '{\"sum\": 12}' --provider sqlite --set store=orders.db\n"
  "\n"
  "The command reports whether the instance waits for the event now, according to its history.\n"
  "If it does not, the event is kept until it does, but is dropped when it continues as new.\n"
  "Nothing is sent to an instance that has ended, or that the store does not know.\n"
  "  --data TEXT|@FILE|-     the data of the event: the text itself, a file, or standard input\n";

const char help_of_enqueue[] =
  "durakit enqueue ID QUEUE: sends a message to a queue of an instance.\n"
  "\n"
  "  durakit enqueue account-1 bookings --data 12 --provider sqlite --set store=accounts.db\n"
  "\n"
  "Orchestrations receive these messages with dk_dequeue; for dk_external use durakit raise.\n"
  "Messages are taken in the order in which they arrived, and are kept when the instance\n"
  "continues as new.  Nothing is sent to an instance that has ended, or that the store does not\n"
  "know.\n"
  "  --data TEXT|@FILE|-     the data of the message: the text itself, a file, or standard input\n";

const char help_of_cancel[] =
  "durakit cancel [ID...]: requests the cancellation of instances.\n"
  "\n"
  "  durakit cancel order-1 --reason 'wrong customer' --provider sqlite --set store=orders.db\n"
  "  durakit cancel order-1 order-2 order-3 --wait 30s --provider sqlite --settings s\n"
  "  durakit cancel --name order --dry-run --provider sqlite --settings s\n"
  "  durakit cancel --name order --created-before 2h --expect 12 --provider sqlite --settings s\n"
  "  durakit cancel --ids-from list.txt --provider sqlite --settings s\n"
  "\n"
  "The command stores a request.  A runtime takes it with the next turn of the instance, and the\n"
  "commit of that turn deletes the rows of its activities.  A parent cancels its children.  The\n"
  "first request counts, so you can repeat the same command, even after it was killed.\n"
  "\n"
  "  --ids-from FILE         reads ids from a file, one a line; - is standard input\n"
  "  --reason TEXT           why, for the history: at most 1,024 bytes\n"
  "  --by NAME               the name of the caller: at most 256 bytes; default: user:LOGIN@HOST\n"
  "  --expect N              does nothing unless exactly N cancellations would be requested;\n"
  "                          N may be 0\n"
  "  --wait DURATION         then waits at most this long for their end: 30 or 30s, 5m, 2h\n"
  "  --dry-run               shows what would be done; the store is opened read-only\n"
  "  --yes                   does not ask before cancelling by conditions; needed if standard\n"
  "                          input is no terminal and --expect is not given\n"
  "\n"
  "Exit: 0 each is requested, or is cancelled already; 1 one does not exist, has ended\n"
  "otherwise, failed or has not ended in time, or the number is not the expected one; 2 wrong\n"
  "usage or settings; 3 the plugin cannot be loaded, or does not offer what is needed; 4 the\n"
  "store failed, does not exist or refuses access; 5 interrupted, or the reader has closed the\n"
  "output.\n";

const char help_of_instances[] =
  "durakit instances: lists instances in the order of their ids.\n"
  "\n"
  "  durakit instances --provider sqlite --set store=orders.db\n"
  "  durakit instances --status running,not_started --name order --provider sqlite --settings s\n"
  "  durakit instances --created-after 2026-11-01 --jsonl --provider sqlite --settings s\n"
  "  durakit instances --limit 100 --after order-99 --provider sqlite --settings s\n"
  "\n"
  "  --after ID              lists only ids after this one, in the order of their bytes\n"
  "  --limit N               lists at most N; the last line shows how to continue\n";

const char help_of_delete[] =
  "durakit delete [ID...]: deletes instances that have ended, with their descendants.\n"
  "\n"
  "  durakit delete order-1 --provider sqlite --set store=orders.db\n"
  "  durakit delete --status completed --completed-before 30d --dry-run --provider sqlite "
  "--settings s\n"
  "  durakit delete --status completed --completed-before 30d --yes --provider sqlite "
  "--settings s\n"
  "\n"
  "Of several ids, either all are deleted or none.  With conditions, the command deletes selected\n"
  "instances that have ended with all their descendants and have no parent, and no others.\n"
  "  --ids-from FILE         reads ids from a file, one a line; - is standard input\n"
  "  --force                 deletes instances that have not ended, too: their code continues,\n"
  "                          but its results have no effect\n"
  "  --dry-run               shows what would be deleted; the store is opened read-only\n"
  "  --yes                   does not ask before deleting by conditions\n";

const char help_of_prune[] =
  "durakit prune [ID]: removes old executions of instances that continue as new.\n"
  "\n"
  "  durakit prune account-7 --keep 10 --provider sqlite --set store=orders.db\n"
  "  durakit prune --name account --keep 10 --completed-before 30d --dry-run --provider sqlite "
  "--settings s\n"
  "\n"
  "A running instance can be pruned, too: its current execution stays.\n"
  "  --keep N                keeps the newest N executions; default: 1\n"
  "  --completed-before TIME  removes only executions that ended before this time\n"
  "  --dry-run               shows what would be removed; the store is opened read-only\n"
  "  --yes                   does not ask before pruning by conditions\n";

const char help_of_stats[] =
  "durakit stats: counts what is in a store.\n"
  "\n"
  "  durakit stats --provider sqlite --set store=orders.db\n"
  "  durakit stats --prometheus --provider sqlite --set store=orders.db\n"
  "  durakit stats --metrics one.prom --metrics two.prom --provider sqlite --set store=orders.db\n"
  "\n"
  "  --prometheus            prints what Prometheus reads: dk_instances{status=\"running\"}, ...\n"
  "  --metrics FILE          also prints the counts that a runtime has saved\n"
  "                          (dk_runtime_save_metrics); those of several files are added up\n";

const char help_of_choice[] =
  "\n"
  "Which instances (all must match):\n"
  "  --name NAME             instances of the orchestration of this name\n"
  "  --version VERSION       instances of this version of it\n"
  "  --status STATUS         not_started, running, completed, failed or cancelled; or several,\n"
  "                          separated by commas\n"
  "  --parent ID             children of this instance\n"
  "  --roots                 instances without a parent\n"
  "  --created-after TIME    created at this time or later\n"
  "  --created-before TIME   created before this time\n"
  "  --completed-after TIME  ended at this time or later\n"
  "  --completed-before TIME  ended before this time\n"
  "  --all                   all instances; not with another condition\n"
  "A TIME is 2026-11-01T08:00:00Z, 2026-11-01, or how long ago: 90s, 30m, 2h, 7d.\n";

const char help_of_operating[] =
  "\n"
  "The store:\n"
  "  --provider PLUGIN       the name of an installed plugin, or a file; it is loaded into the\n"
  "                          process of the command; default: $DURAKIT_PROVIDER, with the\n"
  "                          settings in the file $DURAKIT_SETTINGS\n"
  "  --patience DURATION     the limit for each answer of the store (30s): then the command ends;\n"
  "                          after 3 s it reports what it waits for\n"
  "\n"
  "Output:\n"
  "  --json                  prints one object; docs/commands.md lists its members\n"
  "  --jsonl                 prints an object for each item on a line, and the rest as one object\n"
  "                          at the end\n";

const char help_of_exits[] =
  "\n"
  "Exit: 0 done; 1 not everything was done: an instance does not exist, or is refused; 2 wrong\n"
  "usage or settings; 3 the plugin cannot be loaded, or does not offer what is needed; 4 the\n"
  "store failed, does not exist or refuses access; 5 interrupted, or the reader has closed the\n"
  "output.\n";
