/* SPDX-License-Identifier: Apache-2.0 */
/* ERR-1, ABI-13, ABI-14: a store is made, opened or destroyed, and in the midst of that a system
 * call fails, or memory runs out: at each place, one after the other, once and from then on.  The
 * answer may be that it should be tried again; then it is, nothing fails, and all is there that
 * belongs there, or nothing is.  What the failed call has left in the process the kit sees. */
#include "conformance/checks/checks.h"
#include "conformance/kit/engine.h"

#include <errno.h>

/* What fails.  Memory is no system call: it has no errno. */
struct lack {
  const char *name;
  bool is_memory;
  bool is_once;         /* only; else also from then on */
  enum failing of;
  int error;
};

struct trial {
  struct dk_check *t;
  struct actor *other;  /* every second next open is made by this process; NULL: by none */
  const struct lack *lack;
  bool lasts;
  uint32_t n;           /* which request fails */
  uint32_t seen;        /* how many there were */
};

enum { MOST_REQUESTS = 10000 };

/* ---- one call -------------------------------------------------------------------------------- */

static void
order(struct trial *trial)
{
  const struct lack *lack = trial->lack;

  if (lack->is_memory)
    run_out_of_memory(trial->t, trial->n, trial->lasts);
  else
    fail_in_next_call(trial->t, NULL,
                      (struct fault){lack->of, lack->error, trial->lasts, trial->n});
}

/* Where a right is missing it is of no use to try again; but nor is it wrong, for the right is
 * there. */
static bool
judge(struct trial *trial, const char *what, dk_status status)
{
  struct last_call last = last_call_of(trial->t, NULL);
  const struct lack *lack = trial->lack;

  trial->seen = lack->is_memory ? requests_for_memory(trial->t) : last.calls;
  say_in_trace(trial->t, "%u of %u was to fail%s: %s%s", trial->n, trial->seen,
               trial->lasts ? ", and all later ones" : "", lack->name,
               lack->is_memory ? "" : last.at);
  expect(trial->t,
         status == DK_OK || dk_status_class(status) == 1 || dk_status_class(status) == 3 ||
           (lack->error == EACCES && status == DK_REFUSED),
         "%s may be tried again, or its outcome is unknown%s, where this fails: %s%s", what,
         lack->error == EACCES ? ", or it is DK_REFUSED" : "", lack->name,
         lack->is_memory ? "" : last.at);
  return status == DK_OK;
}

/* ---- what is there --------------------------------------------------------------------------- */

static struct actor *
who_is_next(const struct trial *trial)
{
  return trial->n % 2 == 0 ? trial->other : NULL;
}

/* Puts it in by this handle, and finds it. */
static void
use_new(struct trial *trial, struct actor *on)
{
  struct dk_check *t = trial->t;

  must(t, enqueue(t, "inst", .on = on, .id = "once", .payload = "kept"));
  struct dk_turn *turn = fetch_turn(t, .on = on);
  expect_ids(t, turn, "once");
  must(t, ack_turn(t, turn, .on = on, .empty = true));
}

static void
given_old(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst", .id = "once", .payload = "kept"));
}

static void
find_old(struct trial *trial, struct actor *on)
{
  struct dk_check *t = trial->t;
  struct dk_turn *turn = fetch_turn(t, .on = on);

  expect_ids(t, turn, "once");
  expect_text(t, turn->messages[0].payload, "kept", "payload of the message");
  expect_equal(t, turn->n_events, 1, "events of the history");
  must(t, abandon_turn(t, turn->head.lock_token, .on = on, .ignore_attempt = true));
}

/* ---- scenes: each begins and ends with the check's own handle closed ------------------------- */

static void
open_again(struct trial *trial, const char *what, void (*use)(struct trial *, struct actor *))
{
  struct dk_check *t = trial->t;

  order(trial);
  if (judge(trial, what, try_open_handle(t))) {
    use(trial, NULL);
    close_handle(t, NULL);
  }
  open_handle(t, who_is_next(trial));
  use(trial, who_is_next(trial));
  close_handle(t, who_is_next(trial));
}

static void
make(struct trial *trial)
{
  must(trial->t, destroy_store(trial->t, NULL));
  open_again(trial, "an open that makes the store", use_new);
}

static void
find(struct trial *trial)
{
  open_again(trial, "an open of a store that exists", find_old);
}

static void
find_to_read(struct trial *trial)
{
  struct dk_check *t = trial->t;

  order(trial);
  judge(trial, "an open that only reads",
        open_status(t, clock_flag(t) | DK_OPEN_READ_ONLY, NULL));
  open_handle(t, who_is_next(trial));
  find_old(trial, who_is_next(trial));
  close_handle(t, who_is_next(trial));
}

/* Another process has made it, if there is one.  Destroyed in part, it is destroyed by the next
 * call. */
