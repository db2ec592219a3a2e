/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metrics.h: that the text is what Prometheus reads, with any names; that each count
 * is shown in its place and in no other.  What changes them in a runtime: test-activity-metrics.c
 * and test-turn-metrics.c. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/prometheus-text.h"
#include "core/runtime/turn/turn.h"

#define NAME(bytes) ((dk_str){bytes, sizeof(bytes) - 1})

static struct scrape *
scrape(struct log *log)
{
  struct dk_text text = DK_TEXT_EMPTY;

  metrics_write(log, &text);
  if (dk_text_failed(&text))
    BAIL_OUT("no memory for the metrics");
  struct scrape *found = scrape_read((dk_str){dk_text_str(&text), text.length});
  dk_text_done(&text);
  return found;
}

/* The changes since `*before`, which then gets the present metrics. */
static bool
have_changed(struct log *log, struct scrape **before, const char *expected)
{
  struct scrape *now = scrape(log);
  char *changes = scrape_changes(*before, now);
  bool is_expected = now->complaint[0] == '\0' && strcmp(changes, expected) == 0;

  if (!is_expected)
    diag("%s\nfound:\n%sexpected:\n%s", now->complaint, changes, expected);
  free(changes);
  scrape_free(*before);
  *before = now;
  return is_expected;
}

static struct log *
begin(void)
{
  struct log *log = calloc(1, sizeof(*log));

  if (!log)
    BAIL_OUT("no memory for a log");
  log_init(log, NULL, NULL, "w");
  return log;
}

static void
end(struct log *log, struct scrape *last)
{
  scrape_free(last);
  log_done(log);
  free(log);
}

/* ---- the reader ------------------------------------------------------------------------------ */

#define HEAD "# HELP m It counts.\n# TYPE m counter\n"
#define DURATION "# HELP h It lasts.\n# TYPE h histogram\n"

/* The reader finds what breaks the format; otherwise the tests below would show nothing. */
static void
test_reader(void)
{
  static const struct {
    const char *text, *complaint;
  } samples[] = {
    {HEAD "m{a=\"x\"} 1\nm{a=\"y\",b=\"\\\\ \\\" \\n\"} 2.5\n", ""},
    {HEAD "m 1\n\n# for people\n# HELP n Other.\n# TYPE n gauge\nn -1\n", ""},
    {HEAD "m 1", "does not end with a line"},
    {HEAD "m{a=\"\xff\"} 1\n", "is not UTF-8"},
    {"m 1\n", "no HELP and TYPE"},
    {"# HELP m It counts.\nm 1\n", "no HELP and TYPE"},
    {HEAD "# TYPE m counter\nm 1\n", "second TYPE"},
    {HEAD "# HELP m Again.\nm 1\n", "second HELP"},
    {HEAD "m 1\n# HELP m Again.\n", "have to be together"},
    {"# HELP m It \\counts.\n", "escape"},
    {"# HELP m It counts.\n# TYPE m number\n", "is not a type"},
    {HEAD "n 1\n", "does not belong"},
    {HEAD "m{a=\"x\"} 1\nm{a=\"x\"} 2\n", "was listed before"},
    {HEAD "m{a=\"\\t\"} 1\n", "is not an escape"},
    {HEAD "m{a=\"x} 1\n", "ends with a quote"},
    {HEAD "m{a=x} 1\n", "begins with a quote"},
    {HEAD "m{a=\"x\" b=\"y\"} 1\n", "separated by commas"},
    {HEAD "m{0=\"x\"} 1\n", "a label is a name"},
    {HEAD "m{a=\"x\"}\n", "a blank"},
    {HEAD "m one\n", "a number"},
    {HEAD "m -1\n", "less than 0"},
    {HEAD "0m 1\n", "begins with a metric"},
    {DURATION "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\n", ""},
    {DURATION "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 4\nh_count 1\n", "less than"},
    {DURATION "h_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 2\nh_sum 4\nh_count 2\n", "less than"},
    {DURATION "h_bucket{le=\"1\"} 2\nh_sum 4\nh_count 2\n", "do not end with +Inf"},
    {DURATION "h_bucket{le=\"+Inf\"} 2\nh_sum 4\nh_count 3\n", "differs from the bucket +Inf"},
    {DURATION "h_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 4\n", "sum and count"},
    {DURATION "h_sum 4\nh_count 3\n", "no buckets"},
    {DURATION "h 4\n", "does not belong"},
  };

  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
    struct scrape *read = scrape_read(dk_str_of(samples[i].text));
    bool is_right = samples[i].complaint[0] ? strstr(read->complaint, samples[i].complaint) != NULL
                                            : read->complaint[0] == '\0';
    ok(is_right, "the reader of sample %zu %s%s", i + 1,
       samples[i].complaint[0] ? "complains: " : "does not complain", samples[i].complaint);
    if (!is_right)
      diag("complaint: \"%s\"", read->complaint);
    scrape_free(read);
  }
}

