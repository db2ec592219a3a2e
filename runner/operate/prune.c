/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit prune`: removes old executions of one instance, or of those that conditions select. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/grow.h"
#include "runner/cli/message.h"
#include "runner/cli/printer.h"
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/show.h"
#include "runner/operate/signals.h"
#include "runner/operate/targets.h"

struct pruning {
  struct host host;
  struct printer printer;
  struct ids ids;
  uint32_t keep;              /* at least 1 */
  int64_t completed_before;   /* 0: whenever */
  struct dk_removed removed;  /* or would be */
  struct dk_execution *executions; /* of the instance that a dry run looks at; without texts */
  size_t n_executions, room;
  bool no_memory;
  dk_status failed;           /* of a call within a list */
};

/* ---- what would be removed ------------------------------------------------------------------- */

static int32_t
take_execution(void *context, const struct dk_execution *execution)
{
  struct pruning *p = context;
  struct dk_execution *grown =
    dk_grown(p->executions, p->n_executions, &p->room, sizeof(*grown));

  p->no_memory = p->no_memory || !grown;
  if (!grown)
    return 1;
  p->executions = grown;
  p->executions[p->n_executions++] = *execution;
  return host_interrupted(&p->host);
}

/* They are in ascending order: the last `keep` stay, the current one among them. */
static bool
would_go(const struct pruning *p, size_t i)
{
  const struct dk_execution *e = &p->executions[i];

  return i + p->keep < p->n_executions && e->status != DK_RUNNING
         && (p->completed_before == 0 || e->completed_at < p->completed_before);
}

static void
tell_one(struct pruning *p, dk_str id, uint64_t executions, uint64_t events)
{
  struct dk_text line = DK_TEXT_EMPTY;
  json_t *object = json_object();

  show_text(&line, id);
  dk_text_printf(&line, ": %" PRIu64 " of %zu executions would be removed, with %" PRIu64
                 " events\n", executions, p->n_executions, events);
  printer_text(&p->printer, &line);
  show_json_text(object, "instance", id);
  show_json_number(object, "executions", executions);
  show_json_number(object, "events", events);
  printer_item(&p->printer, object);
}

/* Of one instance; reports it only if it would lose an execution. */
static dk_status
count_what_would_go(struct pruning *p, dk_str id)
{
  uint64_t executions = 0, events = 0;

  p->n_executions = 0;
  dk_status status = dk_client_executions(p->host.client, id, take_execution, p);
  if (status != DK_OK)
    return p->no_memory ? DK_NO_MEMORY : status;
  for (size_t i = 0; i < p->n_executions; i++) {
    executions += would_go(p, i);
    events += would_go(p, i) ? p->executions[i].last_event_id : 0;
  }
  p->removed.instances++;
  p->removed.executions += executions;
  p->removed.events += events;
  if (executions > 0 && p->host.options->operating.dry_run)
    tell_one(p, id, executions, events);
  return DK_OK;
}

static int32_t
take_instance(void *context, const struct dk_instance_info *info)
{
  struct pruning *p = context;

  if (info->execution_id < 2) { /* only the current one: counts as examined, see PRUNE-4 */
    p->removed.instances++;
    return host_interrupted(&p->host);
  }
  char *id = strndup(info->instance.ptr, info->instance.len);
  p->no_memory = p->no_memory || !id;
  p->failed = id ? count_what_would_go(p, dk_str_of(id)) : DK_NO_MEMORY;
  free(id);
  if (p->failed == DK_NOT_FOUND)
    p->failed = DK_OK; /* deleted meanwhile */
  return p->failed != DK_OK || host_interrupted(&p->host);
}

static int
look_at_all(struct pruning *p, const struct dk_instance_filter *filter)
{
  p->failed = DK_OK;
  dk_status status =
    dk_client_list(p->host.client, filter, (dk_str){NULL, 0}, 0, 0, take_instance, p);
  if (p->failed != DK_OK)
    status = p->failed;
  if (p->no_memory) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  return status == DK_OK ? EXIT_PASSED : host_failed(&p->host, NULL, status);
}

/* ---- what is removed ------------------------------------------------------------------------- */

static int
refuse_missing_instance(const struct pruning *p, const char *id)
{
  return host_refuse(&p->host, EXIT_VIOLATED, id, "there is no such instance, or it never ran",
                     NULL, "durakit instances lists all");
}

static int
prune_named(struct pruning *p)
{
  const char *id = p->host.options->arguments[0];
  dk_status status =
    p->host.options->operating.dry_run
      ? count_what_would_go(p, p->ids.items[0])
      : dk_client_prune(p->host.client, p->ids.items[0], p->keep, p->completed_before,
                        &p->removed);

  if (status == DK_NOT_FOUND)
    return refuse_missing_instance(p, id);
  return status == DK_OK ? EXIT_PASSED : host_failed(&p->host, id, status);
}

static int
prune_selected(struct pruning *p)
{
  const struct operating *operating = &p->host.options->operating;
  struct chosen chosen = operating->chosen;
  int code = EXIT_PASSED;

  chosen.completed_before = 0; /* this one is for executions */
  const struct dk_instance_filter filter = targets_filter(&chosen);
  signals_tell(p->host.signals, "still searching for the selected instances", SIGNALS_A_MINUTE);
  if (operating->dry_run)
    return look_at_all(p, &filter);
  if (!operating->yes)
    code = look_at_all(p, &filter);
  signals_tell(p->host.signals, "", -1); /* not in the middle of a question */
  if (code == EXIT_PASSED && !operating->yes && p->removed.executions > 0)
    code = targets_confirm(&p->host,
                           "this removes %" PRIu64 " execution%s with their histories. Continue?",
                           p->removed.executions, p->removed.executions == 1 ? "" : "s");
  p->removed = (struct dk_removed){.struct_size = sizeof(p->removed)};
  if (code != EXIT_PASSED)
    return code;
  signals_tell(p->host.signals, "still pruning, page by page", SIGNALS_A_MINUTE);
  dk_status status = dk_client_prune_matching(p->host.client, &filter, p->keep,
                                              p->completed_before, 0, &p->removed);
  return status == DK_OK ? EXIT_PASSED : host_failed(&p->host, NULL, status);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void
print_pruning_sums(struct pruning *p, int code)
{
  bool dry = p->host.options->operating.dry_run;
  const struct dk_removed *r = &p->removed;
  json_t *rest = json_object(), *sums = json_object();

  if (code == EXIT_PASSED || r->executions > 0)
    printer_line(&p->printer, "%s: executions %" PRIu64 ", events %" PRIu64,
                 dry ? "would be removed" : "removed", r->executions, r->events);
  show_json_number(sums, "instances", r->instances);
  show_json_number(sums, "executions", r->executions);
  show_json_number(sums, "events", r->events);
  show_json_bool(rest, "dry_run", dry);
  json_object_set_new(rest, dry ? "would_go" : "removed", sums);
  show_json_bool(rest, "complete", code <= EXIT_VIOLATED);
  printer_end(&p->printer, rest);
  if (host_interrupted(&p->host))
    message_print("interrupted: what is reported was done; you can repeat the same command");
}

int
operate_prune(const struct options *options)
{
  const struct operating *operating = &options->operating;
  struct pruning p = {.host = {.options = options},
                      .printer = printer_of(options, "durakit.prune/1", "instances"),
                      .keep = operating->keep > 0 ? operating->keep : 1,
                      .completed_before = operating->chosen.completed_before,
                      .removed = {.struct_size = sizeof(p.removed)}};
  int code = targets_begin(&p.host, &p.ids, options, "prune");

  if (code == EXIT_PASSED) {
    code = targets_are_many(options) ? prune_selected(&p) : prune_named(&p);
    print_pruning_sums(&p, code);
  }
  host_close(&p.host);
  targets_ids_done(&p.ids);
  free(p.executions);
  return printer_done(&p.printer, code);
}
