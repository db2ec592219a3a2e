/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dk_cancel_one, dk_cancel_many, dk_cancel_matching: an outcome for each, and what is sent.
 * The turns are made by hand, on the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/hand.h"

/* ---- what was told --------------------------------------------------------------------------- */

struct told {
  struct dk_client *client;
  struct dk_text text;       /* "id=outcome/status " of each */
  struct dk_text failures;   /* the texts of those that failed */
  unsigned n, stop_after;    /* 0: never */
  struct dk_cancel_counts counts;
};

static const char *const outcomes[] = {"none", "requested", "already", "over", "not found",
                                       "failed"};

static int32_t
hear(void *context, const struct dk_cancel_outcome *outcome)
{
  struct told *told = context;

  dk_text_printf(&told->text, "%.*s=%s/%d ", (int)outcome->instance.len, outcome->instance.ptr,
                 outcomes[outcome->outcome], (int)outcome->status);
  if (outcome->text.ptr)
    dk_text_printf(&told->failures, "%d %s\n", (int)outcome->error, outcome->text.ptr);
  return ++told->n == told->stop_after;
}

static struct told
nothing_told(void)
{
  return (struct told){.text = DK_TEXT_EMPTY,
                       .failures = DK_TEXT_EMPTY,
                       .counts = {.struct_size = sizeof(struct dk_cancel_counts)}};
}

static void
forget(struct told *told)
{
  dk_text_done(&told->text);
  dk_text_done(&told->failures);
  *told = nothing_told();
}

static struct dk_cancel_options
an_option(void)
{
  return (struct dk_cancel_options){.struct_size = sizeof(struct dk_cancel_options),
                                    .reason = "too late",
                                    .by = "user:me@here",
                                    .expect = UINT64_MAX};
}

/* What was counted, as text. */
static const char *
counted(const struct told *told)
{
  static char words[128];
  const struct dk_cancel_counts *c = &told->counts;

  snprintf(words, sizeof(words), "%d requested, %d already, %d over, %d not found, %d failed",
           (int)c->requested, (int)c->already_requested, (int)c->over, (int)c->not_found,
           (int)c->failed);
  return words;
}

static dk_status
cancel_ids(struct hand *h, const dk_str *ids, size_t n, const struct dk_cancel_options *options,
           struct told *told)
{
  forget(told);
  return dk_cancel_many(h->client, ids, n, options, hear, told, &told->counts);
}

/* How many messages of the id "cancel" are stored. */
static uint64_t
requests(struct hand *h)
{
  return faulty_successes(h->faulty, FAULTY_ENQUEUE_MESSAGE);
}

static struct dk_instance_filter
of_name(const char *name)
{
  return (struct dk_instance_filter){.struct_size = sizeof(struct dk_instance_filter),
                                     .name = dk_str_of(name)};
}

/* One of each kind, and the store's answers to that are not counted. */
static void
make_all(struct hand *h)
{
  hand_make(h, dk_str_of("completed"), DK_COMPLETED);
  hand_make(h, dk_str_of("failed"), DK_FAILED);
  hand_make(h, dk_str_of("cancelled"), DK_CANCELLED);
  hand_make(h, dk_str_of("continued"), DK_CONTINUED_AS_NEW);
  hand_make(h, dk_str_of("running"), DK_RUNNING);
  hand_store(h, dk_str_of("unborn"));
}

/* ---- outcomes -------------------------------------------------------------------------------- */

