/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit bench`: each row compares two sides that run slices in turns, so that a busy machine
 * slows both; the result is their ratio.  Absolute rates are printed beside it for orientation
 * only. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "runner/bench/bench.h"
#include "runner/cli/printer.h"
#include "runner/cli/usage.h"
#include "runner/report/out.h"
#include "runner/setup/run-setup.h"
#include "runner/system/clock.h"

enum {
  PAIRS = 7,
  MOST_PAIRS = 99,
  SLICE_MS = 200,
  TMPFS = 0x01021994
};

enum who { PROVIDER, FLOOR };

/* One side: the provider or the floor, and its workload. */
struct side {
  enum who who;
  const char *workload;
  int64_t a, b;
};

/* The first side is judged.  A rate is a share of the other's, a time a multiple of it. */
struct row {
  const char *name, *what;
  struct side sides[2];
  bool single;    /* one operation a slice */
  bool of_times;  /* else of rates */
  double reach;   /* least ratio of rates, greatest of times; 0: printed, and not judged */
};

static const struct row rows[] = {
  {"turn-1", "commits of turns, 1 caller", {{PROVIDER, "turn", 1, 0}, {FLOOR, "turn", 1, 0}},
   false, false, 0.6},
  {"turn-16", "commits of turns, 16 callers", {{PROVIDER, "turn", 16, 0}, {FLOOR, "turn", 16, 0}},
   false, false, 0.6},
  {"work-1", "fetch and ack of work, 1 caller", {{PROVIDER, "work", 1, 0}, {FLOOR, "work", 1, 0}},
   false, false, 0.6},
  {"work-16", "fetch and ack of work, 16 callers",
   {{PROVIDER, "work", 16, 0}, {FLOOR, "work", 16, 0}}, false, false, 0.6},
  {"fan-in", "fetch and ack of work, 16 callers, for one instance",
   {{PROVIDER, "fan-in", 16, 0}, {FLOOR, "fan-in", 16, 0}}, false, false, 0},
  {"cancel", "100,000 cancellations in one commit",
   {{PROVIDER, "cancel", 100000, 100000}, {FLOOR, "cancel", 100000, 100000}}, true, false, 0.6},
  {"cancel-growth", "100,000 cancellations against 1,000",
   {{PROVIDER, "cancel", 100000, 100000}, {PROVIDER, "cancel", 1000, 100000}}, true, true, 150},
  {"cancel-foreign", "50 cancellations among 1,000,000 rows against 1,000",
   {{PROVIDER, "cancel", 50, 1000000}, {PROVIDER, "cancel", 50, 1000}}, true, true, 2},
  {"timers", "turns among 100,000 future timers against none",
   {{PROVIDER, "turn-timers", 1, 100000}, {PROVIDER, "turn-timers", 1, 0}}, false, true, 2},
  {"leases", "work among 100,000 held items against none",
   {{PROVIDER, "work-leased", 1, 100000}, {PROVIDER, "work-leased", 1, 0}}, false, true, 2},
  {"turn-1-2", "commits of turns, 2 callers against 1",
   {{PROVIDER, "turn", 2, 0}, {PROVIDER, "turn", 1, 0}}, false, false, 0.9},
  {"turn-2-4", "commits of turns, 4 callers against 2",
   {{PROVIDER, "turn", 4, 0}, {PROVIDER, "turn", 2, 0}}, false, false, 0.9},
  {"turn-4-8", "commits of turns, 8 callers against 4",
   {{PROVIDER, "turn", 8, 0}, {PROVIDER, "turn", 4, 0}}, false, false, 0.9},
  {"turn-8-16", "commits of turns, 16 callers against 8",
   {{PROVIDER, "turn", 16, 0}, {PROVIDER, "turn", 8, 0}}, false, false, 0.9},
  {"work-1-2", "fetch and ack of work, 2 callers against 1",
   {{PROVIDER, "work", 2, 0}, {PROVIDER, "work", 1, 0}}, false, false, 0.9},
  {"work-2-4", "fetch and ack of work, 4 callers against 2",
   {{PROVIDER, "work", 4, 0}, {PROVIDER, "work", 2, 0}}, false, false, 0.9},
  {"work-4-8", "fetch and ack of work, 8 callers against 4",
   {{PROVIDER, "work", 8, 0}, {PROVIDER, "work", 4, 0}}, false, false, 0.9},
  {"work-8-16", "fetch and ack of work, 16 callers against 8",
   {{PROVIDER, "work", 16, 0}, {PROVIDER, "work", 8, 0}}, false, false, 0.9},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* What was measured of one side, over all slices. */
struct sum {
  double operations, seconds, syncs;
};

struct measured {
  const struct row *row;
  bool paired;              /* there is a floor, or the row needs none */
  struct figures figures;   /* of the ratios */
  struct sum sums[2];
  bool left_out;            /* the provider's limits do not allow it */
  char trouble[700];        /* why there is no figure; "": there is one */
};

struct bench {
  struct run run;
  char folder[256];         /* where its stores are */
  unsigned pairs;
  int64_t slice_ms;
  char abouts[2][256];
  bool on_disk;
  struct printer printer;
  size_t n_wanted;          /* workloads */
};

/* ---- stores ---------------------------------------------------------------------------------- */

static int
make_folder(struct bench *bench)
{
  const char *base = getenv("TMPDIR");
  struct statfs system;

  snprintf(bench->folder, sizeof(bench->folder), "%s/durakit-bench-XXXXXX",
           base && *base == '/' ? base : "/var/tmp");
  if (!mkdtemp(bench->folder)) {
    int error = errno;
    char name[256];
    memcpy(name, bench->folder, sizeof(name));
    bench->folder[0] = '\0';
    return run_refuse(&bench->run, EXIT_ENVIRONMENT,
                      &(struct problem){name, "the folder for the stores cannot be made", NULL,
                                        strerror(error), "set TMPDIR to another place"});
  }
  bench->on_disk = statfs(bench->folder, &system) == 0 && system.f_type != TMPFS;
  return EXIT_PASSED;
}

/* A store that is a path lies in a folder; all others are names on a server. */
static bool
store_is_path(const struct run *run)
{
  for (uint32_t i = 0; run->store_key && i < run->probe->n_params; i++)
    if (strcmp(run->probe->params[i].key, run->store_key) == 0)
      return strcmp(run->probe->params[i].type, "path") == 0;
  return true;
}

/* The provider's settings, with a store of its own for this side; writes its name to `value`. */
static bool
settings_of_side(const struct bench *bench, unsigned side, struct bench_provider *ret,
                 char *value, size_t size)
{
  const struct run *run = &bench->run;
  struct dk_setting *settings = calloc(run->n_settings + 1, sizeof(*settings));

  if (!settings)
    return false;
  if (run->n_settings > 0)
    memcpy(settings, run->settings, run->n_settings * sizeof(*settings));
  *ret = (struct bench_provider){run->plugin, settings, run->n_settings};
  if (!run->store_key)
    return true;
  if (run->store_value)
    snprintf(value, size, "%s-dk%s-bench%u", run->store_value, run->options->run_id, side);
  else
    snprintf(value, size, "%s/store%u", bench->folder, side);
  settings[ret->n_settings++] = (struct dk_setting){run->store_key, {value, strlen(value)}};
  return true;
}

/* A floor on a server gets the settings that name the server: never as arguments, which all users
 * can see. */
static bool
start_floor(struct bench *bench, unsigned number, struct peer *ret_peer)
{
  const struct run *run = &bench->run;
  char value[1024], answer[64];

  if (store_is_path(run) || !run->store_value)
    snprintf(value, sizeof(value), "%s/floor%u", bench->folder, number);
  else
    snprintf(value, sizeof(value), "%s-dk%s-floor%u", run->store_value, run->options->run_id,
             number);
  bool well = bench_peer_execute(ret_peer, "the floor", run->options->floor, value);
  for (size_t i = 0; well && i < run->n_settings; i++)
    well = bench_peer_ask(ret_peer, answer, sizeof(answer), "set %s=%.*s", run->settings[i].key,
                          (int)run->settings[i].value.len, run->settings[i].value.ptr);
  return well;
}

static bool
start_side(struct bench *bench, unsigned number, const struct side *side, struct peer *ret_peer)
{
  struct bench_provider provider;
  char value[1024];

  if (side->who == FLOOR)
    return start_floor(bench, number, ret_peer);
  snprintf(ret_peer->trouble, sizeof(ret_peer->trouble), "out of memory");
  if (!settings_of_side(bench, number, &provider, value, sizeof(value)))
    return false;
  bool started = bench_peer_fork(ret_peer, "the provider", bench_serve, &provider);
  free(provider.settings);
  return started;
}

/* ---- one row --------------------------------------------------------------------------------- */

/* Seconds for one operation; 0: `trouble` of the peer says why there is no figure. */
static double
measure_slice(const struct bench *bench, struct peer *peer, struct sum *sum)
{
  char answer[256];
  uint64_t operations, syncs;
  int64_t ns;

  if (!bench_peer_ask(peer, answer, sizeof(answer), "run %" PRId64, bench->slice_ms))
    return 0;
  if (sscanf(answer, "%" SCNu64 " %" SCNd64 " %" SCNu64, &operations, &ns, &syncs) != 3
      || operations == 0 || ns <= 0) {
    snprintf(peer->trouble, sizeof(peer->trouble), "no operation ended in a slice: %s",
             answer);
    return 0;
  }
  sum->operations += (double)operations;
  sum->seconds += (double)ns / 1e9;
  sum->syncs += (double)syncs;
  return (double)ns / 1e9 / (double)operations;
}

static bool
begin_side(struct peer *peer, const struct side *side)
{
  char answer[256];

  return bench_peer_ask(peer, answer, sizeof(answer), "begin %s %" PRId64 " %" PRId64,
                        side->workload,
                        side->a, side->b);
}

/* Runs one pair of slices; the sides take turns at being first. */
static bool
measure_pair(const struct bench *bench, const struct row *row, struct peer *peers, size_t sides,
             unsigned pair, struct sum *sums, double *ret_ratio)
{
  double times[2] = {0, 0};

  for (size_t i = 0; i < sides; i++) {
    size_t side = sides == 2 ? (i + pair) % 2 : i;
    times[side] = measure_slice(bench, &peers[side], &sums[side]);
    if (times[side] <= 0)
      return false;
  }
  *ret_ratio = sides < 2 ? 0 : row->of_times ? times[0] / times[1] : times[1] / times[0];
  return true;
}

/* Reports the number of finished workloads, and of finished pairs of the next. */
static void
tell_progress(struct bench *bench, size_t n_done, unsigned pairs)
{
  double share = ((double)n_done + (double)pairs / bench->pairs) / (double)bench->n_wanted;

  progress_tell(&bench->run.out->progress, n_done, bench->n_wanted, share, clock_ns());
}

static bool
measure_pairs(struct bench *bench, struct measured *m, struct peer *peers, size_t sides,
              size_t n_done)
{
  double ratios[MOST_PAIRS];
  double warm_up;
  struct sum ignored[2] = {{0, 0, 0}, {0, 0, 0}};

  for (size_t i = 0; i < sides; i++)
    if (!begin_side(&peers[i], &m->row->sides[i]))
      return false;
  if (!measure_pair(bench, m->row, peers, sides, 0, ignored, &warm_up))
    return false;
  for (unsigned i = 0; i < bench->pairs; i++) {
    if (!measure_pair(bench, m->row, peers, sides, i, m->sums, &ratios[i]))
      return false;
    tell_progress(bench, n_done, i + 1);
  }
  if (sides == 2)
    m->figures = bench_figures(ratios, bench->pairs);
  return true;
}

/* The workload needs a commit with more items than the provider allows. */
static bool
is_beyond_limits(const struct bench *bench, struct measured *m)
{
  uint64_t most = bench->run.probe->limits.max_commit_items;
  const struct side *side = &m->row->sides[0];

  if (!m->row->single || (uint64_t)side->a < most)
    return false;
  m->left_out = true;
  snprintf(m->trouble, sizeof(m->trouble), "the provider allows %" PRIu64 " items in a commit",
           most);
  return true;
}

static void
measure_row(struct bench *bench, struct measured *m, size_t n_done)
{
  const struct peer nobody = {.pid = -1, .on_wait = out_wait, .context = bench->run.out};
  struct peer peers[2] = {nobody, nobody};
  size_t sides = m->paired ? 2 : 1;
  bool well = true;

  for (unsigned i = 0; well && i < sides; i++) {
    enum who who = m->row->sides[i].who;
    well = start_side(bench, i, &m->row->sides[i], &peers[i])
           && bench_peer_ask(&peers[i], bench->abouts[who], sizeof(bench->abouts[who]), "about");
  }
  tell_progress(bench, n_done, 0);
  well = well && measure_pairs(bench, m, peers, sides, n_done);
  for (size_t i = 0; !well && i < sides && !m->trouble[0]; i++)
    if (peers[i].trouble[0])
      snprintf(m->trouble, sizeof(m->trouble), "%s: %s", peers[i].name, peers[i].trouble);
  for (size_t i = 0; i < sides; i++)
    bench_peer_end(&peers[i]);
}

/* ---- the results ----------------------------------------------------------------------------- */

static bool
is_reached(const struct measured *m)
{
  return m->row->of_times ? m->figures.median <= m->row->reach
                          : m->figures.median >= m->row->reach;
}

static double
rate(const struct sum *sum)
{
  return sum->seconds > 0 ? sum->operations / sum->seconds : 0;
}

static void
add_figures(struct dk_text *line, const struct measured *m)
{
  const struct sum *own = &m->sums[0];

  if (m->paired)
    dk_text_printf(line, " %7.2f  [%.2f, %.2f]  ", m->figures.median, m->figures.low,
                   m->figures.high);
  if (m->paired && m->row->reach > 0)
    dk_text_printf(line, "%s %g: %-3s", m->row->of_times ? "at most" : "at least", m->row->reach,
                   is_reached(m) ? "yes" : "NO");
  if (!m->paired)
    dk_text_puts(line, " no floor was given");
  if (!m->row->single)
    dk_text_printf(line, "  %8.0f ops/s", rate(own));
  if (!m->row->of_times && m->paired && !m->row->single)
    dk_text_printf(line, ", %s %.0f", m->row->sides[1].who == FLOOR ? "floor" : "against",
                   rate(&m->sums[1]));
  if (!m->row->single && own->syncs > 0)
    dk_text_printf(line, "; %.2f ops a sync", own->operations / own->syncs);
  dk_text_printf(line, "\n%16s %s", "", m->row->what);
}

static void
tell_row(struct bench *bench, const struct measured *m)
{
  struct dk_text line = DK_TEXT_EMPTY;

  dk_text_printf(&line, "%-16s", m->row->name);
  if (m->trouble[0])
    dk_text_printf(&line, "%s: %s", m->left_out ? "left out" : "failed", m->trouble);
  else
    add_figures(&line, m);
  dk_text_puts(&line, "\n");
  printer_text(&bench->printer, &line);
  printer_flush(&bench->printer);
}

static json_t *
row_json(const struct measured *m)
{
  json_t *row = json_pack("{s:s, s:s, s:f, s:b}", "name", m->row->name, "what", m->row->what,
                          "reach", m->row->reach, "at_most", m->row->of_times);

  if (m->trouble[0]) {
    json_object_set_new(row, "trouble", json_string(m->trouble));
    return row;
  }
  if (m->paired)
    json_object_set_new(row, "ratio",
                        json_pack("{s:f, s:f, s:f, s:b}", "median", m->figures.median, "low",
                                  m->figures.low, "high", m->figures.high, "reached",
                                  is_reached(m)));
  json_object_set_new(row, "operations", json_real(m->sums[0].operations));
  json_object_set_new(row, "seconds", json_real(m->sums[0].seconds));
  json_object_set_new(row, "syncs", json_real(m->sums[0].syncs));
  return row;
}

static int
tell_json(struct bench *bench, const struct measured *measured, size_t n)
{
  json_t *list = json_array();

  for (size_t i = 0; i < n; i++)
    json_array_append_new(list, row_json(&measured[i]));
  json_t *all = json_pack("{s:s, s:s, s:i, s:I, s:b, s:o}", "provider", bench->abouts[PROVIDER],
                          "floor", bench->abouts[FLOOR], "pairs", (int)bench->pairs, "slice_ms",
                          (json_int_t)bench->slice_ms, "on_disk", bench->on_disk, "rows", list);
  printer_value(&bench->printer, all);
  return printer_done(&bench->printer, EXIT_PASSED);
}

static void
tell_front(struct bench *bench)
{
  printer_line(&bench->printer,
               "%u pairs of slices of %" PRId64 " ms, in turns; a ratio is the median, with its "
               "95 %% interval.",
               bench->pairs, bench->slice_ms);
  if (!bench->on_disk && store_is_path(&bench->run))
    printer_line(&bench->printer, "The stores lie in memory, where a sync costs nothing; set "
                                  "TMPDIR to a disk to measure syncs.");
  printer_flush(&bench->printer);
}

static int
print_bench_end(struct bench *bench, const struct measured *measured, size_t n)
{
  unsigned reached = 0, missed = 0, failed = 0;

  for (size_t i = 0; i < n; i++) {
    failed += measured[i].trouble[0] && !measured[i].left_out;
    if (!measured[i].trouble[0] && measured[i].paired && measured[i].row->reach > 0)
      *(is_reached(&measured[i]) ? &reached : &missed) += 1;
  }
  if (!bench->run.options->json) {
    printer_line(&bench->printer, "provider: %s", bench->abouts[PROVIDER]);
    if (bench->abouts[FLOOR][0])
      printer_line(&bench->printer, "floor: %s", bench->abouts[FLOOR]);
    printer_line(&bench->printer, "BENCH reached=%u missed=%u failed=%u", reached, missed, failed);
  }
  return failed ? EXIT_ENVIRONMENT : EXIT_PASSED;
}

/* ---- the command ----------------------------------------------------------------------------- */

const char *
bench_name(size_t i)
{
  return i < ROWS ? rows[i].name : NULL;
}

static bool
is_wanted(const struct options *options, const struct row *row)
{
  for (size_t i = 0; i < options->n_only; i++) {
    size_t length = strlen(row->name);
    for (const char *at = options->only[i]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
      if (strncmp(at, row->name, length) == 0 && (at[length] == '\0' || at[length] == ','))
        return true;
  }
  return options->n_only == 0;
}

static int
measure_all(struct bench *bench)
{
  const struct options *options = bench->run.options;
  struct measured measured[ROWS];
  size_t n = 0;

  out_part(bench->run.out, "workloads");
  for (size_t i = 0; i < ROWS; i++)
    bench->n_wanted += is_wanted(options, &rows[i]);
  for (size_t i = 0; i < ROWS; i++) {
    if (!is_wanted(options, &rows[i]))
      continue;
    measured[n] = (struct measured){.row = &rows[i]};
    measured[n].paired = rows[i].sides[1].who == PROVIDER || options->floor;
    if (n == 0 && !options->json)
      tell_front(bench);
    if (!is_beyond_limits(bench, &measured[n]))
      measure_row(bench, &measured[n], n);
    progress_clear(&bench->run.out->progress);
    if (!options->json)
      tell_row(bench, &measured[n]);
    n++;
  }
  if (n == 0)
    return usage(options, "--only", "no workload has this name",
                 "turn-1, turn-16, work-1, work-16, fan-in, cancel, cancel-growth, "
                 "cancel-foreign, timers, leases, turn-1-2 to turn-8-16 or work-1-2 to work-8-16, "
                 "separated by commas",
                 NULL);
  int code = options->json ? tell_json(bench, measured, n) : EXIT_PASSED;
  int end = print_bench_end(bench, measured, n);
  if (!options->json)
    code = printer_done(&bench->printer, EXIT_PASSED);
  return code == EXIT_PASSED ? end : code;
}

int
command_bench(const struct options *options)
{
  struct bench bench = {
    .pairs = options->pairs ? options->pairs : PAIRS,
    .slice_ms = options->slice_ms ? options->slice_ms : SLICE_MS,
  };

  bench.printer = printer_of(options, NULL, NULL);
  int code = run_begin(&bench.run, options);
  if (code == EXIT_PASSED)
    code = run_probe(&bench.run);
  if (code == EXIT_PASSED)
    code = run_take_settings(&bench.run);
  if (code == EXIT_PASSED)
    code = run_open(&bench.run);
  if (code == EXIT_PASSED)
    code = make_folder(&bench);
  if (code == EXIT_PASSED)
    code = measure_all(&bench);
  if (bench.folder[0])
    folder_remove_tree(bench.folder, NULL);
  run_end(&bench.run);
  return code;
}
