/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of requests to cancel, with a whole runtime: for an instance that is not started, for
 * one that continues as new meanwhile, and for many at once. */
#include <durakit/manage.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

static atomic_int entered;

static dk_result
counts(dk_orch *o, dk_str input)
{
  atomic_fetch_add(&entered, 1);
  dk_await(o, dk_external(o, "never"));
  return dk_completed(o, input);
}

static const struct dk_cancel_options *
asked(const char *reason, const char *by)
{
  static struct dk_cancel_options options;

  options = (struct dk_cancel_options){
    .struct_size = sizeof(options), .reason = reason, .by = by, .expect = UINT64_MAX};
  return &options;
}

static int32_t
cancel(struct rig *rig, const char *instance, const char *reason)
{
  struct dk_cancel_outcome outcome = {.struct_size = sizeof(outcome)};

  if (dk_cancel_one(rig->client, dk_str_of(instance), asked(reason, "user:me@here"), &outcome) !=
      DK_OK)
    diag("%s: %s", instance, dk_client_error(rig->client));
  return outcome.outcome;
}

/* ---- what is not started --------------------------------------------------------------------- */

static void
test_not_started(void)
{
  struct rig rig = rig_begin();
  struct dk_instance_info info = {.struct_size = sizeof(info)};

  atomic_store(&entered, 0);
  rig_orchestration(&rig, "counts", counts);
  rig_run(&rig, "i", "counts", "in");
  cmp_ok(dk_client_status(rig.client, dk_str_of("i"), &info), "==", DK_OK, "a start is stored");
  cmp_ok(info.status, "==", DK_NOT_STARTED, "and is seen, though no turn was committed");
  cmp_ok(cancel(&rig, "i", "not any more"), "==", DK_CANCEL_REQUESTED, "it is cancelled");
  cmp_ok(cancel(&rig, "i", "never"), "==", DK_CANCEL_ALREADY_REQUESTED,
         "a second request changes nothing");
  rig_start(&rig);
  is(rig_result(&rig, "i"), "cancelled: not any more (user:me@here)",
     "then it ends as cancelled, with reason and name");
  cmp_ok(atomic_load(&entered), "==", 0, "and has never run");
  cmp_ok(rig_count_events(&rig, "i", EVENT_CANCEL_REQUESTED), "==", 1, "one request");
  cmp_ok(rig_count_events(&rig, "i", EVENT_CANCELLED), "==", 1, "one end");
  cmp_ok(cancel(&rig, "i", "again"), "==", DK_CANCEL_OVER, "it has ended");
  is(rig_result(&rig, "i"), "cancelled: not any more (user:me@here)", "and stays so");
  rig_end(&rig);
}

/* The request is stored before the start. */
static void
test_before_the_start(void)
{
  struct rig rig = rig_begin();

  atomic_store(&entered, 0);
  rig_orchestration(&rig, "counts", counts);
  if (dk_client_cancel(rig.client, dk_str_of("i"), "beforehand", "me") != DK_OK)
    BAIL_OUT("no request: %s", dk_client_error(rig.client));
  cmp_ok(cancel(&rig, "i", "never"), "==", DK_CANCEL_NOT_FOUND,
         "a request alone is nothing to cancel");
  rig_run(&rig, "i", "counts", "in");
  cmp_ok(cancel(&rig, "i", "never"), "==", DK_CANCEL_ALREADY_REQUESTED, "but it counts");
  rig_start(&rig);
  is(rig_result(&rig, "i"), "cancelled: beforehand (me)", "the first one's words");
  cmp_ok(atomic_load(&entered), "==", 0, "it has never run");
  rig_end(&rig);
}

/* ---- continuing as new ----------------------------------------------------------------------- */

static struct rig *asking;

