/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit clean`: removes what dead runs have left: folders, and with a plugin and its settings
 * the stores that their journals name.  A run that lives holds a lock, and is left alone. */
#include <dirent.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/commands.h"
#include "runner/origin.h"
#include "runner/run.h"

/* After so many rounds in which no store went away the rest waits for another `durakit clean`. */
enum { MOST_FRUITLESS = 3 };

struct cleaning {
  struct run *run;         /* NULL: no plugin was given */
  unsigned folders;        /* removed */
  unsigned cleaned;        /* runs whose stores were removed */
  unsigned kept, failed;   /* runs whose stores stay: no plugin was given, or it did not work */
  unsigned others;         /* the same: those of another plugin, or somewhere else */
  unsigned foreign;        /* folders of our name that are not ours */
};

/* The stores that one dead run may have left, by suffix. */
struct suffixes {
  char (*items)[64];
  size_t n, room;
  size_t untried;          /* while they are removed: so many at the beginning */
  bool failed;             /* out of memory: some may be missing */
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
  if (suffixes->n == suffixes->room) {
    size_t room = suffixes->room + 256;
    void *grown = reallocarray(suffixes->items, room, sizeof(*suffixes->items));
    suffixes->failed = suffixes->failed || !grown;
    if (!grown)
      return;
    suffixes->items = grown;
    suffixes->room = room;
  }
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

/* Its end may stand in a later line of the journal. */
static bool
was_ended(FILE *journal, unsigned number)
{
  long here = ftell(journal);
  char line[128];
  bool ended = false;

  while (fgets(line, sizeof(line), journal)) {
    if (line[0] == '-' && strtoul(line + 1, NULL, 10) == number)
      ended = true;
  }
  fseek(journal, here, SEEK_SET);
  return ended;
}

static void
read_journal(struct suffixes *suffixes, const char *folder, const char *run_id)
{
  char path[600];
  char line[128];
  char prefix[32];

  snprintf(prefix, sizeof(prefix), "dk%s-", run_id);
  snprintf(path, sizeof(path), "%s/journal", folder);
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof(line), file)) {
    line[strcspn(line, "\n")] = '\0';
    unsigned number = (unsigned)strtoul(line + (line[0] ? 1 : 0), NULL, 10);
    if (line[0] == '+' && !was_ended(file, number))
      add_passes(suffixes, run_id, number);
    else if (strncmp(line, prefix, strlen(prefix)) == 0)
      add_suffix(suffixes, line); /* only what that run made */
  }
  if (file)
    fclose(file);
}

/* Stores that are paths can be seen: those with a name of that run. */
static void
look_for_paths(struct suffixes *suffixes, const struct run *run, const char *run_id)
{
  struct dk_text pattern = DK_TEXT_EMPTY;
  glob_t found = {0};

  if (!run->store_value || !run->store_value[0])
    return;
  folder_store_pattern(&pattern, run->store_value, run_id);
  if (glob(dk_text_str(&pattern), GLOB_NOSORT, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++)
      add_suffix(suffixes, found.gl_pathv[i] + strlen(run->store_value) + 1);
  }
  globfree(&found);
  dk_text_done(&pattern);
}

/* What is left, instead of what stood in the journal; if that fails, all is tried again. */
static void
write_journal(const struct suffixes *left, const char *folder)
{
  char path[600];
  char made[610];

  snprintf(path, sizeof(path), "%s/journal", folder);
  snprintf(made, sizeof(made), "%s-t", path);
  FILE *file = fopen(made, "we");
  for (size_t i = 0; file && i < left->n; i++)
    fprintf(file, "%s\n", left->items[i]);
  bool written = file && !ferror(file);
  if (file && fclose(file) == 0 && written)
    rename(made, path);
}

/* Takes out what is gone; what was tried in vain goes to the end, so that it holds up nothing, the
 * next time neither.  Returns how many went away. */
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

/* With the store at which it ended, if it did not come back. */
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
    dk_text_printf(&text, "%s did not come back within %" PRId64 " ms; --timeout-scale gives it "
                          "more time", name, task->deadline_ms);
  else if (outcome_was_ended(outcome))
    dk_text_printf(&text, "%s: the process ended %s", name, outcome->ended);
  else
    dk_text_puts(&text, report->message);
  mask_text(&run->mask, &shown, dk_text_str(&text), text.length);
  say("%s: stores could not be removed: %s", folder, dk_text_str(&shown));
  dk_text_done(&text);
  dk_text_done(&shown);
}

/* The next of them, as many as one process removes.  False: there is no going on. */
static bool
remove_some(struct run *run, struct suffixes *suffixes, const char *folder, unsigned *fruitless)
{
  struct task task = run_task(run, TASK_DESTROY);

  task.suffixes = (const char (*)[64])suffixes->items;
  task.n_suffixes = suffixes->untried < KIT_MAX_STORES ? suffixes->untried : KIT_MAX_STORES;
  struct outcome *outcome = engine_run(run->engine, &task);
  if (!outcome) {
    say("%s: stores could not be removed: no process could be started", folder);
    return false;
  }
  size_t gone = sort_out(suffixes, outcome);
  if (gone < task.n_suffixes)
    say_why(run, folder, &task, outcome);
  outcome_free(outcome);
  write_journal(suffixes, folder);
  *fruitless += gone == 0 ? 1u : 0u;
  return *fruitless < MOST_FRUITLESS && !engine_interrupted(run->engine);
}

/* Tries each once.  What is gone stands in the journal no more: the next time is shorter. */
static bool
remove_stores(struct run *run, struct suffixes *suffixes, const char *folder)
{
  unsigned fruitless = 0;

  suffixes->untried = suffixes->n;
  while (suffixes->untried > 0 && remove_some(run, suffixes, folder, &fruitless))
    continue;
  if (suffixes->n > 0)
    say("%s: %zu name%s of stores left in its journal; durakit clean with the same settings goes "
        "on with them", folder, suffixes->n, suffixes->n == 1 ? "" : "s");
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

/* Its id may have been given to a second run, which has stores of the same names. */
static bool
is_used_again(const char *run_id, const char *folder)
{
  char other[512];

  if (!folder_find_live(run_id, folder, other, sizeof(other)))
    return false;
  say("%s: left alone, for %s has the same run id and lives", folder, other);
  return true;
}

/* Another plugin, or the same at another place, would find nothing and call that removed. */
static bool
is_of_others(const struct run *run, const char *folder)
{
  struct dk_text how = DK_TEXT_EMPTY;
  bool differs = origin_differs(run, folder, &how);

  if (differs)
    say("%s: left alone, for %s", folder, dk_text_str(&how));
  dk_text_done(&how);
  return differs;
}

/* Removes the stores of a dead run, if there can be any; false if they stay. */
static bool
clean_stores(struct cleaning *cleaning, const char *folder)
{
  struct suffixes suffixes = {.n = 0};
  char id[16];
  bool gone = run_id_of(folder, id) && !is_used_again(id, folder);

  if (gone) {
    read_journal(&suffixes, folder, id);
    if (suffixes.failed) {
      say("%s: left alone: out of memory", folder);
      cleaning->failed++;
      gone = false;
    } else if (suffixes.n > 0 && !cleaning->run) {
      cleaning->kept++;
      gone = false;
    } else if (suffixes.n > 0 && is_of_others(cleaning->run, folder)) {
      cleaning->others++;
      gone = false;
    } else if (suffixes.n > 0) {
      look_for_paths(&suffixes, cleaning->run, id);
      gone = remove_stores(cleaning->run, &suffixes, folder);
      cleaning->cleaned += gone ? 1u : 0u;
      cleaning->failed += gone ? 0u : 1u;
    }
  }
  free(suffixes.items);
  return gone;
}

static void
clean_folder(struct cleaning *cleaning, const char *folder)
{
  int lock;
  enum folder_state state = folder_look(folder, &lock);

  if (state == FOLDER_FOREIGN) {
    say("%s: left alone: not a folder of your own that only you can enter", folder);
    cleaning->foreign++;
  }
  if (state != FOLDER_DEAD)
    return;
  if (clean_stores(cleaning, folder)) {
    bool gone = folder_remove_tree(folder);
    cleaning->folders += gone ? 1u : 0u;
    cleaning->failed += gone ? 0u : 1u;
  }
  if (lock >= 0)
    close(lock);
}

static int
is_run(const struct dirent *entry)
{
  return strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) == 0;
}

static void
clean_base(struct cleaning *cleaning, const char *base)
{
  struct dirent **entries;
  int n = scandir(base, &entries, is_run, alphasort);

  for (int i = 0; i < n; i++) {
    char path[512];
    if (snprintf(path, sizeof(path), "%s/%s", base, entries[i]->d_name) < (int)sizeof(path))
      clean_folder(cleaning, path);
    free(entries[i]);
  }
  if (n >= 0)
    free(entries);
}

static int
tell(const struct cleaning *cleaning)
{
  if (cleaning->folders == 1)
    printf("removed the folder of 1 dead run%s\n", cleaning->cleaned ? ", and its stores" : "");
  else
    printf("removed the folders of %u dead runs, and the stores of %u of them\n",
           cleaning->folders, cleaning->cleaned);
  if (cleaning->kept > 0)
    say("the stores of %u dead run%s may be left; the plugin and its settings are needed for "
        "them: durakit clean PLUGIN --set ...", cleaning->kept, cleaning->kept == 1 ? "" : "s");
  return cleaning->failed > 0 ? EXIT_ENVIRONMENT : EXIT_PASSED;
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
    if (code == EXIT_PASSED)
      code = run_probe(&run);
    if (code == EXIT_PASSED)
      code = run_take_settings(&run);
    cleaning.run = &run;
  }
  for (size_t i = 0; code == EXIT_PASSED && i < n; i++)
    clean_base(&cleaning, bases[i]);
  if (cleaning.run)
    run_end(&run);
  return code == EXIT_PASSED ? tell(&cleaning) : code;
}
