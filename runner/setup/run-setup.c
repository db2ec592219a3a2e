/* SPDX-License-Identifier: Apache-2.0 */
/* From the options to a plugin that is ready to be checked.  If the plugin crashes or hangs on the
 * way, the run continues: only refusals by the loader, the settings and the store end it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/resolve.h"
#include "runner/cli/server-options.h"
#include "runner/cli/settings.h"
#include "runner/cli/suggest.h"
#include "runner/cli/usage.h"
#include "runner/engine/server-commands.h"
#include "runner/report/out.h"
#include "runner/report/results.h"
#include "runner/setup/run-setup.h"
#include "runner/system/clock.h"

/* The text with the plugin's path as the user gave it. */
static const char *
as_typed(const struct run *run, struct dk_text *buffer, const char *text)
{
  const char *found = run->plugin && text ? strstr(text, run->plugin) : NULL;

  if (!found)
    return text;
  dk_text_add(buffer, text, (size_t)(found - text));
  dk_text_puts(buffer, run->options->arguments[0]);
  dk_text_puts(buffer, found + strlen(run->plugin));
  return dk_text_str(buffer);
}

int
run_refuse(struct run *run, int code, const struct problem *problem)
{
  struct problem shown = *problem;
  struct dk_text where = DK_TEXT_EMPTY;
  struct dk_text next = DK_TEXT_EMPTY;

  shown.where = as_typed(run, &where, problem->where);
  if (code == EXIT_USAGE && (!problem->next || !problem->next[0])) {
    usage_add_help(&next, run->options, "shows examples");
    shown.next = dk_text_str(&next);
  } else {
    shown.next = as_typed(run, &next, problem->next);
  }
  message_problem(&shown, &run->secrets);
  out_refusal(run->out, &shown, &run->secrets);
  dk_text_done(&where);
  dk_text_done(&next);
  return code;
}

static int
refuse_errno(struct run *run, const char *where, const char *what, const char *next)
{
  return run_refuse(run, EXIT_ENVIRONMENT,
                    &(struct problem){where, what, NULL, strerror(errno), next});
}

static int
find_plugin(struct run *run)
{
  struct problem problem;
  struct dk_text words[3] = {DK_TEXT_EMPTY, DK_TEXT_EMPTY, DK_TEXT_EMPTY};
  int code = EXIT_PASSED;

  errno = 0;
  run->plugin = resolve_plugin(run->options->arguments[0], &problem, words);
  if (!run->plugin && errno == ENOMEM)
    code = refuse_errno(run, run->options->arguments[0], "cannot be searched for", NULL);
  else if (!run->plugin)
    code = run_refuse(run, EXIT_PLUGIN, &problem);
  for (size_t i = 0; i < 3; i++)
    dk_text_done(&words[i]);
  return code;
}

/* Before the parameters are known: masks all that looks like a password. */
static void
mask_settings(struct run *run)
{
  for (size_t i = 0; i < run->options->n_settings; i++) {
    const struct given *given = &run->options->settings[i];
    secrets_add_passwords(&run->secrets, given->value, strlen(given->value));
  }
  server_options_add_secrets(&run->secrets, &run->options->server);
}

static int
refuse_folder(struct run *run)
{
  if (errno == EADDRINUSE)
    return run_refuse(run, EXIT_USAGE,
                      &(struct problem){run->options->run_id, "a run with this id is still alive",
                                        "an id that no living run has, because it is part of the "
                                        "names of stores",
                                        run->folder.path, "use another --run-id, or none"});
  return refuse_errno(run, run->folder.path, "the folder of the run cannot be made",
                      "set TMPDIR to another place");
}

int
run_begin(struct run *run, const struct options *options)
{
  *run = (struct run){.options = options, .folder = FOLDER_NONE};
  run->started_ns = clock_ns();
  mask_settings(run);
  run->out = out_new(options);
  run->probe = calloc(1, sizeof(*run->probe));
  if (!run->out || !run->probe || run->secrets.failed) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  int code = options->n_arguments > 0 ? find_plugin(run) : EXIT_PASSED;
  if (code != EXIT_PASSED)
    return code;
  if (folder_make(&run->folder, options->run_id) != 0)
    return refuse_folder(run);
  if (!server_commands_start(&run->server_commands, &options->server, run->folder.path))
    return refuse_errno(run, "--store-...", "the process that runs the commands cannot be made",
                        NULL);
  run->engine = engine_new(&run->folder, options->jobs ? options->jobs : 1);
  if (!run->engine)
    return refuse_errno(run, "the engine", "cannot be set up",
                        "run durakit clean, or use a smaller -j");
  engine_on_wait(run->engine, out_wait, run->out);
  run_set_deadline(run);
  return EXIT_PASSED;
}

