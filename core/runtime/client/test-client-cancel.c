/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dk_cancel_one, dk_cancel_many, dk_cancel_matching: an outcome for each, what is sent,
 * and what is refused.  The turns are made by hand, on the model. */
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/cancel-outcomes.h"

/* Makes one of each kind, without counting the store's answers. */
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
     "with the reason and the requester");
  ok(is_text(h.turn->messages[0].id, "cancel"), "with the id of all requests");
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), NULL, &outcome), "==", DK_OK,
         "a second request while the first one is being taken, without a reason");
  cmp_ok(outcome.outcome, "==", DK_CANCEL_ALREADY_REQUESTED, "its outcome: requested already");
  const struct event ends[] = {
    {.kind = EVENT_CANCEL_REQUESTED}, {.kind = EVENT_CANCELLED, .by = dk_str_of("x")}};
  hand_commit(&h, 1, 2, ends, 2, DK_CANCELLED, NULL);
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, &outcome), "==", DK_OK,
         "a request after its end");
  ok(outcome.outcome == DK_CANCEL_OVER && outcome.status == DK_CANCELLED, "its outcome: over");
  cmp_ok(dk_cancel_one(h.client, dk_str_of("absent"), &options, &outcome), "==", DK_OK,
         "an instance that does not exist");
  cmp_ok(outcome.outcome, "==", DK_CANCEL_NOT_FOUND, "its outcome: not found");
  cmp_ok(hand_fetch(&h), "==", 0, "and nothing is stored for it");
  cmp_ok(dk_cancel_one(h.client, dk_str_of(""), &options, &outcome), "==", DK_INVALID,
         "what cannot be an id");
  ok(outcome.outcome == DK_CANCEL_FAILED && outcome.error == DK_INVALID &&
       strstr(outcome.text.ptr, "an id must be 1 to "),
     "its outcome: failed, with the text: %s", outcome.text.ptr);
  is(dk_client_error(h.client), outcome.text.ptr, "which is also the client's error");
  cmp_ok(dk_cancel_one(h.client, dk_str_of("absent"), &options, NULL), "==", DK_OK,
         "an outcome that the caller does not ask for");
  hand_end(&h);
}

static void
test_many(void)
{
  struct hand h;
  struct told told = nothing_told();
  const struct dk_cancel_options options = an_option();
  const dk_str ids[] = {
    dk_str_of("running"),   dk_str_of("absent"),  dk_str_of("completed"), dk_str_of("unborn"),
    dk_str_of("continued"), dk_str_of("running"), dk_str_of("cancelled"), {"a\0b", 3},
    dk_str_of("failed"),    dk_str_of("absent"),  dk_str_of("waits"),     {NULL, 0},
  };

  hand_begin(&h, false);
  make_all(&h);
  dk_client_raise(h.client, dk_str_of("waits"), "early", dk_str_of(NULL));
  uint64_t before = requests(&h);
  cmp_ok(cancel_ids(&h, ids, 12, &options, &told), "==", DK_OK, "a list");
  is(dk_text_str(&told.text),
     "running=requested/1 absent=not found/0 completed=over/2 unborn=requested/0 "
     "continued=requested/1 cancelled=over/5 a=failed/0 failed=over/3 waits=not found/0 "
     "=failed/0 ",
     "each in the order of the list, once");
  is(counted(&told), "3 requested, 0 already, 3 over, 2 not found, 2 failed",
     "and counted");
  cmp_ok(requests(&h) - before, "==", 3, "three are sent");
  is(dk_client_error(h.client), "", "without an error of the whole");
  cmp_ok(cancel_ids(&h, ids, 12, &options, &told), "==", DK_OK, "the same list");
  is(counted(&told), "0 requested, 3 already, 3 over, 2 not found, 2 failed", "again");
  cmp_ok(cancel_ids(&h, ids, 0, &options, &told), "==", DK_OK, "an empty list");
  is(counted(&told), "0 requested, 0 already, 0 over, 0 not found, 0 failed", "does nothing");
  cmp_ok(cancel_ids(&h, NULL, 3, &options, &told), "==", DK_INVALID, "no list");
  forget(&told);
  hand_end(&h);
}