static void
test_changes(void)
{
  struct scrape *first = scrape_read(dk_str_of(HEAD "m{a=\"x\"} 1\nm{a=\"y\"} 1\nm{a=\"z\"} 1\n"));
  struct scrape *second = scrape_read(dk_str_of(HEAD "m{a=\"x\"} 1\nm{a=\"y\"} 4\nm{a=\"v\"} 2\n"));
  char *changes = scrape_changes(first, second);

  is(changes, "m{a=\"y\"} +3\nm{a=\"v\"} +2\nm{a=\"z\"} is missing\n", "changes are listed");
  ok(scrape_alike(changes, "m{a=\"y\"} +N\nm{a=\"v\"} +2\nm{a=\"z\"} is missing\n"), "compared");
  ok(!scrape_alike(changes, "m{a=\"y\"} +3\nm{a=\"v\"} +2\n"), "one too many is found");
  ok(!scrape_alike(changes, "m{a=\"y\"} +3\nm{a=\"v\"} +3\nm{a=\"z\"} is missing\n"),
     "a wrong one");
  free(changes);
  scrape_free(first);
  scrape_free(second);
}

/* ---- each in its place ----------------------------------------------------------------------- */

static void
test_empty(void)
{
  static const char *const names[] = {
    "dk_cancel_requests_total",    "dk_activities_cancelled_total",
    "dk_activity_cancel_notification_seconds",
    "dk_activity_cancel_grace_total", "dk_activity_stuck", "dk_lock_renewals_total",
    "dk_work_acks_total",          "dk_turns_total", "dk_orchestrations_total",
    "dk_orchestrations_failed_total", "dk_delayed_total",
    "dk_activities_started_total", "dk_activities_total",
  };
  const size_t n = sizeof(names) / sizeof(names[0]);
  struct log *log = begin();
  struct scrape *now = scrape(log);
  size_t n_right = 0, n_zero = 0;

  is(now->complaint, "", "the text of nothing is right");
  cmp_ok(now->n_families, "==", n, "all families are there");
  for (size_t i = 0; i < n && i < now->n_families; i++)
    n_right += strcmp(now->families[i].name, names[i]) == 0 && now->families[i].help[0] != '\0';
  cmp_ok(n_right, "==", n, "by these names, with help");
  for (size_t i = 0; i < now->n_samples; i++)
    n_zero += now->samples[i].value == 0;
  cmp_ok(n_zero, "==", now->n_samples, "all is 0");
  cmp_ok(now->n_samples, "==", 4 * 17 + 3 + 1 + 3 + 6 + 4 + 4 + 6 + 12 + 1 + 5,
         "and there from the beginning, but for what has a name");
  end(log, now);
}

