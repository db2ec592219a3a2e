/* SPDX-License-Identifier: 0BSD */
/* cancellable.c - an activity that can be cancelled, in three styles.
 *
 *   ./cancellable sqlite store=/tmp/jobs.db
 *
 *   flag        it computes, and checks a flag now and then
 *   descriptor  it waits for the output of a program, and for one more descriptor
 *   process     it never checks: it has a process of its own, which is killed
 *
 * Each would run for minutes; main cancels its instance as soon as it works.  It prints how long
 * after that the activity noticed, that no process of it is left, and what the runtime counted.
 * The argument after the store is the prefix of the instances' names (job). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "example.h"

enum {
  GRACE_MS = 500,         /* of the one that never checks */
  PROGRAM_MS = 1000,      /* a program's, from SIGTERM to SIGKILL */
  PATIENCE_MS = 60 * 1000 /* how long main waits for a report */
};

/* ---- 1. What activities report to main ------------------------------------------------------- */

/* Only to have something to print; through a pipe, because one activity is in another process. */
static int reports[2];

enum { WORKS, NOTICED };
struct report {
  int what;
  pid_t own, program; /* processes; 0: it has started no program */
  int64_t at;         /* ticks */
  char instance[100];
};

/* A report is so small that it is written as a whole, and never mixed with another. */
static void
report(const dk_task *task, int what, pid_t program)
{
  struct report r = {
    .what = what, .own = getpid(), .program = program, .at = example_ticks_ms()};

  snprintf(r.instance, sizeof(r.instance), "%s", dk_task_info(task)->instance.ptr);
  if (write(reports[1], &r, sizeof(r)) != sizeof(r))
    perror("cancellable: a report");
}

/* ---- 2. Programs that activities start ------------------------------------------------------- */

/* 0, or an error's number.  With a pipe the program's output goes there, and the program leads a
 * process group of its own, so that signals reach what it starts as well. */
static int
begin_program(dk_str command, const int *pipe_ends, pid_t *ret_pid)
{
  char *arguments[] = {"sh", "-c", (char *)(uintptr_t)command.ptr, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (pipe_ends) {
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  }
  int error = posix_spawn(ret_pid, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/* How it ended, as waitpid returns it. */
static int
wait_for_program(pid_t pid)
{
  int status = 0;

  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  return status;
}

/* A descriptor that becomes readable when the process is dead; -1: there is none. */
static int
watch(pid_t pid)
{
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);

  if (fd < 0)
    perror("cancellable: pidfd_open");
  return fd;
}

/* Asks the program and everything that it has started to end, then kills them.  The group's number
 * cannot belong to another by then: a pid stays in use until the process was waited for. */
static void
end_program(pid_t pid)
{
  struct pollfd death = {.fd = watch(pid), .events = POLLIN};

  kill(-pid, SIGTERM);
  poll(&death, 1, PROGRAM_MS);
  kill(-pid, SIGKILL);
  if (death.fd >= 0)
    close(death.fd);
}

/* ---- 3. The three styles --------------------------------------------------------------------- */

static int
is_prime(long long n)
{
  long long d = 2;

  while (d * d <= n && n % d != 0)
    d++;
  return d * d > n;
}

/* A flag.  Checking it costs next to nothing, so the activity checks it often.  There is nothing to
 * clean up here, and the returned value has no effect.  (Work that waits for time has
 * dk_task_sleep: select-timeout.c.) */
static dk_result
by_flag(dk_task *task, dk_str input)
{
  long long limit = strtoll(input.ptr, NULL, 10), found = 0;
  char text[32];

  report(task, WORKS, 0);
  for (long long n = 2; n < limit; n++) {
    if (dk_task_cancelled(task) != DK_CAUSE_NONE) {
      report(task, NOTICED, 0);
      return dk_error(task, "cancelled at %lld", n);
    }
    found += is_prime(n);
  }
  snprintf(text, sizeof(text), "%lld", found);
  return dk_done(task, dk_str_of(text));
}

/* Waits until the program has ended (0), or the activity is cancelled (1). */
static int
follow(dk_task *task, pid_t program, int output)
{
  struct pollfd fds[2] = {{.fd = output, .events = POLLIN},
                          {.fd = dk_task_cancel_fd(task), .events = POLLIN}};
  char text[512];

  for (;;) {
    if (poll(fds, 2, -1) < 0)
      continue;              /* a signal */
    if (fds[1].revents != 0) /* polled, never read */
      return 1;
    if (read(output, text, sizeof(text)) <= 0)
      return 0;
    report(task, WORKS, program); /* the output itself is ignored */
  }
}

/* A descriptor, beside those that the activity waits for anyway: sockets, pipes, children.  The
 * activity has its grace (ten seconds) to clean up. */
static dk_result
by_descriptor(dk_task *task, dk_str command)
{
  int ends[2];
  pid_t program;

  if (pipe2(ends, O_CLOEXEC) != 0)
    return dk_error(task, "there is no pipe: %s", strerror(errno));
  int error = begin_program(command, ends, &program);
  close(ends[1]);
  int is_told = error == 0 && follow(task, program, ends[0]);
  close(ends[0]);
  if (error != 0)
    return dk_error(task, "there is no program: %s", strerror(error));
  if (is_told) {
    report(task, NOTICED, program);
    end_program(program);
  }
  int status = wait_for_program(program);
  return status == 0 ? dk_done(task, dk_str_of("")) : dk_error(task, "wait status %d", status);
}

/* Neither, as in code that others wrote: it is called, and returns when it has finished.  In a
 * thread nothing could stop it.  The process in which it runs is killed when its grace has ended,
 * with everything that it has started (which is in the same process group). */
static dk_result
by_process(dk_task *task, dk_str command)
{
  pid_t program;
  int error = begin_program(command, NULL, &program);

  if (error != 0)
    return dk_error(task, "there is no program: %s", strerror(error));
  report(task, WORKS, program);
  int status = wait_for_program(program);
  return status == 0 ? dk_done(task, dk_str_of("")) : dk_error(task, "wait status %d", status);
}

/* ---- 4. The orchestration -------------------------------------------------------------------- */

/* The orchestration contains nothing about cancellation.  It is registered under three names, and
 * runs the activity of the same name. */
static dk_result
job(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, dk_orch_name(o).ptr, input)));
}