static void
test_one(void)
{
  struct hand h;
  const struct dk_cancel_options options = an_option();
  struct dk_cancel_outcome outcome = {.struct_size = sizeof(outcome)};

  hand_begin(&h, false);
  hand_start(&h, dk_str_of("running"));
  cmp_ok(dk_cancel_one(h.client, (dk_str){"runningXYZ", 7}, &options, &outcome), "==", DK_OK,
         "one is cancelled, whose id needs no NUL");
  ok(outcome.outcome == DK_CANCEL_REQUESTED && outcome.status == DK_RUNNING &&
       outcome.error == DK_OK && !outcome.text.ptr,
     "its outcome: requested");
  cmp_ok(hand_fetch(&h), "==", 1, "a message is stored");
  struct message message = hand_message(&h, 0);
  ok(message.kind == MESSAGE_CANCEL && is_text(message.text, "too late") &&
       is_text(message.by, "user:me@here") && !message.parent.instance.ptr,
     "which says why, and who asks");
  ok(is_text(h.turn->messages[0].id, "cancel"), "with the id of all requests");
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), NULL, &outcome), "==", DK_OK,
         "asked again while the first one is being taken, without words");
  cmp_ok(outcome.outcome, "==", DK_CANCEL_ALREADY_REQUESTED, "its outcome: requested already");
  const struct event ends[] = {
    {.kind = EVENT_CANCEL_REQUESTED}, {.kind = EVENT_CANCELLED, .by = dk_str_of("x")}};
  hand_commit(&h, 1, 2, ends, 2, DK_CANCELLED, NULL);
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, &outcome), "==", DK_OK,
         "asked when it is over");
  ok(outcome.outcome == DK_CANCEL_OVER && outcome.status == DK_CANCELLED, "its outcome: over");
  cmp_ok(dk_cancel_one(h.client, dk_str_of("nobody"), &options, &outcome), "==", DK_OK,
         "one that is not there");
  cmp_ok(outcome.outcome, "==", DK_CANCEL_NOT_FOUND, "its outcome: not found");
  cmp_ok(hand_fetch(&h), "==", 0, "and nothing is stored for it");
  cmp_ok(dk_cancel_one(h.client, dk_str_of(""), &options, &outcome), "==", DK_INVALID,
         "what cannot be an id");
  ok(outcome.outcome == DK_CANCEL_FAILED && outcome.error == DK_INVALID &&
       strstr(outcome.text.ptr, "an id has to be 1 to "),
     "its outcome: failed, with words: %s", outcome.text.ptr);
  is(dk_client_error(h.client), outcome.text.ptr, "which are the error's");
  cmp_ok(dk_cancel_one(h.client, dk_str_of("nobody"), &options, NULL), "==", DK_OK,
         "an outcome that nobody wants");
  hand_end(&h);
}

static void
test_many(void)
{
  struct hand h;
  struct told told = nothing_told();
  const struct dk_cancel_options options = an_option();
  const dk_str ids[] = {
    dk_str_of("running"),   dk_str_of("nobody"),  dk_str_of("completed"), dk_str_of("unborn"),
    dk_str_of("continued"), dk_str_of("running"), dk_str_of("cancelled"), {"a\0b", 3},
    dk_str_of("failed"),    dk_str_of("nobody"),  dk_str_of("waits"),     {NULL, 0},
  };

  hand_begin(&h, false);
  make_all(&h);
  dk_client_raise(h.client, dk_str_of("waits"), "early", dk_str_of(NULL));
  uint64_t before = requests(&h);
  cmp_ok(cancel_ids(&h, ids, 12, &options, &told), "==", DK_OK, "a list");
  is(dk_text_str(&told.text),
     "running=requested/1 nobody=not found/0 completed=over/2 unborn=requested/0 "
     "continued=requested/1 cancelled=over/5 a=failed/0 failed=over/3 waits=not found/0 "
     "=failed/0 ",
     "each in the order of the list, once");
  is(counted(&told), "3 requested, 0 already, 3 over, 2 not found, 2 failed",
     "and counted");
  cmp_ok(requests(&h) - before, "==", 3, "so many are sent");
  is(dk_client_error(h.client), "", "without an error of the whole");
  cmp_ok(cancel_ids(&h, ids, 12, &options, &told), "==", DK_OK, "the same list");
  is(counted(&told), "0 requested, 3 already, 3 over, 2 not found, 2 failed", "again");
  cmp_ok(cancel_ids(&h, ids, 0, &options, &told), "==", DK_OK, "an empty list");
  is(counted(&told), "0 requested, 0 already, 0 over, 0 not found, 0 failed", "does nothing");
  cmp_ok(cancel_ids(&h, NULL, 3, &options, &told), "==", DK_INVALID, "no list");
  forget(&told);
  hand_end(&h);
}

/* Nobody knows of what is not started there. */
static void
test_plain(void)
{
  struct hand h;
  struct told told = nothing_told();
  const struct dk_instance_filter filter = of_name("order");
  const dk_str ids[] = {dk_str_of("completed"), dk_str_of("unborn"), dk_str_of("running"),
                        dk_str_of("nobody"), dk_str_of("")};

  hand_begin(&h, true);
  make_all(&h);
  cmp_ok(cancel_ids(&h, ids, 5, NULL, &told), "==", DK_OK,
         "a list, of a provider without the extension");
  is(dk_text_str(&told.text),
     "completed=over/2 unborn=not found/0 running=requested/1 nobody=not found/0 =failed/0 ",
     "what is not started is not found");
  ok(strstr(dk_text_str(&told.failures), "dk_client_cancel asks all the same"),
     "and what to do is told");
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, NULL), "==", DK_UNSUPPORTED,
         "by filter");
  ok(strstr(dk_client_error(h.client), "dk_cancel_matching needs durakit.admin/1"), "says why");
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, hear, &told, NULL), "==", DK_UNSUPPORTED,
         "by name, too");
  forget(&told);
  hand_end(&h);
}