/* A counter of the log changes its sample, and no other. */
static void
test_counters(void)
{
  static const struct {
    enum counter counter;
    const char *series;
  } shown[] = {
      {COUNT_GRACE_KEPT, "dk_activity_cancel_grace_total{outcome=\"kept\"}"},
      {COUNT_GRACE_QUARANTINED, "dk_activity_cancel_grace_total{outcome=\"quarantined\"}"},
      {COUNT_GRACE_KILLED, "dk_activity_cancel_grace_total{outcome=\"killed\"}"},
      {COUNT_QUARANTINED_NOW, "dk_activity_stuck"},
      {COUNT_RENEWALS, "dk_lock_renewals_total{result=\"ok\"}"},
      {COUNT_RENEWALS_RETRIED, "dk_lock_renewals_total{result=\"retried\"}"},
      {COUNT_RENEWALS_LOST, "dk_lock_renewals_total{result=\"lost\"}"},
      {COUNT_WORK_ACKS_OK, "dk_work_acks_total{result=\"ok\"}"},
      {COUNT_WORK_ACKS_REFUSED, "dk_work_acks_total{result=\"refused\"}"},
      {COUNT_WORK_ACKS_RETRIED, "dk_work_acks_total{result=\"retried\"}"},
      {COUNT_WORK_ACKS_LOST, "dk_work_acks_total{result=\"lost\"}"},
      {COUNT_WORK_ACKS_UNKNOWN, "dk_work_acks_total{result=\"unknown\"}"},
      {COUNT_WORK_ACKS_ERROR, "dk_work_acks_total{result=\"error\"}"},
      {COUNT_TURNS_COMMITTED, "dk_turns_total{outcome=\"committed\"}"},
      {COUNT_TURNS_DROPPED, "dk_turns_total{outcome=\"dropped\"}"},
      {COUNT_TURNS_STALLED, "dk_turns_total{outcome=\"stalled\"}"},
      {COUNT_TURNS_LOST, "dk_turns_total{outcome=\"lost\"}"},
      {COUNT_ORCHESTRATIONS_COMPLETED, "dk_orchestrations_total{outcome=\"completed\"}"},
      {COUNT_ORCHESTRATIONS_FAILED, "dk_orchestrations_total{outcome=\"failed\"}"},
      {COUNT_ORCHESTRATIONS_CANCELLED, "dk_orchestrations_total{outcome=\"cancelled\"}"},
      {COUNT_ORCHESTRATIONS_CONTINUED, "dk_orchestrations_total{outcome=\"continued\"}"},
      {COUNT_FAILED + CODE_APPLICATION, "dk_orchestrations_failed_total{code=\"application\"}"},
      {COUNT_FAILED + CODE_POISON, "dk_orchestrations_failed_total{code=\"poison\"}"},
      {COUNT_FAILED + CODE_NONDETERMINISM,
       "dk_orchestrations_failed_total{code=\"nondeterminism\"}"},
      {COUNT_FAILED + CODE_CORRUPT, "dk_orchestrations_failed_total{code=\"corrupt\"}"},
      {COUNT_FAILED + CODE_LIMIT, "dk_orchestrations_failed_total{code=\"limit\"}"},
      {COUNT_FAILED + CODE_UNREGISTERED, "dk_orchestrations_failed_total{code=\"unregistered\"}"},
      {COUNT_DELAYED + DELAY_UNREGISTERED, "dk_delayed_total{code=\"unregistered\"}"},
      {COUNT_DELAYED + DELAY_NONDETERMINISM, "dk_delayed_total{code=\"nondeterminism\"}"},
      {COUNT_DELAYED + DELAY_CORRUPT, "dk_delayed_total{code=\"corrupt\"}"},
      {COUNT_DELAYED + DELAY_UNREADABLE, "dk_delayed_total{code=\"unreadable\"}"},
      {COUNT_DELAYED + DELAY_LIMIT, "dk_delayed_total{code=\"limit\"}"},
      {COUNT_DELAYED + DELAY_WRONG_CALL, "dk_delayed_total{code=\"wrong_call\"}"},
      {COUNT_DELAYED + DELAY_OVERDUE, "dk_delayed_total{code=\"overdue\"}"},
      {COUNT_DELAYED + DELAY_STUCK, "dk_delayed_total{code=\"stuck\"}"},
      {COUNT_DELAYED + DELAY_NO_MEMORY, "dk_delayed_total{code=\"no_memory\"}"},
      {COUNT_DELAYED + DELAY_TAKEN, "dk_delayed_total{code=\"taken\"}"},
      {COUNT_DELAYED + DELAY_REFUSED, "dk_delayed_total{code=\"refused\"}"},
      {COUNT_DELAYED + DELAY_NO_START, "dk_delayed_total{code=\"no_start\"}"},
      {COUNT_ACTIVITIES_STARTED, "dk_activities_started_total"},
      {COUNT_ACTIVITIES_COMPLETED, "dk_activities_total{outcome=\"completed\"}"},
      {COUNT_ACTIVITIES_FAILED, "dk_activities_total{outcome=\"failed\"}"},
      {COUNT_ACTIVITIES_CANCELLED, "dk_activities_total{outcome=\"cancelled\"}"},
      {COUNT_ACTIVITIES_LOST, "dk_activities_total{outcome=\"lost\"}"},
      {COUNT_ACTIVITIES_PUT_OFF, "dk_activities_total{outcome=\"put_off\"}"},
  };
  struct log *log = begin();
  struct scrape *before = scrape(log);
  size_t n_right = 0;

  for (int counter = 0; counter < N_COUNTERS; counter++) {
    char expected[128] = "";
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
      if ((int)shown[i].counter == counter)
        snprintf(expected, sizeof(expected), "%s +1\n", shown[i].series);
    log_count(log, (enum counter)counter);
    n_right += have_changed(log, &before, expected);
  }
  cmp_ok(n_right, "==", N_COUNTERS, "each counter moves its sample, if it has one, and no other");
  log_uncount(log, COUNT_QUARANTINED_NOW);
  ok(have_changed(log, &before, "dk_activity_stuck -1\n"), "a gauge goes down, too");
  end(log, before);
}