static const struct style {
  const char *name, *input;
  dk_activity_fn *activity;
  struct dk_activity_traits traits;
} styles[] = {
  {"flag", "1000000000000", by_flag, {.struct_size = sizeof(struct dk_activity_traits)}},
  {"descriptor", "echo it works; sleep 300; echo it has ended", by_descriptor,
   {.struct_size = sizeof(struct dk_activity_traits)}},
  {"process", "sleep 300; echo it has ended", by_process,
   {.struct_size = sizeof(struct dk_activity_traits), .isolation = DK_IN_PROCESS,
    .grace_ms = GRACE_MS}},
};
enum { N_STYLES = sizeof(styles) / sizeof(styles[0]) };

static struct dk_registry *
what_can_be_run(void)
{
  struct dk_registry *registry = dk_registry_new();
  dk_status status = registry ? DK_OK : DK_NO_MEMORY;

  for (const struct style *s = styles; status == DK_OK && s < styles + N_STYLES; s++) {
    status = dk_register_orchestration(registry, s->name, NULL, job);
    if (status == DK_OK)
      status = dk_register_activity(registry, s->name, s->activity, &s->traits);
  }
  if (status != DK_OK)
    example_failed("cancellable", status, "nothing can be registered");
  return registry;
}

/* ---- 5. Cancelling --------------------------------------------------------------------------- */

/* The next report of this kind by the instance's activity. */
static struct report
expect(const char *instance, int what)
{
  struct pollfd next = {.fd = reports[0], .events = POLLIN};
  struct report r = {.what = -1};

  while (r.what != what || strcmp(r.instance, instance) != 0)
    if (poll(&next, 1, PATIENCE_MS) != 1 || read(reports[0], &r, sizeof(r)) != sizeof(r)) {
      fprintf(stderr, "cancellable: %s: its activity did not report within %d ms that it %s\n",
              instance, PATIENCE_MS, what == WORKS ? "works" : "noticed");
      exit(1);
    }
  return r;
}

static void
see_it_dead(const char *what, pid_t pid, int watched, int64_t asked_at)
{
  struct pollfd death = {.fd = watched, .events = POLLIN};

  if (watched < 0 || poll(&death, 1, PATIENCE_MS) != 1) {
    fprintf(stderr, "cancellable: its %s %d did not end within %d ms\n", what, (int)pid,
            PATIENCE_MS);
    exit(1);
  }
  close(watched);
  printf("  its %s %d had ended %" PRId64 " ms after the request\n", what, (int)pid,
         example_ticks_ms() - asked_at);
}