static void
destroy_again(struct trial *trial)
{
  struct dk_check *t = trial->t;

  open_handle(t, trial->other);
  must(t, enqueue(t, "inst", .on = trial->other));
  close_handle(t, trial->other);
  order(trial);
  if (!judge(trial, "destroy_store", destroy_store(t, NULL)))
    must(t, destroy_store(t, NULL));
  expect_no_store(t, NULL);
}

/* ---- through all places ---------------------------------------------------------------------- */

static uint32_t
next_place(const struct trial *trial)
{
  enum { AMONG = 12 };

  if (trial->lack->is_memory)
    return further_request(trial->t, trial->n);
  return trial->n + (kit_under_memcheck() && trial->n > 0 ? AMONG : 1);
}

static uint32_t
fail_at_each(struct trial *trial, void (*scene)(struct trial *trial))
{
  int ways = trial->lack->is_once || takes_long(trial->t) ? 1 : 2;
  uint32_t all = 0;

  for (int lasts = 0; lasts < ways; lasts++) {
    trial->lasts = lasts != 0;
    trial->n = trial->seen = 0;
    while (trial->seen >= trial->n && trial->n < MOST_REQUESTS) { /* it was reached */
      trial->n = next_place(trial);
      scene(trial);
      all += trial->seen;
    }
  }
  return all;
}

/* Begins with a new store, and ends with none. */
static uint32_t
open_and_fail(struct trial *trial)
{
  struct dk_check *t = trial->t;
  bool lasts = provider(t)->durable > 0;
  uint32_t all = 0;

  if (lasts)
    given_old(t);
  close_handle(t, NULL);
  if (lasts)
    all += fail_at_each(trial, find) + fail_at_each(trial, find_to_read);
  return all + fail_at_each(trial, make);
}

static void
end_with_a_store(struct dk_check *t, uint32_t seen, const char *why_none)
{
  open_handle(t, NULL);
  if (seen == 0)
    skip_check(t, why_none);
}

static const struct lack of_files[] = {
  {"a full disk, ", .of = CHANGES_FILE, .error = ENOSPC},
  {"a broken disk, ", .is_once = true, .of = CHANGES_FILE, .error = EIO},
  {"a disk that does not answer, ", .of = READS_FILE, .error = ETIMEDOUT},
  {"no right to open it, ", .of = OPENS_FILE, .error = EACCES},
};
enum { LACKS = sizeof(of_files) / sizeof(of_files[0]) };

static const char no_files[] =
  "does not see how this provider reads and writes: not by functions of the C library that the kit "
  "can stand in for (open, pread, pwrite, ...)";

/* ERR-1: an open that cannot read or write may be tried again, and then finds or makes a store. */
void
disk_open_fails(struct dk_check *t)
{
  struct trial trial = {.t = t, .other = another_process(t)};
  uint32_t seen = 0;

  for (size_t i = 0; i < LACKS; i++) {
    trial.lack = &of_files[i];
    seen += open_and_fail(&trial);
    must(t, destroy_store(t, NULL));
    open_handle(t, NULL);
  }
  close_handle(t, NULL);
  end_with_a_store(t, seen, no_files);
}

/* ABI-14: a destroy_store that cannot read or write answers so, and the next one removes all. */
void
disk_destroy_fails(struct dk_check *t)
{
  struct trial trial = {.t = t, .other = another_process(t)};
  uint32_t seen = 0;

  close_handle(t, NULL);
  for (size_t i = 0; i < LACKS; i++) {
    trial.lack = &of_files[i];
    seen += fail_at_each(&trial, destroy_again);
  }
  end_with_a_store(t, seen, no_files);
}

/* ERR-1: the same for both where memory runs out. */
void
err_no_memory_to_open(struct dk_check *t)
{
  static const struct lack memory = {.name = "no memory", .is_memory = true};
  struct trial trial = {.t = t, .lack = &memory};

  if (provider(t)->runtime & DK_RUNTIME_ABORTS)
    skip_check(t, "does not judge a provider whose library ends the process where memory runs out "
               "(DK_RUNTIME_ABORTS)");
  uint32_t seen = open_and_fail(&trial);
  seen += fail_at_each(&trial, destroy_again);
  end_with_a_store(t, seen, "does not see how this provider asks for memory: not by functions of "
                   "the C library that the kit can stand in for (malloc, calloc, realloc, ...)");
}

/* ERR-1: ... and where the process has no descriptor left. */
void
err_no_descriptor_to_open(struct dk_check *t)
{
  static const struct lack descriptors = {
    "no descriptor is left, ", .of = ASKS_DESCRIPTOR, .error = EMFILE
  };
  struct trial trial = {.t = t, .lack = &descriptors};

  uint32_t seen = open_and_fail(&trial);
  seen += fail_at_each(&trial, destroy_again);
  end_with_a_store(t, seen, "does not see how this provider gets descriptors: not by functions of "
                   "the C library that the kit can stand in for (open, socket, eventfd, ...)");
}
