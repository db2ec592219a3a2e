/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of a run: names that are in use already, the first one that is made, what is left. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "runner/origin.h"
#include "runner/run.h"

static int
refuse_name(struct run *run, const char *name)
{
  return run_refuse(run, EXIT_USAGE,
                    &(struct problem){name,
                                      "a store of this name exists already, and is left alone",
                                      "names of the kit's own making that are not in use", NULL,
                                      "another --run-id; durakit clean removes what dead runs "
                                      "have left"});
}

/* Names of this run's stores that are there already, for a store that is a path. */
static int
refuse_existing(struct run *run)
{
  struct dk_text pattern = DK_TEXT_EMPTY;
  glob_t found = {0};
  int code = EXIT_PASSED;

  if (!run->store_value || run->store_value[0] == '\0')
    return EXIT_PASSED;
  folder_store_pattern(&pattern, run->store_value, run->options->run_id);
  if (glob(dk_text_str(&pattern), GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc > 0)
    code = refuse_name(run, found.gl_pathv[0]);
  globfree(&found);
  dk_text_done(&pattern);
  return code;
}

/* The answers to making a store that say something of the place or the settings.  All others are
 * the plugin's own, and the checks will say so. */
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
    return code == EXIT_USAGE ? "look at the settings"
                              : "look at the settings, and whether the folder is there and can be "
                                "written to";
  }
  return "look at the settings, and whether the server runs";
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
  return run_refuse(run, code,
                    &(struct problem){run->plugin, "its store cannot be made",
                                      code == EXIT_USAGE
                                        ? "settings that its open takes"
                                        : "a place where the kit may make stores of its own",
                                      found, next_of_open(run, code)});
}

void
run_note_leftovers(struct run *run, const struct outcome *outcome)
{
  for (size_t i = 0; outcome && i < outcome->n_leftovers; i++) {
    folder_note_store(&run->folder, outcome->leftovers[i]);
    run->n_leftovers++;
  }
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

  if (code == EXIT_PASSED && !origin_note(run))
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