static void
test_requests(void)
{
  static const char *const sources[] = {"api", "parent"};
  static const char *const outcomes[] = {"requested", "already_requested", "terminal",
                                         "not_found", "refused"};
  struct log *log = begin();
  struct scrape *before = NULL;
  size_t n_right = 0;

  for (int source = 0; source < N_REQUEST_SOURCES; source++)
    for (int outcome = 0; outcome < N_REQUEST_OUTCOMES; outcome++) {
      char expected[128];
      uint64_t n = (uint64_t)(source + outcome + 1);
      metrics_requested(&log->metrics, (enum request_source)source, (enum request_outcome)outcome,
                        dk_str_of("order"), n);
      snprintf(expected, sizeof(expected), "dk_cancel_requests_total{source=\"%s\","
               "outcome=\"%s\",name=\"order\"} +%llu\n", sources[source], outcomes[outcome],
               (unsigned long long)n);
      n_right += have_changed(log, &before, expected);
    }
  cmp_ok(n_right, "==", 10, "each source and outcome of a request has its sample");
  metrics_requested(&log->metrics, REQUEST_BY_API, REQUEST_FOR_NOBODY, dk_str_of(NULL), 1);
  ok(have_changed(log, &before,
                  "dk_cancel_requests_total{source=\"api\","
                  "outcome=\"not_found\",name=\"\"} +1\n"),
     "whose name is not known has none");
  end(log, before);
}

static void
test_cancelled(void)
{
  static const char *const phases[] = {"queued", "locked", "absent", "unknown"};
  struct log *log = begin();
  struct scrape *before = NULL;
  size_t n_right = 0, n = 0;

  for (int code = CODE_SELECT_LOSER_TIMEOUT; code < N_CODES; code++)
    for (int phase = 0; phase < N_PHASES; phase++, n++) {
      char expected[128];
      metrics_cancelled(&log->metrics, (enum code)code, (enum cancel_phase)phase,
                        dk_str_of("charge"));
      snprintf(expected, sizeof(expected), "dk_activities_cancelled_total{code=\"%s\","
               "phase=\"%s\",name=\"charge\"} +1\n", code_name((enum code)code), phases[phase]);
      n_right += have_changed(log, &before, expected);
    }
  cmp_ok(n_right, "==", n, "each code and phase of an activity has its sample");
  end(log, before);
}

/* ---- what a store says of its commit --------------------------------------------------------- */

#define CANCELLED(phase, name, n)                                                                  \
  "dk_activities_cancelled_total{code=\"dropped\",phase=\"" phase "\",name=\"" name "\"} +" n "\n"

