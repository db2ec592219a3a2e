/* SPDX-License-Identifier: Apache-2.0 */
/* The help of the commands that operate a store: see runner/cli/help.c for its forms. */
#include "runner/cli/operate-help.h"

const char help_of_start[] =
  "durakit start ID: stores the start of an instance; a runtime on the store runs it.\n"
  "\n"
  "  durakit start order-1 --name order --provider sqlite --set store=orders.db\n"
  "  durakit start order-1 --name order --input '{\"sum\": 12}' --provider sqlite --settings s\n"
  "  durakit start order-1 --name order --input @order.json --provider sqlite --settings s\n"
  "\n"
  "  --name NAME             the orchestration, as it is registered with the runtime; required\n"
  "  --version VERSION       of the orchestration, 1.2.3; else the newest that is registered\n"
  "  --input TEXT|@FILE|-    its input: the text itself, a file, or standard input\n"
  "  --create                makes the store if it is not there; else that is refused, so that\n"
  "                          no store is made in a place that nobody looks at\n";

const char help_of_status[] =
  "durakit status ID...: how instances stand, and what waits for them.\n"
  "\n"
  "  durakit status order-1 --provider sqlite --set store=orders.db\n"
  "  durakit status order-1 order-2 --json --provider sqlite --set store=orders.db\n"
  "\n"
  "An instance whose start is stored and was not taken yet is not started.  One that was\n"
  "cancelled is shown with when, by whom and why.\n";

const char help_of_wait[] =
  "durakit wait ID...: waits until instances are over.\n"
  "\n"
  "  durakit wait order-1 --provider sqlite --set store=orders.db\n"
  "  durakit wait order-1 order-2 --timeout 30s --provider sqlite --set store=orders.db\n"
  "\n"
  "  --timeout DURATION      for all of them together: 30 or 30s, 5m, 2h; else without end\n"
  "\n"
  "Exit: 0 all are completed; 1 one has failed, was cancelled, is not over in time or not there;\n"
  "2 usage, settings; 3 the plugin cannot be loaded, or does not offer what is needed; 4 the\n"
  "store failed, is not there or refuses; 5 interrupted, or nobody reads the output.\n";

const char help_of_history[] =
  "durakit history ID: what has happened to an instance, event by event.\n"
  "\n"
  "  durakit history order-1 --provider sqlite --set store=orders.db\n"
  "  durakit history order-1 --execution 3 --from 100 --limit 50 --provider sqlite --settings s\n"
  "\n"
  "A cancellation is shown with by whom and why; what was cancelled by it names its code.\n"
  "  --execution N           of this execution; else of the latest\n"
  "  --from EVENT            from the event of this number on\n"
  "  --limit N               so many events at most\n";

const char help_of_raise[] =
  "durakit raise ID EVENT: sends an event to an instance.\n"
  "\n"
  "  durakit raise order-1 paid --data '{\"sum\": 12}' --provider sqlite --set store=orders.db\n"
  "\n"
  "It is told whether the instance waits for the event now, as far as its history says.  An event\n"
  "that it does not wait for is kept until it does, but not when it continues as new.  Nothing is\n"
  "sent to an instance that has ended, or of which the store knows nothing.\n"
  "  --data TEXT|@FILE|-     what comes with it: the text itself, a file, or standard input\n";

const char help_of_enqueue[] =
  "durakit enqueue ID QUEUE: sends a message to a queue of an instance.\n"
  "\n"
  "  durakit enqueue account-1 bookings --data 12 --provider sqlite --set store=accounts.db\n"
  "\n"
  "For an orchestration that calls dk_dequeue; what calls dk_external waits for durakit raise.\n"
  "Messages are taken in the order in which they came, and go along when the instance continues\n"
  "as new.  Nothing is sent to an instance that has ended, or of which the store knows nothing.\n"
  "  --data TEXT|@FILE|-     what comes with it: the text itself, a file, or standard input\n";

const char help_of_cancel[] =
  "durakit cancel [ID...]: asks for the cancellation of instances.\n"
  "\n"
  "  durakit cancel order-1 --reason 'wrong customer' --provider sqlite --set store=orders.db\n"
  "  durakit cancel order-1 order-2 order-3 --wait 30s --provider sqlite --settings s\n"
  "  durakit cancel --name order --dry-run --provider sqlite --settings s\n"
  "  durakit cancel --name order --created-before 2h --expect 12 --provider sqlite --settings s\n"
  "  durakit cancel --ids-from list.txt --provider sqlite --settings s\n"
  "\n"
  "The request is stored; a runtime on the store takes it with the instance's next turn, which\n"
  "deletes the rows of its activities.  Children are cancelled by their parent.  The first\n"
  "request counts, so the same command may be given again, also after it was killed in the\n"
  "middle.\n"
  "\n"
  "  --ids-from FILE         ids, one a line; - is standard input\n"
  "  --reason TEXT           why: 1,024 bytes at most, for the history\n"
  "  --by WHO                who: 256 bytes at most (user:LOGIN@HOST)\n"
  "  --expect N              so many would be asked for, else nothing is done; 0 is none\n"
  "  --wait DURATION         then waits until they are over: 30 or 30s, 5m, 2h\n"
  "  --dry-run               tells what would be done; the store is opened read-only\n"
  "  --yes                   many at once, without being asked; needed for conditions where\n"
  "                          standard input is no terminal, unless --expect says how many\n"
  "\n"
  "Exit: 0 each is asked for, or is cancelled; 1 one is not there, is over otherwise, failed, or\n"
  "is not over in time, or there are not as many as expected; 2 usage, settings; 3 the plugin\n"
  "cannot be loaded, or does not offer what is needed; 4 the store failed, is not there or\n"
  "refuses; 5 interrupted, or nobody reads the output.\n";

