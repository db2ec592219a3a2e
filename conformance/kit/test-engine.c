/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a check: the process's state, stores, settings, the probe. */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/kit/test-meta.h"

static void
passes(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst")));
}

static void
leaves(struct dk_check *t)
{
  must(t, enqueue(t, "inst"));
  _exit(0);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void
prints(struct dk_check *t)
{
  (void)t;
  printf("ok 1 - forged\n");
}

static void
leaves_descriptor(struct dk_check *t)
{
  expect(t, open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0, "a descriptor");
}

static void
closes_descriptor(struct dk_check *t)
{
  (void)t;
  close(STDIN_FILENO);
}

static void *
waits(void *argument)
{
  pause();
  return argument;
}

static void
leaves_thread(struct dk_check *t)
{
  pthread_t thread;

  expect(t, pthread_create(&thread, NULL, waits, NULL) == 0, "a thread");
}

static void
changes_folder(struct dk_check *t)
{
  expect(t, chdir("/") == 0, "the folder is changed");
}

static void
changes_umask(struct dk_check *t)
{
  (void)t;
  umask(umask(0) ^ 077);
}

static void
changes_mask(struct dk_check *t)
{
  sigset_t set;

  (void)t;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

static void
changes_handler(struct dk_check *t)
{
  (void)t;
  signal(SIGPIPE, SIG_IGN);
}

static void
changes_environment(struct dk_check *t)
{
  (void)t;
  setenv("DURAKIT_TEST_KIT", "changed", 1);
}

static void
changes_locale(struct dk_check *t)
{
  expect(t, setlocale(LC_ALL, "C.UTF-8") != NULL, "the locale is changed");
}

static void
changes_nothing(struct dk_check *t)
{
  expect(t, now(t) == KIT_START, "the clock is there");
}

static const struct expected damages[] = {
  {.name = "output", .run = prints, .verdict = VERDICT_HOST_DAMAGE, .clause = "ABI-6",
   .message = "14 bytes were written to standard output: ok 1 - forged\\n"},
  {.name = "a descriptor left", .run = leaves_descriptor, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "CALL-8", .message = "(/dev/null) is still open after close"},
  {.name = "a descriptor closed", .run = closes_descriptor, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "ABI-6", .message = "of the host was closed"},
  {.name = "a thread left", .run = leaves_thread, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "CALL-8", .message = "2 threads after close, 1 before"},
  {.name = "another folder", .run = changes_folder, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "ABI-5", .message = "the working directory is now /"},
  {.name = "another umask", .run = changes_umask, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "ABI-5", .message = "the umask is now"},
  {.name = "a blocked signal", .run = changes_mask, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "ABI-5", .message = "the signal mask is now 10; it was empty"},
  {.name = "a handler", .run = changes_handler, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "ABI-5", .message = "the handler of signal 13"},
  {.name = "the environment", .run = changes_environment, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "ABI-5", .message = "the environment variable DURAKIT_TEST_KIT was added"},
  {.name = "another locale", .run = changes_locale, .verdict = VERDICT_HOST_DAMAGE,
   .clause = "ABI-5", .message = "the locale is now"},
  {.name = "nothing", .run = changes_nothing, .verdict = VERDICT_PASS},
};

/* ---- stores and settings --------------------------------------------------------------------- */

static void
test_existing_store(void)
{
  struct check check = {.id = "meta/check", .clauses = "TURN-1", .run = passes};
  struct kit_job job = job_of(&check, meta.model);
  char value[128], path[160];
  int fd;

  snprintf(value, sizeof(value), "%s/mine", meta.folder);
  snprintf(path, sizeof(path), "%s-dkt1-7-a", value);
  job.store_value = value;
  fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ok(fd >= 0 && write(fd, "mine", 4) == 4, "there is a file with the name of the store");
  close(fd);
  run_job(&job);
  ok(said(VERDICT_ERROR) && strstr(report()->message, "exists already") != NULL,
     "a store that exists already is refused");
  ok(report()->n_stores == 0, "and not announced, so that it is not removed");
  ok(unlink(path) == 0, "and it still exists");
  run_job(&job);
  ok(said(VERDICT_PASS), "a store of that name is made where there is none");
  ok(access(path, F_OK) != 0, "and removed again");
}

static void
probe_closed(const struct kit_job *job)
{
  kit_probe(meta.shared, job, false);
}

static void
probe_open(const struct kit_job *job)
{
  kit_probe(meta.shared, job, true);
}

/* A folder with the name of a store: the provider's refusal is reported, and it is not touched. */
static void
test_refused_store(void)
{
  struct check check = {.id = "meta/check", .clauses = "TURN-1", .run = passes};
  struct kit_job job = job_of(&check, meta.model);
  struct kit_probe *probe = kit_probe_of(meta.shared);
  int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  /* Of a relative path only the provider can say what it is. */
  ok(here >= 0 && chdir(meta.folder) == 0, "in a folder of its own");
  job.store_value = "other";
  ok(mkdir("other-dkt1-7-a", 0700) == 0, "a folder has the name of the store");
  run_job(&job);
  ok(said(VERDICT_ERROR) && strstr(report()->message, KIT_MAY_EXIST) != NULL &&
       strlen(strstr(report()->message, KIT_MAY_EXIST)) > strlen(KIT_MAY_EXIST),
     "it is refused with the provider's text: %s", report()->message);
  ok(report()->n_stores == 0 && rename("other-dkt1-7-a", "other-dkt1-7-probe") == 0,
     "and left alone");
  run_in_child(probe_open, &job);
  ok(said(VERDICT_ERROR) && !probe->opened && !probe->exists &&
       probe->open_status == DK_REFUSED && strstr(probe->open_text, KIT_MAY_EXIST) != NULL &&
       strlen(probe->open_text) > strlen(KIT_MAY_EXIST),
     "a probe also refuses it: %s", probe->open_text);
  ok(report()->n_stores == 0 && rmdir("other-dkt1-7-probe") == 0, "and leaves it alone");
  ok(fchdir(here) == 0, "back again");
  close(here);
}

static void
check_settings(const struct kit_job *job)
{
  kit_check_settings(meta.shared, job);
}

static void
destroy_stores(const struct kit_job *job)
{
  static const char suffixes[2][64] = {"dkt1-7-a", "dkt1-7-b"};

  kit_destroy_stores(meta.shared, job, suffixes, 2);
}

static void
test_probe(void)
{
  struct kit_probe *probe = kit_probe_of(meta.shared);
  struct kit_job job = job_of(NULL, meta.model);

  run_in_child(probe_closed, &job);
  ok(said(VERDICT_PASS) && probe->loaded && !probe->opened, "a probe loads the plugin");
  ok(probe->shared == 2 && probe->n_params > 0 && probe->n_missing == 0 &&
       probe->threads_after_load == 1,
     "and describes it");
  run_in_child(probe_open, &job);
  ok(said(VERDICT_PASS) && probe->opened && probe->round_trip_ns > 0, "or also opens a store");
  ok(stores_are_gone() && report()->n_stores == 1, "and leaves no store");
  job.plugin = "/dev/null";
  run_in_child(probe_closed, &job);
  ok(said(VERDICT_ERROR) && !probe->loaded && probe->refusal.number != 0 &&
       report()->message[0] != '\0',
     "a file that is not a plugin is refused: %s", report()->message);
}

static void
test_settings(void)
{
  static const struct dk_setting unknown = {"colour", {"red", 3}};
  static const struct dk_setting mutant = {"mutant", {"turn/renew-does-nothing", 23}};
  struct kit_job job = job_of(NULL, meta.model);

  job.settings = &mutant;
  job.n_settings = 1;
  run_in_child(check_settings, &job);
  ok(said(VERDICT_PASS), "a setting that the plugin knows");
  job.settings = &unknown;
  run_in_child(check_settings, &job);
  ok(said(VERDICT_ERROR) && kit_probe_of(meta.shared)->refusal.number == 0 &&
       kit_probe_of(meta.shared)->refusal.what[0] != '\0',
     "one that it does not know: %s", kit_probe_of(meta.shared)->refusal.what);
}

static void
test_left_stores(void)
{
  struct check check = {.id = "meta/check", .clauses = "TURN-1", .run = leaves};
  struct kit_job job = job_of(&check, meta.model);
  char path[KIT_MAX_VALUE];

  run_job(&job);
  kit_store_name(&job, "dkt1-7-a", path, sizeof(path));
  ok(said(VERDICT_NONE) || report()->word == 0, "a check that exited has no verdict");
  ok(report()->n_stores == 1 && strcmp(report()->stores[0], "dkt1-7-a") == 0 &&
       report()->store_gone[0] == 0 && access(path, F_OK) == 0,
     "its store is announced, and exists");
  run_in_child(destroy_stores, &job);
  ok(said(VERDICT_PASS) && access(path, F_OK) != 0, "another child removes it: %s",
     report()->message);
}

/* Uses checks without a plugin, like the runner's canaries. */
static void
test_damages(void)
{
  for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
    struct expected without = damages[i];

    without.without_plugin = true;
    run_all(&without, 1);
  }
}

/* A host may have hundreds open, which its child inherits. */
static void
test_many_descriptors(void)
{
  enum { MANY = 300 };
  int many[MANY];
  struct expected left = {.name = "a descriptor left among hundreds", .run = leaves_descriptor,
                          .without_plugin = true, .verdict = VERDICT_HOST_DAMAGE,
                          .clause = "CALL-8", .message = "(/dev/null) is still open after close"};

  for (size_t i = 0; i < MANY; i++)
    many[i] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  if (many[MANY - 1] < 0)
    skip(1, "fewer than %d descriptors may be open", MANY);
  else
    run_all(&left, 1);
  for (size_t i = 0; i < MANY; i++)
    close(many[i]);
}

int
main(void)
{
  meta_begin();
  test_damages();
  test_many_descriptors();
  test_existing_store();
  test_refused_store();
  test_probe();
  test_settings();
  test_left_stores();
  return meta_end();
}