/* Three are cancelled, of which the store says that so many were free and locked, and names `named`
 * of those. */
struct said {
  const char *what;
  uint64_t n_free, n_locked;
  size_t named;
  bool is_mute, is_incomplete, is_unsure;
  const char *expected;
};

static bool
counts_as(const struct said *said)
{
  struct cancelled cancelled[] = {{7, CODE_DROPPED, dk_str_of("a")},
                                  {5, CODE_DROPPED, dk_str_of("b")},
                                  {9, CODE_DROPPED, dk_str_of("b")}};
  struct dk_stolen stolen[] = {{.execution_id = 1, .activity_id = 9},
                               {.execution_id = 1, .activity_id = 7},
                               {.execution_id = 1, .activity_id = 5}};
  const struct dk_commit_outcome outcome = {
    .report = {.free_rows = said->n_free, .locked_rows = said->n_locked},
    .reported = !said->is_mute, .incomplete = said->is_incomplete, .stolen = stolen,
    .n_stolen = said->named};
  struct log *log = begin();
  struct turn_shared turn_shared = {.log = log};
  struct turn turn = {.shared = &turn_shared,
                      .is_unsure = said->is_unsure,
                      .decision = {.execution = 1, .cancelled = cancelled, .n_cancelled = 3}};
  struct scrape *before = NULL;

  dk_arena_init(&turn.arena);
  commit_count_cancelled(&turn, &outcome);
  dk_arena_done(&turn.arena);
  bool is_expected = have_changed(log, &before, said->expected);
  end(log, before);
  return is_expected;
}

static void
test_reports(void)
{
  static const struct said all[] = {
    {"all were free", 3, 0, 0, .expected = CANCELLED("queued", "a", "1")
     CANCELLED("queued", "b", "2")},
    {"all were locked", 0, 3, 3, .expected = CANCELLED("locked", "a", "1")
     CANCELLED("locked", "b", "2")},
    {"none was there", 0, 0, 0, .expected = CANCELLED("absent", "a", "1")
     CANCELLED("absent", "b", "2")},
    {"one was locked, the others were free", 2, 1, 1, .expected = CANCELLED("queued", "a", "1")
     CANCELLED("queued", "b", "1") CANCELLED("locked", "b", "1")},
    {"one was locked, the others absent", 0, 1, 1, .expected = CANCELLED("absent", "a", "1")
     CANCELLED("locked", "b", "1") CANCELLED("absent", "b", "1")},
    {"two were locked, and the third was free", 1, 2, 2,
     .expected = CANCELLED("locked", "a", "1") CANCELLED("queued", "b", "1")
     CANCELLED("locked", "b", "1")},
    {"one of two that are not alike was free", 1, 1, 1,
     .expected = CANCELLED("unknown", "a", "1") CANCELLED("locked", "b", "1")
     CANCELLED("unknown", "b", "1")},
    {"more were locked than it has named", 0, 3, 1,
     .expected = CANCELLED("unknown", "a", "1") CANCELLED("locked", "b", "1")
     CANCELLED("unknown", "b", "1")},
    {"its names could not be kept", 2, 1, 1, .is_incomplete = true,
     .expected = CANCELLED("unknown", "a", "1") CANCELLED("locked", "b", "1")
     CANCELLED("unknown", "b", "1")},
    {"it says nothing", 0, 0, 0, .is_mute = true, .expected = CANCELLED("unknown", "a", "1")
     CANCELLED("unknown", "b", "2")},
    {"a repetition says nought", 0, 0, 0, .is_unsure = true,
     .expected = CANCELLED("unknown", "a", "1") CANCELLED("unknown", "b", "2")},
    {"a repetition names one", 2, 1, 1, .is_unsure = true,
     .expected = CANCELLED("unknown", "a", "1") CANCELLED("locked", "b", "1")
     CANCELLED("unknown", "b", "1")},
  };

  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    ok(counts_as(&all[i]), "of three activities %s", all[i].what);
}

