/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of a run: names that are in use already, the first store, stores left over. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/setup/run-origin.h"
#include "runner/setup/run-setup.h"
#include "runner/system/clock.h"

enum { SETTLES_MS = 1500, SETTLES_MOST_MS = 15000 };

static int
refuse_name(struct run *run, const char *name)
{
  return run_refuse(run, EXIT_USAGE,
                    &(struct problem){name,
                                      "a store of this name exists already; it was not touched",
                                      "names made by the kit that are not in use", NULL,
                                      "use another --run-id; durakit clean removes what dead runs "
                                      "have left"});
}

static void
take_first(void *context, const char *suffix)
{
  struct dk_text *name = context;

  if (name->length == 0)
    dk_text_puts(name, suffix);
}

/* Names of this run's stores that are there already, for a store that is a path. */
static int
refuse_existing(struct run *run)
{
  struct dk_text name = DK_TEXT_EMPTY;
  int code = EXIT_PASSED;

  if (!run->store_value || run->store_value[0] == '\0')
    return EXIT_PASSED;
  if (folder_find_stores(run->store_value, run->options->run_id, take_first, &name) != 0) {
    code = run_refuse(run, EXIT_ENVIRONMENT,
                      &(struct problem){run->store_value, "the folder of the stores cannot be read",
                                        NULL, strerror(errno), NULL});
  } else if (name.length > 0 || dk_text_failed(&name)) {
    struct dk_text path = DK_TEXT_EMPTY;
    dk_text_printf(&path, "%s-%s", run->store_value, dk_text_str(&name));
    code = refuse_name(run, dk_text_str(&path));
    dk_text_done(&path);
  }
  dk_text_done(&name);
  return code;
}

/* A few statuses of open mean that the place or the settings are wrong.  All others are the
 * plugin's fault, and the checks will report them. */
static int
code_of_open(const struct run *run, dk_status status)
{
  switch (status) {
  case DK_UNAVAILABLE:
  case DK_BUSY:
  case DK_REFUSED:
  case DK_NOT_FOUND:
    return EXIT_ENVIRONMENT;
  case DK_INVALID:
    return run->options->n_settings > 0 ? EXIT_USAGE : EXIT_PASSED;
  default:
    return EXIT_PASSED;
  }
}

/* A store that is a path has no server. */
static const char *
next_of_open(const struct run *run, int code)
{
  for (uint32_t i = 0; run->store_key && i < run->probe->n_params; i++) {
    if (strcmp(run->probe->params[i].key, run->store_key) != 0
        || strcmp(run->probe->params[i].type, "path") != 0)
      continue;
    return code == EXIT_USAGE ? "check the settings"
                              : "check the settings, and that the folder exists and is writable";
  }
  return "check the settings, and that the server runs";
}

/* The place is well, so this is the provider's fault: each check will meet it, and judge it. */
static int
blame_open(struct run *run, const char *found)
{
  snprintf(run->trouble, sizeof(run->trouble),
           "open answered DK_UNAVAILABLE, though the kit itself can write where the store lies");
  message_problem(&(struct problem){run->options->arguments[0],
                                    "open answered DK_UNAVAILABLE, which is the provider's failure "
                                    "(ERR-1): the kit itself can write where the store lies",
                                    "DK_OK, and DK_UNAVAILABLE only while a store cannot be "
                                    "reached or has no room",
                                    found, "durakit explain ERR-1"},
                  &run->secrets);
  return EXIT_PASSED;
}

static int
judge_open(struct run *run, const struct kit_probe *probe)
{
  char found[600];
  char name[32];
  int code = probe->opened ? EXIT_PASSED : code_of_open(run, probe->open_status);

  if (code == EXIT_PASSED)
    return code;
  if (probe->exists)
    return refuse_name(run, run->plugin);
  snprintf(found, sizeof(found), "%s: %.511s",
           dk_status_name(probe->open_status, name, sizeof(name)), probe->open_text);
  if (probe->open_status == DK_UNAVAILABLE && probe->place_is_well)
    return blame_open(run, found);
  return run_refuse(run, code,
                    &(struct problem){run->plugin, "its store cannot be made",
                                      code == EXIT_USAGE
                                        ? "settings that its open accepts"
                                        : "a place where the kit can make stores of its own",
                                      found, next_of_open(run, code)});
}

/* A repeated check has made stores with the same names. */
static bool
is_unsure(const struct run *run, const char *suffix)
{
  for (size_t i = 0; i < run->n_unsure; i++) {
    if (strcmp(run->unsure[i], suffix) == 0)
      return true;
  }
  return false;
}