const char help_of_instances[] =
  "durakit instances: lists instances in the order of their ids.\n"
  "\n"
  "  durakit instances --provider sqlite --set store=orders.db\n"
  "  durakit instances --status running,not_started --name order --provider sqlite --settings s\n"
  "  durakit instances --created-after 2026-11-01 --jsonl --provider sqlite --settings s\n"
  "  durakit instances --limit 100 --after order-99 --provider sqlite --settings s\n"
  "\n"
  "  --after ID              only ids greater than this one, bytewise\n"
  "  --limit N               so many at most; the last line tells how to go on\n";

const char help_of_delete[] =
  "durakit delete [ID...]: removes instances that are over, with their descendants.\n"
  "\n"
  "  durakit delete order-1 --provider sqlite --set store=orders.db\n"
  "  durakit delete --status completed --completed-before 30d --dry-run --provider sqlite "
  "--settings s\n"
  "  durakit delete --status completed --completed-before 30d --yes --provider sqlite "
  "--settings s\n"
  "\n"
  "Of instances that are named all are deleted, or none.  By conditions those are deleted that\n"
  "are over with all their descendants and have no parent; the rest stays.\n"
  "  --ids-from FILE         ids, one a line; - is standard input\n"
  "  --force                 also what is not over: whatever it still does counts no more\n"
  "  --dry-run               tells what would go; the store is opened read-only\n"
  "  --yes                   by conditions, without being asked\n";

const char help_of_prune[] =
  "durakit prune [ID]: removes old executions of instances that continue as new.\n"
  "\n"
  "  durakit prune account-7 --keep 10 --provider sqlite --set store=orders.db\n"
  "  durakit prune --name account --keep 10 --completed-before 30d --dry-run --provider sqlite "
  "--settings s\n"
  "\n"
  "What runs may be pruned, too: its current execution stays.\n"
  "  --keep N                the newest N executions stay; 1 if it is not given\n"
  "  --completed-before TIME  only executions that ended before\n"
  "  --dry-run               tells what would go; the store is opened read-only\n"
  "  --yes                   by conditions, without being asked\n";

const char help_of_stats[] =
  "durakit stats: counts what is in a store.\n"
  "\n"
  "  durakit stats --provider sqlite --set store=orders.db\n"
  "  durakit stats --prometheus --provider sqlite --set store=orders.db\n"
  "  durakit stats --metrics one.prom --metrics two.prom --provider sqlite --set store=orders.db\n"
  "\n"
  "  --prometheus            as Prometheus reads it: dk_instances{status=\"running\"} and so on\n"
  "  --metrics FILE          also what a runtime has counted and saved (dk_runtime_save_metrics);\n"
  "                          those of several files are added up\n";

const char help_of_choice[] =
  "\n"
  "Which instances; all has to hold that is given:\n"
  "  --name NAME             of orchestrations of this name\n"
  "  --version VERSION       of this version\n"
  "  --status STATUS         not_started, running, completed, failed or cancelled; several with\n"
  "                          commas between them\n"
  "  --parent ID             children of this one\n"
  "  --roots                 those without a parent\n"
  "  --created-after TIME    made at this time or later\n"
  "  --created-before TIME   made before\n"
  "  --completed-after TIME  over since this time or later\n"
  "  --completed-before TIME  over before\n"
  "  --all                   all that are there, without another condition\n"
  "A TIME is 2026-11-01T08:00:00Z, 2026-11-01, or how long ago: 90s, 30m, 2h, 7d.\n";

const char help_of_operating[] =
  "\n"
  "The store:\n"
  "  --provider PLUGIN       the name of an installed plugin, or a file; it is loaded into this\n"
  "                          process, as by any program that uses it; if it is not given,\n"
  "                          $DURAKIT_PROVIDER with the settings in the file $DURAKIT_SETTINGS\n"
  "  --patience DURATION     with each answer of the store (30s): then the command ends; it says\n"
  "                          what it waits for after 3 s\n"
  "\n"
  "Output:\n"
  "  --json                  one object; docs/commands.md tells its members\n"
  "  --jsonl                 one object for each on a line, and one for the whole at the end\n";

const char help_of_exits[] =
  "\n"
  "Exit: 0 done; 1 not all as it was wanted: one is not there, or is refused; 2 usage, settings;\n"
  "3 the plugin cannot be loaded, or does not offer what is needed; 4 the store failed, is not\n"
  "there or refuses; 5 interrupted, or nobody reads the output.\n";
