/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit clean`: removes what dead runs have left: folders and, with a plugin and its settings,
 * the stores that their journals name.  A live run holds a lock, and is left alone. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/grow.h"
#include "runner/cli/printer.h"
#include "runner/commands/commands.h"
#include "runner/report/out.h"
#include "runner/setup/run-origin.h"
#include "runner/setup/run-setup.h"
#include "runner/system/file.h"

/* After so many rounds that removed no store, the rest waits for another `durakit clean`. */
enum { MOST_FRUITLESS = 3 };

enum { MOST_JOURNAL = 64 << 20 };

struct cleaning {
  struct run *run;         /* NULL: no plugin was given */
  unsigned folders;        /* removed */
  unsigned cleaned;        /* runs whose stores were removed */
  unsigned kept, failed;   /* runs whose stores stay: no plugin was given, or it did not work */
  unsigned others;         /* the same: those of another plugin, or somewhere else */
  unsigned foreign;        /* folders with such a name that no run of this user has made */
};

/* What is left of one dead run. */
struct remnant {
  const char *path;
  char id[16];
  struct dead_run dead;
};

/* The stores that one dead run may have left, by suffix. */
struct suffixes {
  char (*items)[64];
  size_t n, room;
  size_t untried;          /* while they are removed: how many at the beginning were not tried */
  bool failed;             /* out of memory: some might be missing */
};

static void
add_suffix(struct suffixes *suffixes, const char *text)
{
  for (size_t i = 0; i < suffixes->n; i++) {
    if (strcmp(suffixes->items[i], text) == 0)
      return;
  }
  if (strlen(text) >= sizeof(*suffixes->items))
    return;
  void *grown = dk_grown(suffixes->items, suffixes->n, &suffixes->room, sizeof(*suffixes->items));
  suffixes->failed = suffixes->failed || !grown;
  if (!grown)
    return;
  suffixes->items = grown;
  memcpy(suffixes->items[suffixes->n++], text, strlen(text) + 1);
}

/* A check that was running: the stores of its passes, as the kit names them, and of a probe. */
static void
add_passes(struct suffixes *suffixes, const char *run_id, unsigned number)
{
  char text[64];

  snprintf(text, sizeof(text), "dk%s-%u-probe", run_id, number);
  add_suffix(suffixes, text);
  for (char letter = 'a'; letter <= 'z'; letter++) {
    snprintf(text, sizeof(text), "dk%s-%u-%c", run_id, number, letter);
    add_suffix(suffixes, text);
  }
}

/* The next line of the bytes, up to `size` of it; false: there is none. */
static bool
next_line(const struct dk_text *bytes, size_t *at, char *line, size_t size)
{
  const char *begin = dk_text_str(bytes) + *at;
  size_t left = bytes->length - *at;

  if (left == 0)
    return false;
  const char *end = memchr(begin, '\n', left);
  size_t length = end ? (size_t)(end - begin) : left;
  *at += end ? length + 1 : length;
  length = length < size ? length : size - 1;
  memcpy(line, begin, length);
  line[length] = '\0';
  return true;
}

/* A later line of the journal may record its end. */
static bool
was_ended(const struct dk_text *journal, size_t at, unsigned number)
{
  char line[128];
  bool ended = false;

  while (!ended && next_line(journal, &at, line, sizeof(line)))
    ended = line[0] == '-' && strtoul(line + 1, NULL, 10) == number;
  return ended;
}

static void
take_journal(struct suffixes *suffixes, const struct dk_text *journal, const char *run_id)
{
  char line[128];
  char prefix[32];
  size_t at = 0;

  snprintf(prefix, sizeof(prefix), "dk%s-", run_id);
  while (next_line(journal, &at, line, sizeof(line))) {
    unsigned number = (unsigned)strtoul(line + (line[0] ? 1 : 0), NULL, 10);
    if (line[0] == '+' && !was_ended(journal, at, number))
      add_passes(suffixes, run_id, number);
    else if (strncmp(line, prefix, strlen(prefix)) == 0)
      add_suffix(suffixes, line); /* only what that run made */
  }
}

/* A run that ended before it had a journal has made no store; 0, or a reason. */
static int
read_journal(struct suffixes *suffixes, const struct remnant *remnant)
{
  struct dk_text journal = DK_TEXT_EMPTY;
  int reason = file_read(remnant->dead.fd, "journal", MOST_JOURNAL, &journal) == 0 ? 0 : errno;

  if (reason == 0)
    take_journal(suffixes, &journal, remnant->id);
  dk_text_done(&journal);
  if (reason == ENOENT)
    return 0;
  return suffixes->failed ? ENOMEM : reason;
}

static void
take_found(void *context, const char *suffix)
{
  add_suffix(context, suffix);
}

/* Stores that are paths can be listed: finds those with a name of that run.  0, or a reason. */
static int
look_for_paths(struct suffixes *suffixes, const struct run *run, const char *run_id)
{
  if (!run->store_value || !run->store_value[0])
    return 0;
  if (folder_find_stores(run->store_value, run_id, take_found, suffixes) != 0)
    return errno;
  return suffixes->failed ? ENOMEM : 0;
}

/* Replaces the journal by the names that are left; if that fails, the next time tries all again. */
static void
write_journal(const struct suffixes *left, int folder)
{
  int fd = file_make(folder, "journal-t", 0600);
  FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

  for (size_t i = 0; file && i < left->n; i++)
    fprintf(file, "%s\n", left->items[i]);
  bool written = file && !ferror(file);
  if (file && fclose(file) == 0 && written)
    renameat(folder, "journal-t", folder, "journal");
  else if (fd >= 0 && !file)
    close(fd);
}

/* Takes out the stores that were removed, and moves those that could not be removed to the end, so
 * that they hold up no other, the next time either.  Returns how many were removed. */
static size_t
sort_out(struct suffixes *suffixes, const struct outcome *outcome)
{
  size_t n_tried = outcome->report->n_stores; /* in this order, from the first */
  char vain[KIT_MAX_STORES][64];
  size_t n_vain = 0;

  n_tried = n_tried < suffixes->untried ? n_tried : suffixes->untried;
  for (size_t i = 0; i < n_tried; i++) {
    if (!outcome_removed(outcome, suffixes->items[i]))
      memcpy(vain[n_vain++], suffixes->items[i], sizeof(vain[0]));
  }
  size_t rest = suffixes->n - n_tried;
  memmove(suffixes->items, suffixes->items + n_tried, rest * sizeof(vain[0]));
  memcpy(suffixes->items + rest, vain, n_vain * sizeof(vain[0]));
  suffixes->n = rest + n_vain;
  suffixes->untried -= n_tried;
  return n_tried - n_vain;
}

/* Names the store at which the process ended, if it did not return. */
static void
say_why(const struct run *run, const char *folder, const struct task *task,
        const struct outcome *outcome)
{
  const struct kit_report *report = outcome->report;
  char name[2048] = "loading the plugin";
  struct dk_text text = DK_TEXT_EMPTY;
  struct dk_text shown = DK_TEXT_EMPTY;

  if (report->n_stores > 0)
    kit_store_name(&task->job, report->stores[report->n_stores - 1], name, sizeof(name));
  if (outcome->verdict == VERDICT_TIMEOUT)
    dk_text_printf(&text, "%s did not return within %" PRId64 " ms; --timeout-scale gives it "
                          "more time", name, task->deadline_ms);
  else if (outcome_was_ended(outcome))
    dk_text_printf(&text, "%s: the process ended %s", name, outcome->ended);
  else
    dk_text_puts(&text, report->message);
  secrets_mask(&run->secrets, &shown, dk_text_str(&text), text.length);
  message_print("%s: stores could not be removed: %s", folder, dk_text_str(&shown));
  dk_text_done(&text);
  dk_text_done(&shown);
}

/* The next of them, as many as one process removes.  False: do not continue. */
static bool
remove_some(struct run *run, struct suffixes *suffixes, const struct remnant *remnant,
            unsigned *fruitless)
{
  struct task task = run_task(run, TASK_DESTROY);

  task.suffixes = (const char (*)[64])suffixes->items;
  task.n_suffixes = suffixes->untried < KIT_MAX_STORES ? suffixes->untried : KIT_MAX_STORES;
  struct outcome *outcome = engine_run(run->engine, &task);
  if (!outcome) {
    message_print("%s: stores could not be removed: no process could be started: %s", remnant->path,
                  engine_reason(run->engine));
    return false;
  }
  size_t gone = sort_out(suffixes, outcome);
  if (gone < task.n_suffixes)
    say_why(run, remnant->path, &task, outcome);
  outcome_free(outcome);
  write_journal(suffixes, remnant->dead.fd);
  *fruitless += gone == 0 ? 1u : 0u;
  return *fruitless < MOST_FRUITLESS && !engine_interrupted(run->engine);
}

/* Tries each once.  Removed stores are deleted from the journal: the next time is shorter. */
static bool
remove_stores(struct run *run, struct suffixes *suffixes, const struct remnant *remnant)
{
  unsigned fruitless = 0;

  suffixes->untried = suffixes->n;
  while (suffixes->untried > 0 && remove_some(run, suffixes, remnant, &fruitless))
    continue;
  if (suffixes->n > 0)
    message_print("%s: %zu name%s of stores left in its journal; durakit clean with the same "
                  "settings continues with them", remnant->path, suffixes->n,
                  suffixes->n == 1 ? "" : "s");
  return suffixes->n == 0;
}

/* "durakit-run-ID-PID" -> ID */
static bool
run_id_of(const char *folder, char id[16])
{
  const char *name = strrchr(folder, '/') + 1 + strlen(FOLDER_PREFIX);
  size_t n = strcspn(name, "-");

  if (n == 0 || n > 12)
    return false;
  memcpy(id, name, n);
  id[n] = '\0';
  return true;
}

/* Reports that, and why.  It is a failure; returns false. */
static bool
leave_alone(struct cleaning *cleaning, const struct remnant *remnant, const char *why, int reason)
{
  message_print("%s: left alone: %s: %s", remnant->path, why, file_words(reason));
  cleaning->failed++;
  return false;
}

/* A second run might have the same id, and so stores of the same names. */
static bool
has_its_id_alone(struct cleaning *cleaning, const struct remnant *remnant)
{
  char other[512];
  int found = folder_find_live(remnant->id, remnant->path, other, sizeof(other));

  if (found < 0)
    return leave_alone(cleaning, remnant, "it is not known whether a run with its id is running",
                       errno);
  if (found > 0)
    message_print("%s: left alone, because %s has the same run id and is running", remnant->path,
                  other);
  return found == 0;
}

/* Another plugin, or the same at another place, would find no store, and report it as removed. */
static bool
is_of_this(struct cleaning *cleaning, const struct remnant *remnant)
{
  struct dk_text how = DK_TEXT_EMPTY;
  enum run_origin origin = run_origin_compare(cleaning->run, remnant->dead.fd, &how);

  if (origin != RUN_ORIGIN_SAME)
    message_print("%s: left alone%s%s%s", remnant->path,
                  origin == RUN_ORIGIN_DIFFERS ? ", for " : ": ",
                  dk_text_str(&how),
                  dk_text_failed(&how) ? " (out of memory: this message is incomplete)" : "");
  cleaning->others += origin == RUN_ORIGIN_DIFFERS ? 1u : 0u;
  cleaning->failed += origin == RUN_ORIGIN_UNKNOWN ? 1u : 0u;
  dk_text_done(&how);
  return origin == RUN_ORIGIN_SAME;
}

/* Those that its journal names, and others that can be listed. */
static bool
clean_listed(struct cleaning *cleaning, const struct remnant *remnant, struct suffixes *suffixes)
{
  if (!cleaning->run) {
    cleaning->kept++;
    return false;
  }
  if (!is_of_this(cleaning, remnant))
    return false;
  int reason = look_for_paths(suffixes, cleaning->run, remnant->id);
  if (reason != 0)
    return leave_alone(cleaning, remnant, "its stores cannot be listed", reason);
  bool gone = remove_stores(cleaning->run, suffixes, remnant);
  cleaning->cleaned += gone ? 1u : 0u;
  cleaning->failed += gone ? 0u : 1u;
  return gone;
}

/* Removes the stores of a dead run, if there can be any; false if they stay. */
static bool
clean_stores(struct cleaning *cleaning, const struct remnant *remnant)
{
  struct suffixes suffixes = {.n = 0};
  bool gone = has_its_id_alone(cleaning, remnant);
  int reason = gone ? read_journal(&suffixes, remnant) : 0;

  if (reason != 0)
    gone = leave_alone(cleaning, remnant, "its journal cannot be read", reason);
  else if (gone && suffixes.n > 0)
    gone = clean_listed(cleaning, remnant, &suffixes);
  free(suffixes.items);
  return gone;
}

static void
remove_folder(struct cleaning *cleaning, const char *path)
{
  struct remains left = {.n = 0};

  if (folder_remove_tree(path, &left)) {
    cleaning->folders++;
    return;
  }
  message_print("%s: could not be removed: %s%s%s", path, left.name, left.name[0] ? ": " : "",
                left.why);
  cleaning->failed++;
}

static void
clean_folder(struct cleaning *cleaning, const char *path)
{
  struct remnant remnant = {.path = path};

  switch (folder_look(path, &remnant.dead)) {
  case FOLDER_LIVES:
    return;
  case FOLDER_FOREIGN:
    message_print("%s: left alone: it is not your own folder, or others can enter it", path);
    cleaning->foreign++;
    return;
  case FOLDER_UNKNOWN:
    leave_alone(cleaning, &remnant, "it cannot be examined", errno);
    return;
  case FOLDER_DEAD:
    break;
  }
  if (run_id_of(path, remnant.id) && clean_stores(cleaning, &remnant))
    remove_folder(cleaning, path);
  folder_dead_run_done(&remnant.dead);
}

static int
is_run(const struct dirent *entry)
{
  return strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) == 0;
}

/* A place that does not exist, or where no run could have made a folder, has none. */
static void
clean_base(struct cleaning *cleaning, const char *base)
{
  struct dirent **entries;
  int n = scandir(base, &entries, is_run, alphasort);

  if (n < 0) {
    int reason = errno;
    if (reason == ENOENT || reason == ENOTDIR || access(base, W_OK | X_OK) != 0)
      return;
    message_print("%s: the folders of runs cannot be listed: %s", base, strerror(reason));
    cleaning->failed++;
    return;
  }
  for (int i = 0; i < n; i++) {
    char path[512];
    if (snprintf(path, sizeof(path), "%s/%s", base, entries[i]->d_name) < (int)sizeof(path))
      clean_folder(cleaning, path);
    free(entries[i]);
  }
  free(entries);
}

static int
print_cleaning(const struct cleaning *cleaning)
{
  struct printer printer = printer_of_text();

  if (cleaning->folders == 1)
    printer_line(&printer, "removed the folder of 1 dead run%s",
                 cleaning->cleaned ? ", and its stores" : "");
  else
    printer_line(&printer, "removed the folders of %u dead runs, and the stores of %u of them",
                 cleaning->folders, cleaning->cleaned);
  int code = printer_done(&printer, EXIT_PASSED);
  if (cleaning->kept > 0)
    message_print("the stores of %u dead run%s might be left; to remove them, give the plugin and "
                  "its settings: durakit clean PLUGIN --set ...", cleaning->kept,
                  cleaning->kept == 1 ? "" : "s");
  return cleaning->failed > 0 ? EXIT_ENVIRONMENT : code;
}

int
command_clean(const struct options *options)
{
  struct options quiet = *options;
  struct run run;
  struct cleaning cleaning = {0};
  const char *bases[FOLDER_BASES];
  size_t n = folder_bases(bases);
  int code = EXIT_PASSED;

  quiet.format = FORMAT_HUMAN;
  if (options->n_arguments > 0) {
    code = run_begin(&run, &quiet);
    if (code == EXIT_PASSED) {
      out_part(run.out, "still removing the stores of dead runs");
      code = run_probe(&run);
    }
    if (code == EXIT_PASSED)
      code = run_take_settings(&run);
    cleaning.run = &run;
  }
  for (size_t i = 0; code == EXIT_PASSED && i < n; i++)
    clean_base(&cleaning, bases[i]);
  if (cleaning.run)
    run_end(&run);
  return code == EXIT_PASSED ? print_cleaning(&cleaning) : code;
}