/* ---- by filter ------------------------------------------------------------------------------- */

static void
test_matching(void)
{
  struct hand h;
  struct told told = nothing_told();
  struct dk_instance_filter filter = of_name(NULL);

  hand_begin(&h, false);
  make_all(&h);
  h.name = "report";
  hand_store(&h, dk_str_of("another"));
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, hear, &told, &told.counts), "==", DK_OK,
         "by name");
  is(dk_text_str(&told.text), "continued=requested/1 running=requested/1 unborn=requested/0 ",
     "all of it that is not over, born or not");
  forget(&told);
  filter.statuses = 1 << DK_NOT_STARTED | 1 << DK_COMPLETED;
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, &told.counts), "==", DK_OK,
         "by status");
  is(dk_text_str(&told.text), "another=requested/0 unborn=already/0 ", "without what is over");
  filter.statuses = 1 << DK_COMPLETED;
  forget(&told);
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, &told.counts), "==", DK_OK,
         "what is over");
  is(dk_text_str(&told.text), "", "is nothing");
  hand_end(&h);
}

static void
test_everything(void)
{
  struct hand h;
  struct told told = nothing_told();
  struct dk_instance_filter filter = of_name(NULL);

  hand_begin(&h, false);
  make_all(&h);
  uint64_t before = requests(&h);
  told.counts.requested = 77;
  cmp_ok(dk_cancel_matching(h.client, NULL, NULL, hear, &told, &told.counts), "==", DK_INVALID,
         "no filter");
  ok(strstr(dk_client_error(h.client), "the filter selects everything"), "with words");
  is(counted(&told), "0 requested, 0 already, 0 over, 0 not found, 0 failed", "counts are written");
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, NULL), "==", DK_INVALID,
         "an empty one");
  filter.flags = DK_FILTER_ROOTS;
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, NULL), "==", DK_INVALID,
         "one for all roots");
  cmp_ok(dk_cancel_by_name(h.client, NULL, NULL, hear, &told, NULL), "==", DK_INVALID, "no name");
  cmp_ok(dk_cancel_by_name(h.client, "", NULL, hear, &told, NULL), "==", DK_INVALID,
         "an empty name");
  cmp_ok(requests(&h), "==", before, "nothing is sent");
  filter.statuses = 1 << DK_NOT_STARTED | 1 << DK_RUNNING;
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, &told.counts), "==", DK_OK,
         "all, if that is said");
  is(counted(&told), "3 requested, 0 already, 0 over, 0 not found, 0 failed", "is all");
  forget(&told);
  hand_end(&h);
}

/* ---- dry, and as expected -------------------------------------------------------------------- */

static void
test_dry(void)
{
  struct hand h;
  struct told dry = nothing_told(), wet = nothing_told();
  struct dk_cancel_options options = an_option();
  const dk_str ids[] = {dk_str_of("running"), dk_str_of("nobody"), dk_str_of("completed"),
                        dk_str_of("unborn"), dk_str_of("continued")};

  hand_begin(&h, false);
  make_all(&h);
  dk_cancel_one(h.client, dk_str_of("continued"), NULL, NULL);
  uint64_t before = requests(&h);
  options.flags = DK_CANCEL_DRY_RUN;
  cmp_ok(cancel_ids(&h, ids, 5, &options, &dry), "==", DK_OK, "a dry run");
  is(dk_text_str(&dry.text),
     "running=requested/1 nobody=not found/0 completed=over/2 unborn=requested/0 "
     "continued=already/1 ",
     "tells what would be done");
  is(counted(&dry), "2 requested, 1 already, 1 over, 1 not found, 0 failed", "and counts it");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE), "==", before, "and asks nothing to be done");
  options.flags = 0;
  cancel_ids(&h, ids, 5, &options, &wet);
  is(dk_text_str(&wet.text), dk_text_str(&dry.text), "which then is what is done");
  forget(&dry);
  forget(&wet);
  hand_end(&h);
}