/* Cancels the instance, and waits until it has ended.  One that had ended before stays as it is. */
static void
cancel(struct dk_client *client, const char *instance)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  dk_status status = dk_client_cancel(client, dk_str_of(instance), "it takes too long", "Ada");

  if (status == DK_OK)
    status = dk_client_wait(client, dk_str_of(instance), 300 * 1000, &info);
  if (status != DK_OK)
    example_failed(instance, status, dk_client_error(client));
  example_print_end(instance, &info);
  printf("  requested by %s\n", info.cancelled_by.ptr ? info.cancelled_by.ptr : "(no name)");
}

/* The instance ends as soon as a turn has committed that, whatever its activity does.  The activity
 * runs in the process of the turn, or in a child of it, and so it is notified at once.  In another
 * process it would learn by its next renewal, up to 25 s later. */
static void
cancel_what_works(struct dk_client *client, const char *instance)
{
  struct report works = expect(instance, WORKS);
  int is_apart = works.own != getpid();
  int own = is_apart ? watch(works.own) : -1;
  int program = works.program != 0 ? watch(works.program) : -1;
  int64_t asked_at = example_ticks_ms();

  cancel(client, instance);
  if (is_apart)
    printf("  it never checks, and had its grace of %d ms\n", GRACE_MS);
  else
    printf("  it noticed %" PRId64 " ms after the request\n",
           expect(instance, NOTICED).at - asked_at);
  if (is_apart)
    see_it_dead("process", works.own, own, asked_at);
  if (works.program != 0)
    see_it_dead("program", works.program, program, asked_at);
}

/* 1: the instance was started.  If it exists already, an earlier run might have been stopped in the
 * middle of it. */
static int
run(struct dk_client *client, const char *prefix, const struct style *style)
{
  char instance[100];

  snprintf(instance, sizeof(instance), "%s-%s", prefix, style->name);
  dk_status status =
    dk_client_start(client, dk_str_of(instance), style->name, dk_str_of(style->input), NULL);
  if (status == DK_OK) {
    printf("%s is started\n", instance);
    cancel_what_works(client, instance);
  } else if (status == DK_DUPLICATE) {
    printf("%s exists already\n", instance);
    cancel(client, instance);
  } else {
    example_failed(instance, status, dk_client_error(client));
  }
  return status == DK_OK;
}

/* ---- 6. The process -------------------------------------------------------------------------- */

/* 1: every cancelled activity has ended. */
static int
print_counters(struct dk_runtime *runtime)
{
  struct dk_counters c;

  if (!example_counters_at_end(runtime, &c))
    return 0;
  printf("%" PRIu64 " notified, %" PRIu64 " of them by the commit; %" PRIu64
         " ended in their grace, %" PRIu64 " killed; threads in quarantine: %" PRIu64 "\n",
         c.activities_cancelled, c.learnt_by_commit, c.grace_kept,
         c.grace_exceeded - c.quarantined_now, c.quarantined_now);
  return 1;
}

static void
run_all(struct dk_store *store, struct dk_runtime *runtime, const char *prefix)
{
  struct dk_client *client = dk_client_new(store, NULL);
  int n = 0;

  if (!client)
    example_failed("cancellable", DK_NO_MEMORY, "no client");
  for (int i = 0; i < N_STYLES; i++)
    n += run(client, prefix, &styles[i]);
  dk_client_free(client);
  if (n > 0 && !print_counters(runtime))
    exit(1);
}

int
main(int argc, char **argv)
{
  struct dk_registry *registry = what_can_be_run();
  struct dk_zygote *zygote;
  struct example_store s;
  struct dk_runtime *runtime;
  struct dk_refusal refusal;

  /* Before there is any thread, and any store: the processes for activities are copies of this one
   * as it is now.  So everything that they need is made before. */
  if (pipe2(reports, O_CLOEXEC) != 0) {
    perror("cancellable: a pipe");
    return 1;
  }
  dk_status status = dk_zygote_start(registry, &zygote);
  if (status != DK_OK)
    example_failed("cancellable", status, "there is no process to make others from");

  int used = example_open(&s, argc, argv);
  const struct dk_runtime_options options = {
    .struct_size = sizeof(options), .registry = registry, .zygote = zygote};
  if (dk_runtime_start(s.store, &options, &runtime, &refusal) != DK_OK)
    example_refused("cancellable", &refusal);
  run_all(s.store, runtime, used < argc ? argv[used] : "job");
  if (!dk_runtime_stop(runtime, 10 * 1000, NULL))
    return 1;
  dk_zygote_stop(zygote);
  dk_registry_free(registry);
  example_close(&s);
  return 0;
}