/* The requests are stored while its turn runs, which does not see them. */
static dk_result
goes_on(dk_orch *o, dk_str input)
{
  if (atomic_fetch_add(&entered, 1) == 0) {
    cmp_ok(cancel(asking, "i", "the first"), "==", DK_CANCEL_REQUESTED,
           "asked while its turn is made");
    cmp_ok(cancel(asking, "i", "the second"), "==", DK_CANCEL_ALREADY_REQUESTED, "and again");
  }
  dk_continue_as_new(o, input, NULL);
}

static void
test_continued(void)
{
  struct rig rig = rig_begin();
  struct dk_instance_info info = {.struct_size = sizeof(info)};

  atomic_store(&entered, 0);
  asking = &rig;
  rig_orchestration(&rig, "goes on", goes_on);
  rig_run(&rig, "i", "goes on", "in");
  rig_start(&rig);
  is(rig_result(&rig, "i"), "cancelled: the first (user:me@here)",
     "the next execution is cancelled, for the first reason");
  cmp_ok(atomic_load(&entered), "==", 1, "and has not run");
  dk_client_status(rig.client, dk_str_of("i"), &info);
  cmp_ok(info.execution_id, "==", 2, "it is the second");
  cmp_ok(rig_count_events(&rig, "i", EVENT_CANCEL_REQUESTED), "==", 1, "with one request");
  rig_end(&rig);
}

/* ---- many ------------------------------------------------------------------------------------ */

enum { MANY = 300 };

static int32_t
commit_count_requests(void *context, const struct dk_history_entry *entry)
{
  *(unsigned *)context += strcmp(entry->kind, "cancel_requested") == 0 &&
                          strcmp(entry->text.ptr, "all of them") == 0;
  return 0;
}

/* Half of them run and wait, half are not started when they are cancelled by their name, by two
 * requests at once. */
static void
test_many(void)
{
  struct rig rig = rig_begin();
  struct dk_cancel_counts first = {.struct_size = sizeof(first)}, second = first;
  unsigned n_requests = 0, n_cancelled = 0;
  char id[32];

  atomic_store(&entered, 0);
  rig_orchestration(&rig, "counts", counts);
  rig_orchestration(&rig, "other", counts);
  for (int i = 0; i < MANY / 2; i++)
    rig_run(&rig, (snprintf(id, sizeof(id), "%d", i), id), "counts", "");
  rig_run(&rig, "other", "other", "");
  rig_start(&rig);
  ok(UNTIL(atomic_load(&entered) == MANY / 2 + 1), "half of them wait");
  rig_stop(&rig, RIG_WAIT_MS);
  for (int i = MANY / 2; i < MANY; i++)
    rig_run(&rig, (snprintf(id, sizeof(id), "%d", i), id), "counts", "");
  cmp_ok(dk_cancel_by_name(rig.client, "counts", asked("all of them", "me"), NULL, NULL, &first),
         "==", DK_OK, "all of a name are cancelled");
  dk_cancel_by_name(rig.client, "counts", asked("once more", "me"), NULL, NULL, &second);
  cmp_ok(first.requested, "==", MANY, "each");
  ok(second.requested == 0 && second.already_requested == MANY, "once");
  rig_start(&rig);
  for (int i = 0; i < MANY; i++) {
    snprintf(id, sizeof(id), "%d", i);
    n_cancelled += strcmp(rig_result(&rig, id), "cancelled: all of them (me)") == 0;
    dk_client_history(rig.client, dk_str_of(id), 0, 1, 0, commit_count_requests, &n_requests);
  }
  cmp_ok(n_cancelled, "==", MANY, "each ends as cancelled");
  cmp_ok(n_requests, "==", MANY, "with one request in its history");
  cmp_ok(atomic_load(&entered), "==", MANY / 2 + 1, "those that were not started have not run");
  cmp_ok(rig_count_events(&rig, "other", EVENT_CANCEL_REQUESTED), "==", 0,
         "and no other instance received a request");
  rig_end(&rig);
}

int
main(void)
{
  plan(NO_PLAN);
  test_not_started();
  test_before_the_start();
  test_continued();
  test_many();
  return done_testing();
}