static void
test_expected(void)
{
  struct hand h;
  struct told told = nothing_told();
  struct dk_cancel_options options = an_option();

  hand_begin(&h, false);
  make_all(&h);
  dk_cancel_one(h.client, dk_str_of("continued"), NULL, NULL);
  uint64_t before = faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE);
  for (uint64_t wrong = 1; wrong <= 3; wrong += 2) {
    options.expect = wrong;
    forget(&told);
    cmp_ok(dk_cancel_by_name(h.client, "order", &options, hear, &told, &told.counts), "==",
           DK_INVALID, "%d expected, where there are 2", (int)wrong);
    is(counted(&told), "2 requested, 1 already, 0 over, 0 not found, 0 failed",
       "what was found is counted");
    cmp_ok(told.n, "==", 0, "nobody is told of any");
  }
  is(dk_client_error(h.client),
     "2 cancellations would be asked for, expected 3: nothing is sent", "it is said");
  options.expect = 0;
  cmp_ok(dk_cancel_by_name(h.client, "order", &options, hear, &told, NULL), "==", DK_INVALID,
         "zero is zero");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE), "==", before, "nothing was sent");
  options.expect = 1;
  options.flags = DK_CANCEL_DRY_RUN;
  cmp_ok(dk_cancel_by_name(h.client, "order", &options, hear, &told, &told.counts), "==",
         DK_INVALID, "a dry run says so, too");
  cmp_ok(told.n, "==", 3, "and tells of each");
  options.flags = 0;
  options.expect = 2;
  forget(&told);
  cmp_ok(dk_cancel_by_name(h.client, "order", &options, hear, &told, &told.counts), "==", DK_OK,
         "as expected");
  is(counted(&told), "2 requested, 1 already, 0 over, 0 not found, 0 failed", "it is done");
  options.expect = 0;
  cmp_ok(dk_cancel_by_name(h.client, "order", &options, hear, &told, NULL), "==", DK_OK,
         "now none is expected");
  forget(&told);
  hand_end(&h);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* As a reason: 1,024 bytes at most; as a name: 256. */
static void
test_words(void)
{
  static const struct {
    const char *text, *why;
  } bad[] = {
    {"two\nlines", "the control character U+000A at byte 3"},
    {"\033[2J", "the control character U+001B at byte 0"},
    {"bell\x7f", "the control character U+007F at byte 4"},
    {"\xc2\x9b" "2J", "the control character U+009B at byte 0"},
    {"\xff", "is not valid UTF-8 at byte 0"},
    {"cut\xe2\x82", "is not valid UTF-8 at byte 3"},
    {"\xed\xa0\x80", "is not valid UTF-8 at byte 0"},
  };
  static const char *const good[] = {"\"quoted\" \\ 'so' <b>", "\xf0\x9f\x9b\x91 halt", "\xc2\xa0",
                                     " ", "%s %n", "'; DROP TABLE messages; --"};
  struct hand h;
  struct dk_cancel_options options = an_option();
  dk_str id = dk_str_of("running");

  hand_begin(&h, false);
  hand_start(&h, id);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    options = an_option();
    options.reason = bad[i].text;
    cmp_ok(dk_cancel_one(h.client, id, &options, NULL), "==", DK_INVALID, "a bad reason");
    ok(strstr(dk_client_error(h.client), "the reason ") &&
         strstr(dk_client_error(h.client), bad[i].why), "is told: %s", dk_client_error(h.client));
    options = an_option();
    options.by = bad[i].text;
    cmp_ok(dk_cancel_one(h.client, id, &options, NULL), "==", DK_INVALID, "or a bad name");
    cmp_ok(dk_client_cancel(h.client, id, NULL, bad[i].text), "==", DK_INVALID, "everywhere");
  }
  cmp_ok(hand_fetch(&h), "==", 0, "nothing is sent");
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    options.reason = options.by = good[i];
    cmp_ok(dk_cancel_one(h.client, id, &options, NULL), "==", DK_OK, "%s", good[i]);
    cmp_ok(hand_fetch(&h), "==", 1, "is sent");
    struct message message = hand_message(&h, 0);
    ok(is_text(message.text, good[i]) && is_text(message.by, good[i]), "as it is");
    hand_commit(&h, 1, 2 + i, &(struct event){.kind = EVENT_RAISED, .name = dk_str_of("e")}, 1,
                DK_RUNNING, NULL);
  }
  hand_end(&h);
}