static void
test_notified(void)
{
  static const struct {
    int64_t ns;
    const char *le; /* the first that has it */
    const char *less;
  } samples[] = {
    {0, "0.0001", NULL},          {-5, "0.0001", NULL},
    {100000, "0.0001", NULL},     {100001, "0.0005", "0.0001"},
    {1000000000, "1", "0.5"},     {25000000000, "30", "10"},
    {300000000000, "300", "60"},  {300000000001, "+Inf", "300"},
    {INT64_MAX, "+Inf", "300"},
  };
  static const char *const paths[] = {"local", "renew", "ack", "deadline"};
  struct log *log = begin();
  struct scrape *before = NULL;
  size_t n_right = 0;
  char text[128];

  for (int32_t learnt = DK_LEARNT_BY_COMMIT; learnt <= DK_LEARNT_BY_DEADLINE; learnt++) {
    metrics_notified(&log->metrics, learnt, 1500000);
    snprintf(text, sizeof(text), "dk_activity_cancel_notification_seconds_count{path=\"%s\"} +1\n",
             paths[learnt - 1]);
    n_right += have_changed(log, &before, text);
  }
  cmp_ok(n_right, "==", 4, "each way to learn has its histogram");
  metrics_notified(&log->metrics, DK_LEARNT_BY_ACK, 2500000000);
  scrape_free(before);
  before = scrape(log);
  ok(scrape_value(before, "dk_activity_cancel_notification_seconds_sum{path=\"ack\"}") == 2.5015,
     "whose sum is in seconds");
  for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
    struct scrape *last = before;
    metrics_notified(&log->metrics, DK_LEARNT_BY_ACK, samples[i].ns);
    before = scrape(log);
    snprintf(text, sizeof(text), "dk_activity_cancel_notification_seconds_bucket{path=\"ack\","
             "le=\"%s\"}", samples[i].le);
    bool is_within = scrape_value(before, text) == scrape_value(last, text) + 1;
    snprintf(text, sizeof(text), "dk_activity_cancel_notification_seconds_bucket{path=\"ack\","
             "le=\"%s\"}", samples[i].less ? samples[i].less : "none");
    ok(is_within && scrape_value(before, text) == scrape_value(last, text),
       "%lld ns are within %s s, and not within less", (long long)samples[i].ns, samples[i].le);
    is(before->complaint, "", "and the text is right");
    scrape_free(last);
  }
  end(log, before);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void
count_one(struct log *log, dk_str name)
{
  metrics_cancelled(&log->metrics, CODE_DROPPED, PHASE_QUEUED, name);
}

static double
counted(const struct scrape *now, const char *name)
{
  const struct scrape_sample *sample =
    scrape_find(now, "dk_activities_cancelled_total", "name", name);

  return sample ? sample->value : 0;
}

static void
test_hostile_names(void)
{
  static const char *const names[] = {
    "a \"quoted\" name", "two\nlines", "back\\slash", "\\n is no line", "\xf0\x9f\xa6\x80 crab",
    "\\", "\"", "\n", "{name=\"x\"} 1", "a,b=\"c\"", "# HELP", " ", "\t\r\x01\x7f", "\\\\\"\n\n",
  };
  const size_t n = sizeof(names) / sizeof(names[0]);
  struct log *log = begin();
  size_t n_right = 0;

  for (size_t i = 0; i < n; i++)
    for (size_t times = 0; times <= i; times++)
      count_one(log, dk_str_of(names[i]));
  struct scrape *now = scrape(log);
  is(now->complaint, "", "hostile names break nothing");
  for (size_t i = 0; i < n; i++)
    n_right += counted(now, names[i]) == (double)(i + 1);
  cmp_ok(n_right, "==", n, "and each comes out as it went in");
  cmp_ok((int)counted(now, "other"), "==", 0, "as a name of its own");
  end(log, now);
}