/* Instances that are not started are unknown there. */
static void
test_plain(void)
{
  struct hand h;
  struct told told = nothing_told();
  const struct dk_instance_filter filter = of_name("order");
  const dk_str ids[] = {dk_str_of("completed"), dk_str_of("unborn"), dk_str_of("running"),
                        dk_str_of("absent"), dk_str_of("")};

  hand_begin(&h, true);
  make_all(&h);
  cmp_ok(cancel_ids(&h, ids, 5, NULL, &told), "==", DK_OK,
         "a list, of a provider without the extension");
  is(dk_text_str(&told.text),
     "completed=over/2 unborn=not found/0 running=requested/1 absent=not found/0 =failed/0 ",
     "what is not started is not found");
  ok(strstr(dk_text_str(&told.failures), "dk_client_cancel sends the request anyway"),
     "and the error says what to do");
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, NULL), "==", DK_UNSUPPORTED,
         "by filter");
  ok(strstr(dk_client_error(h.client), "dk_cancel_matching needs durakit.admin/1"),
     "the error gives the reason");
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
  is(dk_text_str(&told.text), "unborn=requested/0 continued=requested/1 running=requested/1 ",
     "all that have not ended, those not started first");
  forget(&told);
  filter.statuses = 1 << DK_NOT_STARTED | 1 << DK_COMPLETED;
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, &told.counts), "==", DK_OK,
         "by status");
  is(dk_text_str(&told.text), "another=requested/0 unborn=already/0 ",
     "without those that have ended");
  filter.statuses = 1 << DK_COMPLETED;
  forget(&told);
  cmp_ok(dk_cancel_matching(h.client, &filter, NULL, hear, &told, &told.counts), "==", DK_OK,
         "a filter of ended ones");
  is(dk_text_str(&told.text), "", "selects nothing");
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
  ok(strstr(dk_client_error(h.client), "the filter selects everything"), "the error says so");
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
         "all, if the statuses are given");
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
  const dk_str ids[] = {dk_str_of("running"), dk_str_of("absent"), dk_str_of("completed"),
                        dk_str_of("unborn"), dk_str_of("continued")};

  hand_begin(&h, false);
  make_all(&h);
  dk_cancel_one(h.client, dk_str_of("continued"), NULL, NULL);
  uint64_t before = requests(&h);
  options.flags = DK_CANCEL_DRY_RUN;
  cmp_ok(cancel_ids(&h, ids, 5, &options, &dry), "==", DK_OK, "a dry run");
  is(dk_text_str(&dry.text),
     "running=requested/1 absent=not found/0 completed=over/2 unborn=requested/0 "
     "continued=already/1 ",
     "reports what would be done");
  is(counted(&dry), "2 requested, 1 already, 1 over, 1 not found, 0 failed", "and counts it");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE), "==", before,
         "and sends nothing");
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
    cmp_ok(told.n, "==", 0, "no outcome is reported");
  }
  is(dk_client_error(h.client),
     "2 cancellations would be requested, expected 3: nothing was sent", "the error says so");
  options.expect = 0;
  cmp_ok(dk_cancel_by_name(h.client, "order", &options, hear, &told, NULL), "==", DK_INVALID,
         "zero is zero");
  cmp_ok(faulty_calls(h.faulty, FAULTY_ENQUEUE_MESSAGE), "==", before, "nothing was sent");
  options.expect = 1;
  options.flags = DK_CANCEL_DRY_RUN;
  cmp_ok(dk_cancel_by_name(h.client, "order", &options, hear, &told, &told.counts), "==",
         DK_INVALID, "in a dry run, too");
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

/* A reason has at most 1,024 bytes, a requester at most 256. */
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
         strstr(dk_client_error(h.client), bad[i].why),
       "the error says why: %s", dk_client_error(h.client));
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
  ok(strstr(dk_client_error(h.client), "the reason has 1025 bytes, but at most 1024 are stored"),
     "is not cut: %s", dk_client_error(h.client));
  longest[1024] = '\0';
  options.by = longest + 1024 - 257;
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, NULL), "==", DK_INVALID,
         "a name of 257");
  options.by = "";
  cmp_ok(dk_cancel_one(h.client, dk_str_of("running"), &options, NULL), "==", DK_INVALID,
         "an empty one");
  ok(strstr(dk_client_error(h.client), "the requester (by) is empty"), "the error says so");
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
         "an unknown flag");
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
  return exit_status();
}