static void
test_lengths(void)
{
  struct hand h;
  struct dk_cancel_options options = an_option();
  char longest[1026];

  hand_begin(&h, false);
  hand_start(&h, dk_str_of("running"));
  memset(longest, 'x', sizeof(longest));
  longest[1025] = '\0';
  options.reason = longest;
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, NULL), "==", DK_INVALID,
         "a reason of 1,025 bytes");
  ok(strstr(dk_client_error(h.client), "the reason has 1025 bytes, and at most 1024 are stored"),
     "is not cut: %s", dk_client_error(h.client));
  longest[1024] = '\0';
  options.by = longest + 1024 - 257;
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, NULL), "==", DK_INVALID,
         "a name of 257");
  options.by = "";
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, NULL), "==", DK_INVALID,
         "an empty one");
  ok(strstr(dk_client_error(h.client), "who asks (by) is empty"), "is told");
  options.by = longest + 1024 - 256;
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, NULL), "==", DK_OK,
         "1,024 and 256 are stored");
  cmp_ok(hand_fetch(&h), "==", 1, "once");
  struct message message = hand_message(&h, 0);
  ok(is_text(message.text, longest) && is_text(message.by, longest + 1024 - 256), "whole");
  options.struct_size -= 8;
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, NULL), "==", DK_INVALID,
         "options of another size");
  options = an_option();
  options.flags = 2;
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, NULL), "==", DK_UNSUPPORTED,
         "a flag that nobody knows");
  hand_end(&h);
}

/* ---- a store that fails ---------------------------------------------------------------------- */

static const dk_str three[] = {{"a", 1}, {"b", 1}, {"c", 1}};

static void
make_three(struct hand *h)
{
  for (size_t i = 0; i < 3; i++)
    hand_store(h, three[i]);
}

static void
test_unknown(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "an answer that was lost");
  is(counted(&told), "3 requested, 0 already, 0 over, 0 not found, 0 failed",
     "is asked for again, and what is found is our own");
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "or another's");
  is(counted(&told), "1 requested, 2 already, 0 over, 0 not found, 0 failed",
     "which nobody can tell then");
  forget(&told);
  hand_end(&h);
}

static void
test_busy(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, 3, FAULT_REFUSE, DK_BUSY);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "a store that is busy for a moment");
  is(counted(&told), "3 requested, 0 already, 0 over, 0 not found, 0 failed", "is waited for");
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, 9, FAULT_REFUSE, DK_BUSY);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "for longer");
  is(dk_text_str(&told.text), "a=already/0 b=failed/0 c=already/0 ", "it is not for one, and the "
     "others go on");
  ok(strstr(dk_text_str(&told.failures), "100 enqueue_for_orchestrator: DK_BUSY: "), "why: %s",
     dk_text_str(&told.failures));
  is(dk_client_error(h.client), "", "of which the whole does not fail");
  faulty_plan(h.faulty, FAULTY_LIST_INSTANCES, 0, 2, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "a store that is away for a moment");
  is(counted(&told), "0 requested, 3 already, 0 over, 0 not found, 0 failed", "is waited for, too");
  forget(&told);
  hand_end(&h);
}

/* It goes away behind the first of three, and stays away. */
static void
test_away(void)
{
  struct hand h;
  struct told told = nothing_told();
  struct dk_instance_filter filter = of_name("order");

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  uint64_t before = faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_UNAVAILABLE, "a store that goes away");
  is(dk_text_str(&told.text), "a=requested/0 b=failed/0 c=failed/0 ", "leaves the others undone");
  is(counted(&told), "1 requested, 0 already, 0 over, 0 not found, 2 failed", "which is counted");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE) - before, "==", 10,
         "without being asked for each of them");
  ok(strstr(dk_client_error(h.client), "DK_UNAVAILABLE"), "with words");
  forget(&told);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 1, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, &told.counts), "==",
         DK_UNAVAILABLE, "by filter");
  is(counted(&told), "0 requested, 1 already, 0 over, 0 not found, 1 failed", "what was tried");
  faulty_heal(h.faulty);
  faulty_plan(h.faulty, FAULTY_LIST_INSTANCES, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_UNAVAILABLE, "away from the beginning");
  is(dk_text_str(&told.text), "a=failed/0 b=failed/0 c=failed/0 ", "all are undone");
  faulty_heal(h.faulty);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_OK, "and when it is back");
  is(dk_text_str(&told.text), "a=already/0 b=requested/0 c=requested/0 ", "the rest is done");
  forget(&told);
  hand_end(&h);
}