static void
note_unsure(struct run *run, const struct outcome *outcome)
{
  size_t most = run->n_unsure + outcome->n_unsure;
  char (*grown)[64] = reallocarray(run->unsure, most, sizeof(*grown));

  run->unsure_ns = clock_ns();
  if (grown)
    run->unsure = grown;
  for (size_t i = 0; i < outcome->n_unsure; i++) {
    if (!grown) {
      folder_note_store(&run->folder, outcome->unsure[i]);
      run->n_leftovers++;
    } else if (!is_unsure(run, outcome->unsure[i])) {
      memcpy(run->unsure[run->n_unsure++], outcome->unsure[i], sizeof(*grown));
    }
  }
}

/* The client is dead, and its server still executes the last request; no answer will say when it is
 * done. */
static void
wait_for_server(const struct run *run)
{
  int64_t ms = run_scaled(run, SETTLES_MS);
  int64_t left;

  ms = ms < SETTLES_MS ? SETTLES_MS : ms > SETTLES_MOST_MS ? SETTLES_MOST_MS : ms;
  int64_t until = run->unsure_ns + ms * 1000000;

  while (run->probe->shared >= 3 && (left = until - clock_ns()) > 0)
    poll(NULL, 0, (int)(left / 1000000) + 1);
}

void
run_note_leftovers(struct run *run, const struct outcome *outcome)
{
  if (outcome && outcome->n_unsure > 0)
    note_unsure(run, outcome);
  for (size_t i = 0; outcome && i < outcome->n_leftovers; i++) {
    if (is_unsure(run, outcome->leftovers[i]))
      continue; /* it is tried again */
    folder_note_store(&run->folder, outcome->leftovers[i]);
    run->n_leftovers++;
  }
}

/* The next stores, as many as one process can remove; drops those that it has removed. */
static bool
remove_some_unsure(struct run *run, size_t first, struct dk_text *left)
{
  struct task task = run_task(run, TASK_DESTROY);
  size_t n = run->n_unsure - first;
  char name[2048];

  task.deadline_ms = task.removal_ms;
  task.suffixes = (const char (*)[64])(run->unsure + first);
  task.n_suffixes = n < KIT_MAX_STORES ? n : KIT_MAX_STORES;
  struct outcome *outcome = engine_run(run->engine, &task);
  for (size_t i = 0; i < task.n_suffixes; i++) {
    if (outcome && outcome_removed(outcome, task.suffixes[i]))
      continue;
    kit_store_name(&task.job, task.suffixes[i], name, sizeof(name));
    dk_text_printf(left, "%s%s", left->length > 0 ? ", " : "", name);
    folder_note_store(&run->folder, task.suffixes[i]);
    run->n_leftovers++;
  }
  outcome_free(outcome);
  return first + task.n_suffixes < run->n_unsure;
}

void
run_remove_unsure(struct run *run)
{
  struct dk_text left = DK_TEXT_EMPTY;
  size_t first = 0;

  if (run->n_unsure == 0)
    return;
  wait_for_server(run);
  while (remove_some_unsure(run, first, &left))
    first += KIT_MAX_STORES;
  run->n_unsure = 0;
  if (left.length > 0) {
    struct dk_text shown = DK_TEXT_EMPTY;
    secrets_mask(&run->secrets, &shown, dk_text_str(&left), left.length);
    message_print("left over, because their check was ended while they were made: %s; to remove "
                  "them: durakit clean PLUGIN with the same settings", dk_text_str(&shown));
    dk_text_done(&shown);
  }
  dk_text_done(&left);
}

static const char *
doing_what(const struct kit_report *report)
{
  switch ((enum phase)report->phase) {
  case PHASE_RUN: return "an enqueue";
  case PHASE_CLOSE: return "closing a store";
  case PHASE_DESTROY: return "removing a store";
  case PHASE_DONE: return "what it left running";
  default: return "opening a store";
  }
}

int
run_open(struct run *run)
{
  struct task task = run_task(run, TASK_PROBE_OPEN);
  int code = refuse_existing(run);

  if (code == EXIT_PASSED && !run_origin_note(run))
    code = run_refuse(run, EXIT_ENVIRONMENT,
                      &(struct problem){run->folder.path, "the folder of this run cannot be "
                                        "written to", NULL, strerror(errno), NULL});
  if (code != EXIT_PASSED || !run->described)
    return code;
  struct outcome *outcome = engine_run(run->engine, &task);
  if (!outcome || outcome->interrupted) {
    code = run_no_child(run);
  } else if (outcome_was_ended(outcome)) {
    run_note_trouble(run, outcome, doing_what(outcome->report));
  } else {
    code = judge_open(run, outcome->probe);
    run_note_round_trip(run, outcome->probe->round_trip_ns);
  }
  run_note_leftovers(run, outcome);
  outcome_free(outcome);
  return code;
}