/* A plugin may have mounted or moved something there. */
static void
remove_folder(struct run *run)
{
  struct remains left = {.n = 0};
  struct dk_text what = DK_TEXT_EMPTY;
  char path[sizeof(run->folder.path)];

  memcpy(path, run->folder.path, sizeof(path));
  folder_done(&run->folder, &left);
  if (left.n > 0) {
    dk_text_printf(&what, "%s: %s", left.name, left.why);
    message_problem(&(struct problem){path, "the folder of the run could not be removed completely",
                                      "nothing in it but what the run itself has made",
                                      dk_text_str(&what),
                                      "the rest was not touched: look at it, and remove it"},
                    &run->secrets);
  }
  dk_text_done(&what);
}

void
run_end(struct run *run)
{
  run_remove_unsure(run);
  for (size_t i = 0; i < run->n_results; i++)
    outcome_free(run->results[i].outcome);
  free(run->results);
  free(run->suppressed);
  memcheck_done(&run->valgrind);
  engine_free(run->engine);
  server_commands_end(run->server_commands);
  remove_folder(run);
  results_close(run->file);
  out_free(run->out);
  free(run->unsure);
  free(run->settings);
  free(run->probe);
  free(run->plugin);
  secrets_done(&run->secrets);
}

/* ---- what the plugin says of itself ---------------------------------------------------------- */

/* The child ended or hung: reports that.  Each check will fail in the same way. */
void
run_note_trouble(struct run *run, const struct outcome *outcome, const char *doing)
{
  if (outcome->verdict == VERDICT_TIMEOUT)
    snprintf(run->trouble, sizeof(run->trouble), "%s did not end within %lld ms", doing,
             (long long)run_scaled(run, RUN_PROBE_MS));
  else
    snprintf(run->trouble, sizeof(run->trouble), "%s ended the process %s", doing,
             outcome->ended);
  if (outcome->verdict == VERDICT_TIMEOUT)
    run_note_hung_probe(run);
  message_print("%s: %s; the run continues", run->options->arguments[0],
                run->trouble);
}

/* A child that ended well and reported no success: the fault of the kit or of the machine. */
static int
refuse_trouble(struct run *run, const struct outcome *outcome)
{
  const struct kit_report *report = outcome->report;

  return run_refuse(run, EXIT_ENVIRONMENT,
                    &(struct problem){run->plugin, report->message, report->expected,
                                      report->found, NULL});
}

int
run_no_child(struct run *run)
{
  if (engine_interrupted(run->engine)) {
    message_print("interrupted before the first check");
    return EXIT_INCOMPLETE;
  }
  return run_refuse(run, EXIT_ENVIRONMENT,
                    &(struct problem){"the engine", "no process can be started", NULL,
                                      engine_reason(run->engine), NULL});
}

int
run_probe(struct run *run)
{
  struct task task = run_task(run, TASK_PROBE);
  struct outcome *outcome = engine_run(run->engine, &task);
  int code = EXIT_PASSED;

  if (!outcome || outcome->interrupted) {
    code = run_no_child(run);
  } else {
    *run->probe = *outcome->probe;
    run->described = run->probe->loaded;
    if (outcome_was_ended(outcome)) {
      run_note_trouble(run, outcome, "loading it");
    } else if (run->probe->refusal.number != 0) {
      struct problem problem = message_problem_of(&run->probe->refusal);
      code = run_refuse(run, EXIT_PLUGIN, &problem);
    } else if (!run->described) {
      code = refuse_trouble(run, outcome);
    }
  }
  outcome_free(outcome);
  return code;
}

/* ---- settings -------------------------------------------------------------------------------- */

static int
refuse_unknown_key(struct run *run, const char *key)
{
  struct suggest nearest = {.word = key};
  struct dk_text list = DK_TEXT_EMPTY;
  struct dk_text next = DK_TEXT_EMPTY;
  const struct kit_probe *probe = run->probe;

  for (uint32_t i = 0; i < probe->n_params; i++) {
    suggest_try(&nearest, probe->params[i].key);
    dk_text_printf(&list, "%s%s", i ? ", " : "", probe->params[i].key);
  }
  const char *what = "the plugin has no such setting";
  int code = run_refuse(
    run, EXIT_USAGE,
    &(struct problem){key, what, list.length ? dk_text_str(&list) : "no setting at all", NULL,
                      message_did_you_mean(&next, nearest.best,
                                           "durakit probe PLUGIN shows them")});
  dk_text_done(&list);
  dk_text_done(&next);
  return code;
}

static bool
is_key(const struct run *run, const char *key)
{
  for (uint32_t i = 0; i < run->probe->n_params; i++) {
    if (strcmp(run->probe->params[i].key, key) == 0)
      return true;
  }
  return false;
}

