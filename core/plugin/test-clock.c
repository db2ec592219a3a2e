/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks: the system's, and the virtual one with threads and with processes. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <durakit/clock.h>

#include "conformance/tap/tap.h"
#include "core/plugin/look.h"

enum { START = 1000000 };

/* ---- helpers --------------------------------------------------------------------------------- */

static void *
shared_memory(size_t size)
{
  return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static struct dk_virtual_clock *
new_clock(int32_t settle_ms)
{
  return dk_virtual_clock_init(shared_memory(dk_virtual_clock_size()), START, settle_ms);
}

static void
free_clock(struct dk_virtual_clock *clock)
{
  dk_virtual_clock_done(clock);
  munmap(clock, dk_virtual_clock_size());
}

static int
new_bell(void)
{
  return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* One wait that an actor makes, in a thread or a process; lies in shared memory. */
struct job {
  struct dk_virtual_clock *clock;
  struct dk_wait wait;
  dk_status status;
  int64_t woken_at;
  pthread_t thread;
  pid_t process;
};

static void
do_job(struct job *job)
{
  struct dk_clock *clock = dk_virtual_clock_as_clock(job->clock);

  job->status = clock->wait(clock, &job->wait);
  job->woken_at = clock->now(clock);
  dk_virtual_clock_finished(job->clock, job->wait.actor);
}

static void *
job_thread(void *argument)
{
  do_job(argument);
  return NULL;
}

static struct job
job_of(struct dk_virtual_clock *clock, int64_t until)
{
  return (struct job){
    .clock = clock,
    .wait = {.actor = dk_virtual_clock_add_actor(clock),
             .cancel_fd = -1,
             .fd = -1,
             .events = 1,
             .until = until},
    .status = -1,
  };
}

static void
start_thread(struct job *job)
{
  dk_virtual_clock_give(job->clock, job->wait.actor);
  pthread_create(&job->thread, NULL, job_thread, job);
}

static void
start_process(struct job *job)
{
  dk_virtual_clock_give(job->clock, job->wait.actor);
  job->process = fork();
  if (job->process == 0) {
    do_job(job);
    _exit(0);
  }
}

static dk_status
join(struct job *job)
{
  dk_status status = dk_virtual_clock_join(job->clock, 0, job->wait.actor);

  if (job->process > 0)
    waitpid(job->process, NULL, 0);
  else
    pthread_join(job->thread, NULL);
  return status;
}

/* ---- the system's clock ---------------------------------------------------------------------- */

static void
test_system(void)
{
  struct dk_clock *clock = dk_clock_system();
  int bell = new_bell(), cancel = new_bell();
  int64_t before = clock->now(clock);
  struct dk_wait wait = {
    .cancel_fd = cancel, .fd = bell, .events = 1, .until = before + 30};

  cmp_ok(before, ">", 1600000000000, "the system's clock counts milliseconds since 1970");
  cmp_ok(clock->wait(clock, &wait), "==", DK_NOTHING, "a wait ends by time");
  cmp_ok(clock->now(clock), ">=", before + 30, "and not early");
  dk_ring(bell);
  cmp_ok(clock->wait(clock, &wait), "==", DK_OK, "what is ready beats time");
  dk_ring(cancel);
  cmp_ok(clock->wait(clock, &wait), "==", DK_CALL_CANCELLED, "cancelled beats all");
  wait.cancel_fd = -1;
  wait.until = INT64_MAX;
  cmp_ok(clock->wait(clock, &wait), "==", DK_OK, "a wait without a limit ends by its descriptor");
  wait.events = 2;
  cmp_ok(clock->wait(clock, &wait), "==", DK_OK, "a descriptor that can be written is ready");
  close(bell);
  close(cancel);
}

/* ---- the virtual clock ----------------------------------------------------------------------- */

static void
test_order_of_answers(void)
{
  struct dk_virtual_clock *virtual = new_clock(0);
  struct dk_clock *clock = dk_virtual_clock_as_clock(virtual);
  int bell = new_bell(), cancel = new_bell();
  struct dk_wait wait = {.cancel_fd = cancel, .fd = bell, .events = 1, .until = START};

  cmp_ok(clock->now(clock), "==", START, "it begins at the given time");
  cmp_ok(clock->wait(clock, &wait), "==", DK_NOTHING, "a time that has come needs no jump");
  dk_ring(bell);
  cmp_ok(clock->wait(clock, &wait), "==", DK_OK, "what is ready beats time");
  dk_ring(cancel);
  cmp_ok(clock->wait(clock, &wait), "==", DK_CALL_CANCELLED, "cancelled beats all");
  cmp_ok(clock->now(clock), "==", START, "none of this moved time");
  wait = (struct dk_wait){.cancel_fd = -1, .fd = -1, .until = START + 5000};
  cmp_ok(clock->wait(clock, &wait), "==", DK_NOTHING, "a lone actor waits for no other");
  cmp_ok(clock->now(clock), "==", START + 5000, "and time is exactly there");
  wait.actor = 7;
  cmp_ok(clock->wait(clock, &wait), "==", DK_CALL_CANCELLED, "only an actor can wait");
  free_clock(virtual);
  close(bell);
  close(cancel);
}

static void
test_smallest_deadline_first(void (*start)(struct job *), const char *what)
{
  struct dk_virtual_clock *clock = new_clock(0);
  struct job *jobs = shared_memory(3 * sizeof(struct job));
  static const int64_t after[] = {300, 100, 200};

  for (int i = 0; i < 3; i++) {
    jobs[i] = job_of(clock, START + after[i]);
    start(&jobs[i]);
  }
  for (int i = 0; i < 3; i++)
    ok(dk_virtual_clock_until_it_waits(clock, 0, jobs[i].wait.actor), "%s %d waits", what, i);
  cmp_ok(dk_virtual_clock_now(clock), "==", START, "while one runs, time stands still (%s)", what);
  cmp_ok(dk_virtual_clock_advance(clock, 0, START + 1000), "==", DK_OK, "the maker waits");
  for (int i = 0; i < 3; i++) {
    cmp_ok(join(&jobs[i]), "==", DK_OK, "%s %d ends", what, i);
    cmp_ok(jobs[i].status, "==", DK_NOTHING, "by time");
    cmp_ok(jobs[i].woken_at, "<=", START + 1000, "before the maker's deadline");
    cmp_ok(jobs[i].woken_at, ">=", START + after[i], "and not before its own");
  }
  munmap(jobs, 3 * sizeof(struct job));
  free_clock(clock);
}

/* Each sees exactly its own deadline when it does nothing else but look at the clock. */
static void
test_instants(void)
{
  struct dk_virtual_clock *clock = new_clock(0);
  struct job job = job_of(clock, START + 100);

  start_thread(&job);
  cmp_ok(dk_virtual_clock_join(clock, 0, job.wait.actor), "==", DK_OK, "joining lets time move");
  cmp_ok(job.woken_at, "==", START + 100, "to the deadline of the one that is joined");
  pthread_join(job.thread, NULL);
  cmp_ok(dk_virtual_clock_join(clock, 0, job.wait.actor), "==", DK_OK,
         "an idle actor is joined at once");
  ok(!dk_virtual_clock_until_it_waits(clock, 0, job.wait.actor), "an idle actor does not wait");
  free_clock(clock);
}

static void
test_descriptor_beats_time(void)
{
  struct dk_virtual_clock *clock = new_clock(0);
  struct job job = job_of(clock, START + 60000);

  job.wait.fd = new_bell();
  job.wait.cancel_fd = new_bell();
  start_thread(&job);
  ok(dk_virtual_clock_until_it_waits(clock, 0, job.wait.actor), "the actor waits");
  dk_ring(job.wait.fd);
  cmp_ok(join(&job), "==", DK_OK, "it ends");
  cmp_ok(job.status, "==", DK_OK, "by its descriptor");
  cmp_ok(job.woken_at, "==", START, "without a jump");

  dk_unring(job.wait.fd);
  start_thread(&job);
  ok(dk_virtual_clock_until_it_waits(clock, 0, job.wait.actor), "it waits again");
  dk_ring(job.wait.cancel_fd);
  dk_ring(job.wait.fd);
  join(&job);
  cmp_ok(job.status, "==", DK_CALL_CANCELLED, "cancelled beats the descriptor");
  close(job.wait.fd);
  close(job.wait.cancel_fd);
  free_clock(clock);
}

static void
test_deadlock(void)
{
  struct dk_virtual_clock *clock = new_clock(0);
  struct job job = job_of(clock, INT64_MAX);

  job.wait.fd = new_bell();
  start_thread(&job);
  cmp_ok(dk_virtual_clock_join(clock, 0, job.wait.actor), "==", DK_CALL_CANCELLED,
         "all wait without a limit: the joiner is notified");
  pthread_join(job.thread, NULL);
  cmp_ok(job.status, "==", DK_CALL_CANCELLED, "and so is the actor");
  ok(dk_virtual_clock_deadlocked(clock), "the clock reports a deadlock");
  cmp_ok(dk_virtual_clock_now(clock), "==", START, "time did not move");
  cmp_ok(dk_virtual_clock_advance(clock, 0, START + 1), "==", DK_CALL_CANCELLED,
         "no actor waits any more");
  dk_virtual_clock_restart(clock, START + 5);
  ok(!dk_virtual_clock_deadlocked(clock), "a new run has no deadlock");
  cmp_ok(dk_virtual_clock_advance(clock, 0, START + 6), "==", DK_OK, "and time moves again");
  close(job.wait.fd);
  free_clock(clock);
}

static void
test_restart(void)
{
  struct dk_virtual_clock *clock = new_clock(0);

  for (int32_t i = 1; i < DK_MAX_ACTORS; i++)
    cmp_ok(dk_virtual_clock_add_actor(clock), "==", i, "actor %d", i);
  cmp_ok(dk_virtual_clock_add_actor(clock), "==", -1, "there are no more");
  dk_virtual_clock_give(clock, 3);
  dk_virtual_clock_restart(clock, 42);
  cmp_ok(dk_virtual_clock_now(clock), "==", 42, "a new run has its own time");
  cmp_ok(dk_virtual_clock_add_actor(clock), "==", 1, "and its own actors");
  cmp_ok(dk_virtual_clock_advance(clock, 0, 43), "==", DK_OK,
         "the actors of the last run have ended");
  free_clock(clock);
}

/* ---- what one does is seen before time moves ------------------------------------------------- */

enum { ROUNDS = 200 };

/* The other side waits for a bell, for a minute at most, and answers by another. */
struct echo {
  struct dk_virtual_clock *clock;
  int32_t actor;
  int bell, answer;
  int32_t early;
};

static void
echo(struct echo *echo)
{
  struct dk_clock *clock = dk_virtual_clock_as_clock(echo->clock);

  for (int i = 0; i < ROUNDS; i++) {
    struct dk_wait wait = {.actor = echo->actor,
                           .cancel_fd = -1,
                           .fd = echo->bell,
                           .events = 1,
                           .until = clock->now(clock) + 60000};
    if (clock->wait(clock, &wait) != DK_OK)
      echo->early++;
    dk_unring(echo->bell);
    dk_ring(echo->answer);
  }
  dk_virtual_clock_finished(echo->clock, echo->actor);
}

static void
test_no_early_jump(int32_t settle_ms)
{
  struct dk_virtual_clock *virtual = new_clock(settle_ms);
  struct dk_clock *clock = dk_virtual_clock_as_clock(virtual);
  struct echo *other = shared_memory(sizeof(*other));
  int early = 0;

  *other = (struct echo){.clock = virtual,
                         .actor = dk_virtual_clock_add_actor(virtual),
                         .bell = new_bell(),
                         .answer = new_bell()};
  dk_virtual_clock_give(virtual, other->actor);
  pid_t process = fork();
  if (process == 0) {
    echo(other);
    _exit(0);
  }
  for (int i = 0; i < ROUNDS; i++) {
    struct dk_wait wait = {.cancel_fd = -1, .fd = other->answer, .events = 1, .until = START + 1};
    dk_ring(other->bell);
    if (clock->wait(clock, &wait) != DK_OK)
      early++;
    dk_unring(other->answer);
  }
  dk_virtual_clock_join(virtual, 0, other->actor);
  waitpid(process, NULL, 0);
  cmp_ok(early + other->early, "==", 0, "%d rounds between two processes, settling %d ms, saw no "
         "early jump", ROUNDS, settle_ms);
  cmp_ok(clock->now(clock), "==", START, "time never moved");
  close(other->bell);
  close(other->answer);
  munmap(other, sizeof(*other));
  free_clock(virtual);
}

/* A wake-up from outside, that no actor made, is given `settle_ms` of real time. */
static void *
ring_late(void *bell)
{
  struct dk_wait nothing = {.cancel_fd = -1, .fd = -1};

  dk_look(&nothing, -1, 20);
  dk_ring(*(int *)bell);
  return NULL;
}

static void
test_settling(void)
{
  struct dk_virtual_clock *virtual = new_clock(1000);
  struct dk_clock *clock = dk_virtual_clock_as_clock(virtual);
  int bell = new_bell();
  struct dk_wait wait = {.cancel_fd = -1, .fd = bell, .events = 1, .until = START + 60000};
  pthread_t server;

  pthread_create(&server, NULL, ring_late, &bell);
  cmp_ok(clock->wait(clock, &wait), "==", DK_OK, "a bell that comes late is heard");
  cmp_ok(clock->now(clock), "==", START, "before time moves");
  pthread_join(server, NULL);
  close(bell);
  free_clock(virtual);
}

/* An actor that waits for an answer counts as running: no other deadline is reached meanwhile. */
static void
test_answer(void)
{
  struct dk_virtual_clock *virtual = new_clock(0);
  struct dk_clock *clock = dk_virtual_clock_as_clock(virtual);
  int bell = new_bell();
  struct dk_wait wait = {.cancel_fd = -1, .fd = bell, .events = DK_WAIT_READ | DK_WAIT_ANSWER,
                         .until = START + 10};
  pthread_t server;

  pthread_create(&server, NULL, ring_late, &bell);
  cmp_ok(clock->wait(clock, &wait), "==", DK_OK, "the clock waits for an answer that comes late");
  cmp_ok(clock->now(clock), "==", START, "and no time passes");
  pthread_join(server, NULL);
  dk_unring(bell);
  wait.until = START;
  cmp_ok(clock->wait(clock, &wait), "==", DK_NOTHING, "but not when the time is up already");
  dk_virtual_clock_answer_within(virtual, 1);
  wait.until = START + 10;
  cmp_ok(clock->wait(clock, &wait), "==", DK_NOTHING, "nor for longer than it may take");
  cmp_ok(clock->now(clock), "==", START + 10, "then time passes");
  close(bell);
  free_clock(virtual);
}

/* ---- a process that is killed ---------------------------------------------------------------- */

/* Changes the clock's state as fast as it can, until it is killed: often enough inside the lock. */
static void
test_killed_holder(void)
{
  struct dk_virtual_clock *clock = new_clock(0);
  int32_t victim = dk_virtual_clock_add_actor(clock);
  bool all_well = true;

  for (int i = 0; i < 50 && all_well; i++) {
    struct dk_wait nothing = {.cancel_fd = -1, .fd = -1};
    pid_t process = fork();
    if (process == 0) {
      for (;;) {
        dk_virtual_clock_give(clock, victim);
        dk_virtual_clock_finished(clock, victim);
      }
    }
    dk_look(&nothing, -1, 1);
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    dk_virtual_clock_finished(clock, victim); /* called by the process that saw it end */
    all_well = dk_virtual_clock_advance(clock, 0, START + i + 1) == DK_OK;
  }
  ok(all_well, "the clock works after a process was killed that might have held its lock");
  free_clock(clock);
}

int
main(void)
{
  plan(NO_PLAN);
  test_system();
  test_order_of_answers();
  test_smallest_deadline_first(start_thread, "thread");
  test_instants();
  test_descriptor_beats_time();
  test_deadlock();
  test_restart();
  test_settling();
  test_answer();
  test_smallest_deadline_first(start_process, "process");
  test_no_early_jump(0);
  test_no_early_jump(1);
  test_killed_holder();
  return done_testing();
}
