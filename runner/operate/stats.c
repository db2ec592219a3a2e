/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit stats`: counts of one moment, for people, as JSON, or for Prometheus; and what runtimes
 * have counted, if their files are given. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runner/cli/message.h"
#include "runner/cli/printer.h"
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/show.h"
#include "runner/operate/sums.h"

/* A number, and its place in all three. */
struct row {
  const char *group, *label, *value; /* dk_group{label="value"} */
  uint64_t number;
};

struct counts {
  struct row rows[13];
  int64_t message_age_ms, activity_age_ms; /* of the oldest ready one; 0: there is none */
};

enum { N_ROWS = sizeof(((struct counts *)NULL)->rows) / sizeof(struct row) };

static int64_t
age(int64_t now, int64_t since)
{
  return since > 0 && now > since ? now - since : 0;
}

static struct counts
counts_of(const struct dk_stats *s)
{
  return (struct counts){
    .rows = {
      {"instances", "status", "not_started", s->not_started},
      /* one that continues as new runs */
      {"instances", "status", "running", s->running + s->continued_as_new},
      {"instances", "status", "completed", s->completed},
      {"instances", "status", "failed", s->failed},
      {"instances", "status", "cancelled", s->cancelled},
      {"executions", NULL, NULL, s->executions},
      {"events", NULL, NULL, s->events},
      {"messages", "state", "ready", s->messages_ready},
      {"messages", "state", "delayed", s->messages_delayed},
      {"messages", "state", "locked", s->messages_locked},
      {"activities", "state", "ready", s->activities_ready},
      {"activities", "state", "delayed", s->activities_delayed},
      {"activities", "state", "locked", s->activities_locked},
    },
    .message_age_ms = age(s->now, s->oldest_message),
    .activity_age_ms = age(s->now, s->oldest_activity),
  };
}

/* ---- for people ------------------------------------------------------------------------------ */

static bool
is_of_group(const struct row *row, const struct row *before)
{
  return before && strcmp(row->group, before->group) == 0;
}

static void
tell_rows(struct printer *printer, const struct counts *counts)
{
  for (size_t i = 0; i < N_ROWS; i++) {
    const struct row *row = &counts->rows[i];
    bool goes_on = is_of_group(row, i > 0 ? row - 1 : NULL);

    printer_line(printer, "%-11s %-12s %10" PRIu64, goes_on ? "" : row->group,
                 row->value ? row->value : "", row->number);
  }
  printer_line(printer, "%-11s %-12s %10.3f s", "oldest", "message",
               (double)counts->message_age_ms / 1000);
  printer_line(printer, "%-11s %-12s %10.3f s", "", "activity",
               (double)counts->activity_age_ms / 1000);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *
json_of_counts(const struct counts *counts, int64_t now)
{
  json_t *object = json_object();

  show_json_time(object, "time", now);
  for (size_t i = 0; i < N_ROWS; i++) {
    const struct row *row = &counts->rows[i];
    json_t *group = json_object_get(object, row->group);

    if (!row->value) {
      show_json_number(object, row->group, row->number);
      continue;
    }
    if (!group) {
      json_object_set_new(object, row->group, json_object());
      group = json_object_get(object, row->group);
    }
    show_json_number(group, row->value, row->number);
  }
  show_json_number(object, "oldest_message_age_ms", (uint64_t)counts->message_age_ms);
  show_json_number(object, "oldest_activity_age_ms", (uint64_t)counts->activity_age_ms);
  return object;
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

static const struct {
  const char *group, *help;
} helps[] = {
  {"instances", "Instances in the store, by the status of their current execution."},
  {"executions", "Executions that are stored."},
  {"events", "Events that are stored."},
  {"messages", "Messages in the queue of the orchestrator; locked: their turn is held."},
  {"activities", "Work items in the queue of the workers; locked: a worker holds them."},
};

static const char *
help_of(const char *group)
{
  for (size_t i = 0; i < sizeof(helps) / sizeof(helps[0]); i++)
    if (strcmp(helps[i].group, group) == 0)
      return helps[i].help;
  return "";
}

static const char *const ages[] = {"message", "activity"};

/* Of a family above. */
static bool
is_own_family(const char *name)
{
  char own[64];

  for (size_t i = 0; i < sizeof(helps) / sizeof(helps[0]); i++) {
    snprintf(own, sizeof(own), "dk_%s", helps[i].group);
    if (strcmp(own, name) == 0)
      return true;
  }
  for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
    snprintf(own, sizeof(own), "dk_oldest_%s_age_seconds", ages[i]);
    if (strcmp(own, name) == 0)
      return true;
  }
  return false;
}

static void
tell_age(struct printer *printer, const char *name, int64_t ms)
{
  printer_line(printer, "# HELP dk_oldest_%s_age_seconds How long the first ready %s has waited.",
               name, name);
  printer_line(printer, "# TYPE dk_oldest_%s_age_seconds gauge", name);
  printer_line(printer, "dk_oldest_%s_age_seconds %.3f", name, (double)ms / 1000);
}

static void
tell_prometheus(struct printer *printer, const struct counts *counts)
{
  for (size_t i = 0; i < N_ROWS; i++) {
    const struct row *row = &counts->rows[i];

    if (!is_of_group(row, i > 0 ? row - 1 : NULL)) {
      printer_line(printer, "# HELP dk_%s %s", row->group, help_of(row->group));
      printer_line(printer, "# TYPE dk_%s gauge", row->group);
    }
    if (row->value)
      printer_line(printer, "dk_%s{%s=\"%s\"} %" PRIu64, row->group, row->label, row->value,
                   row->number);
    else
      printer_line(printer, "dk_%s %" PRIu64, row->group, row->number);
  }
  tell_age(printer, ages[0], counts->message_age_ms);
  tell_age(printer, ages[1], counts->activity_age_ms);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int
tell_stats(const struct host *host, const struct sums *sums, struct printer *printer)
{
  struct dk_stats stats = {.struct_size = sizeof(stats)};
  dk_status status = dk_client_stats(host->client, &stats);

  if (status != DK_OK)
    return host_failed(host, NULL, status);
  const struct counts counts = counts_of(&stats);
  if (host->options->operating.prometheus) {
    tell_prometheus(printer, &counts);
    sums_tell_prometheus(sums, printer);
  } else {
    tell_rows(printer, &counts);
    sums_tell(sums, printer);
  }
  json_t *rest = json_of_counts(&counts, stats.now);
  if (sums->n_files > 0)
    json_object_set_new(rest, "metrics", sums_json(sums));
  printer_end(printer, rest);
  return EXIT_PASSED;
}

/* The files come first: if one is wrong, the store is not opened. */
int
operate_stats(const struct options *options)
{
  struct printer printer = printer_of(options, "durakit.stats/1", NULL);
  struct sums sums;
  struct host host;
  int code = sums_read(&sums, options->operating.metrics, options->operating.n_metrics,
                       is_own_family);

  if (code == EXIT_PASSED) {
    code = host_load(&host, options, "stats");
    if (code == EXIT_PASSED)
      code = host_open(&host, DK_OPEN_READ_ONLY);
    if (code == EXIT_PASSED)
      code = tell_stats(&host, &sums, &printer);
    host_close(&host);
  }
  sums_done(&sums);
  return printer_done(&printer, code);
}