/* The key of --through=KEY=VALUE is one of the provider's, too. */
static int
check_through(struct run *run)
{
  const char *through = run->options->server.through;
  char key[64];

  if (!through)
    return EXIT_PASSED;
  snprintf(key, sizeof(key), "%.*s", (int)strcspn(through, "="), through);
  return is_key(run, key) ? EXIT_PASSED : refuse_unknown_key(run, key);
}

static int
check_keys(struct run *run)
{
  for (size_t i = 0; i < run->options->n_settings; i++) {
    const struct given *given = &run->options->settings[i];
    bool known = false;
    for (uint32_t j = 0; j < run->probe->n_params && !known; j++) {
      known = strcmp(given->key, run->probe->params[j].key) == 0;
      if (known && run->probe->params[j].flags & DK_PARAM_SECRET)
        secrets_add(&run->secrets, given->value, strlen(given->value));
    }
    if (!known)
      return refuse_unknown_key(run, given->key);
  }
  return check_through(run);
}

static bool
is_path(const struct run *run, const char *key)
{
  for (uint32_t i = 0; i < run->probe->n_params; i++)
    if (strcmp(run->probe->params[i].key, key) == 0)
      return strcmp(run->probe->params[i].type, "path") == 0;
  return false;
}

/* A child has a folder of its own, so a relative path would lead elsewhere than in the user's
 * folder. */
static int
make_paths_absolute(struct run *run)
{
  for (size_t i = 0; i < run->options->n_settings; i++) {
    struct given *given = &run->options->settings[i];
    if (!is_path(run, given->key))
      continue;
    int code = settings_place(given);
    if (code != EXIT_PASSED)
      return code;
    if (given->value[0] == '\0' || given->value[0] == '/')
      continue;
    char *path = resolve_absolute(given->value);
    if (!path)
      return refuse_errno(run, given->value, "the path cannot be made absolute", NULL);
    free(given->value);
    given->value = path;
  }
  return EXIT_PASSED;
}

/* The user's settings, and a store, which the kit always gives. */
static struct dk_setting *
all_settings(const struct run *run, size_t *ret_n)
{
  const char *store = run->store_value ? run->store_value : run->folder.path;
  struct dk_setting *given = settings_for_provider(run->options, NULL, ret_n);

  if (!given || !run->store_key || settings_find(run->options, run->store_key))
    return given;
  struct dk_setting *all = reallocarray(given, *ret_n + 1, sizeof(*all));
  if (!all) {
    free(given);
    return NULL;
  }
  all[(*ret_n)++] = (struct dk_setting){run->store_key, {store, strlen(store)}};
  return all;
}

/* Types and required settings, as the host that loads the plugin judges them. */
static int
check_values(struct run *run)
{
  size_t n;
  struct dk_setting *all = all_settings(run, &n);
  struct task task = run_task(run, TASK_SETTINGS);

  if (!all) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  task.job.settings = all;
  task.job.n_settings = n;
  task.job.store_key = NULL;
  task.job.store_value = NULL; /* it is among them */
  task.store_in_folder = false;
  struct outcome *outcome = engine_run(run->engine, &task);
  int code = EXIT_PASSED;
  if (!outcome || outcome->interrupted) {
    code = run_no_child(run);
  } else if (!outcome_was_ended(outcome) && outcome->probe->refusal.what[0]) {
    struct problem problem = message_problem_of(&outcome->probe->refusal);
    code = run_refuse(run, EXIT_USAGE, &problem);
  }
  outcome_free(outcome);
  free(all);
  return code;
}

/* Where each check's store is: beside the one that the user names, else in the check's folder. */
static void
choose_store(struct run *run)
{
  for (uint32_t i = 0; i < run->probe->n_params; i++) {
    if (!(run->probe->params[i].flags & DK_PARAM_STORE))
      continue;
    const struct given *given = settings_find(run->options, run->probe->params[i].key);
    run->store_key = run->probe->params[i].key;
    if (given)
      run->store_value = given->value;
    else if (run->probe->params[i].fallback[0])
      run->store_value = run->probe->params[i].fallback;
    else if (strcmp(run->probe->params[i].type, "path") != 0)
      run->store_value = "durakit";
    return;
  }
}

int
run_take_settings(struct run *run)
{
  int code = run->described ? check_keys(run) : EXIT_PASSED;

  if (code == EXIT_PASSED && run->described)
    code = make_paths_absolute(run);
  if (code != EXIT_PASSED)
    return code;
  choose_store(run);
  if (run->described)
    code = check_values(run);
  if (code != EXIT_PASSED)
    return code;
  run->settings = settings_for_provider(run->options, run->store_key, &run->n_settings);
  if (run->settings && !run->secrets.failed)
    return EXIT_PASSED;
  message_print("out of memory");
  return EXIT_ENVIRONMENT;
}