static void
test_read_only(void)
{
  struct hand h;
  struct told told = nothing_told();
  struct dk_cancel_options options = an_option();

  hand_begin(&h, false);
  make_three(&h);
  faulty_plan(h.faulty, FAULTY_ENQUEUE_MESSAGE, 0, UINT32_MAX, FAULT_REFUSE, DK_REFUSED);
  uint64_t before = faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE);
  cmp_ok(cancel_ids(&h, three, 3, &options, &told), "==", DK_REFUSED, "a store that is read-only");
  is(dk_text_str(&told.text), "a=failed/0 b=failed/0 c=failed/0 ", "refuses all");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE) - before, "==", 1, "and is asked once");
  options.flags = DK_CANCEL_DRY_RUN;
  cmp_ok(cancel_ids(&h, three, 3, &options, &told), "==", DK_OK, "a dry run goes");
  is(counted(&told), "3 requested, 0 already, 0 over, 0 not found, 0 failed", "and tells");
  forget(&told);
  hand_end(&h);
}

/* ---- who ends it ----------------------------------------------------------------------------- */

static void
test_stopped(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  told.stop_after = 2;
  cmp_ok(dk_cancel_many(h.client, three, 3, NULL, hear, &told, &told.counts), "==",
         DK_CALL_CANCELLED, "a function that has heard enough");
  is(dk_text_str(&told.text), "a=requested/0 b=requested/0 ", "ends it");
  is(counted(&told), "2 requested, 0 already, 0 over, 0 not found, 0 failed", "what was done");
  forget(&told);
  told.stop_after = 1;
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, hear, &told, &told.counts), "==",
         DK_CALL_CANCELLED, "by name, too");
  cmp_ok(told.counts.already_requested, "==", 1, "with its counts");
  dk_cancel(h.canceller);
  cmp_ok(cancel_ids(&h, three, 3, NULL, &told), "==", DK_CALL_CANCELLED, "called back");
  is(counted(&told), "0 requested, 0 already, 0 over, 0 not found, 0 failed",
     "nothing was tried, and none has failed");
  dk_canceller_reset(h.canceller);
  cmp_ok(dk_cancel_many(h.client, three, 3, NULL, NULL, NULL, NULL), "==", DK_OK,
         "nobody has to hear of it");
  forget(&told);
  hand_end(&h);
}

/* Called back while a store that is away is waited for. */
static int32_t
call_back(void *context, const struct dk_cancel_outcome *outcome)
{
  struct hand *h = context;

  (void)outcome;
  faulty_plan(h->faulty, FAULTY_ENQUEUE_MESSAGE, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  dk_cancel(h->canceller);
  return 0;
}

static void
test_called_back(void)
{
  struct hand h;
  struct dk_cancel_counts counts = {.struct_size = sizeof(counts)};

  hand_begin(&h, false);
  make_three(&h);
  cmp_ok(dk_cancel_many(h.client, three, 3, NULL, call_back, &h, &counts), "==", DK_CALL_CANCELLED,
         "called back behind the first");
  ok(counts.requested == 1 && counts.failed == 0, "which is done, and none has failed");
  hand_end(&h);
}

/* The function may use the client. */
static int32_t
look(void *context, const struct dk_cancel_outcome *outcome)
{
  struct told *told = context;
  struct dk_instance_info info = hand_info();

  told->n += dk_client_status(told->client, outcome->instance, &info) == DK_OK &&
             info.status == outcome->status;
  return 0;
}

static void
test_use_within(void)
{
  struct hand h;
  struct told told = nothing_told();

  hand_begin(&h, false);
  make_three(&h);
  told.client = h.client;
  cmp_ok(dk_cancel_by_name(h.client, "order", NULL, look, &told, NULL), "==", DK_OK,
         "a function that asks the client, too");
  cmp_ok(told.n, "==", 3, "has its answers");
  hand_end(&h);
}

int
main(void)
{
  plan(NO_PLAN);
  test_one();
  test_many();
  test_plain();
  test_matching();
  test_everything();
  test_dry();
  test_expected();
  test_words();
  test_lengths();
  test_unknown();
  test_busy();
  test_away();
  test_read_only();
  test_stopped();
  test_called_back();
  test_use_within();
  return exit_status();
}