/* What cannot be a label, or would be one that is taken. */
static void
test_names_that_are_none(void)
{
  struct log *log = begin();
  struct scrape *before = NULL;
  char longest[255], longer[256];

  memset(longest, 'x', sizeof(longest));
  memset(longer, 'x', sizeof(longer));
  count_one(log, NAME("not \xff UTF-8"));
  count_one(log, NAME("a NUL \0 in it"));
  count_one(log, NAME("half a character \xf0\x9f"));
  count_one(log, (dk_str){longer, sizeof(longer)});
  count_one(log, NAME("other"));
  ok(have_changed(log, &before,
                  "dk_activities_cancelled_total{code=\"dropped\","
                  "phase=\"queued\",name=\"other\"} +5\n"),
     "what is not a name is counted as other");
  count_one(log, (dk_str){longest, sizeof(longest)});
  scrape_free(before);
  before = scrape(log);
  cmp_ok((int)counted(before, "other"), "==", 5, "a name as long as can be registered is its own");
  end(log, before);
}

static void
test_many_names(void)
{
  struct log *log = begin();
  struct scrape *before = NULL;
  char name[16];
  size_t n_right = 0;

  for (int i = 0; i < METRIC_NAMES; i++) {
    snprintf(name, sizeof(name), "name-%d", i);
    count_one(log, dk_str_of(name));
  }
  before = scrape(log);
  for (int i = 0; i < METRIC_NAMES; i++) {
    snprintf(name, sizeof(name), "name-%d", i);
    n_right += counted(before, name) == 1;
  }
  cmp_ok(n_right, "==", 100, "a hundred names are counted separately");
  cmp_ok((int)counted(before, "other"), "==", 0, "and none is counted as other");
  count_one(log, dk_str_of("the 101st"));
  count_one(log, dk_str_of("the 102nd"));
  ok(have_changed(log, &before,
                  "dk_activities_cancelled_total{code=\"dropped\","
                  "phase=\"queued\",name=\"other\"} +2\n"),
     "later ones are counted as other");
  count_one(log, dk_str_of("name-99"));
  ok(have_changed(log, &before,
                  "dk_activities_cancelled_total{code=\"dropped\","
                  "phase=\"queued\",name=\"name-99\"} +1\n"),
     "known names are still counted separately");
  metrics_requested(&log->metrics, REQUEST_BY_API, REQUEST_TAKEN, dk_str_of("order"), 1);
  ok(have_changed(log, &before,
                  "dk_cancel_requests_total{source=\"api\","
                  "outcome=\"requested\",name=\"order\"} +1\n"),
     "and names of orchestrations are another matter");
  end(log, before);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, TIMES = 5000 };

static void *
count_often(void *context)
{
  struct log *log = context;
  char name[16];

  for (int i = 0; i < TIMES; i++) {
    snprintf(name, sizeof(name), "name-%d", i % (2 * METRIC_NAMES));
    count_one(log, dk_str_of(name));
    metrics_notified(&log->metrics, DK_LEARNT_BY_COMMIT, 1000);
  }
  return NULL;
}

static void
test_threads(void)
{
  struct log *log = begin();
  pthread_t threads[THREADS];
  struct scrape *now = NULL;
  double sum = 0;
  int n_wrong = 0;

  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, count_often, log) != 0)
      BAIL_OUT("no thread");
  for (int i = 0; i < 20; i++) {
    now = scrape(log);
    n_wrong += now->complaint[0] != '\0';
    scrape_free(now);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  cmp_ok(n_wrong, "==", 0, "the text is right while it is counted");
  now = scrape(log);
  for (size_t i = 0; i < now->n_samples; i++)
    if (strcmp(now->samples[i].name, "dk_activities_cancelled_total") == 0)
      sum += now->samples[i].value;
  cmp_ok((int)sum, "==", THREADS * TIMES, "threads count together, and nothing is lost");
  cmp_ok((int)scrape_value(now, "dk_activity_cancel_notification_seconds_count{path=\"local\"}"),
         "==", THREADS * TIMES, "durations, too");
  end(log, now);
}

int
main(void)
{
  plan(NO_PLAN);
  test_reader();
  test_changes();
  test_empty();
  test_counters();
  test_requests();
  test_cancelled();
  test_reports();
  test_notified();
  test_hostile_names();
  test_names_that_are_none();
  test_many_names();
  test_threads();
  return done_testing();
}
