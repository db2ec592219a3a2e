/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a child under memcheck beside its check: it holds the plugin that its parent has
 * linked, unloads it, and asks Valgrind for leaks.  And memory/cycle, the check that is only about
 * memory.  All findings go into Valgrind's own output, in order, with the lines of engine.h between
 * them. */
#include "conformance/kit/kit.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "config.h"

#if HAVE_VALGRIND
#include <valgrind/memcheck.h>

static void
say(const char *what)
{
  VALGRIND_PRINTF(KIT_MEMORY_SAID "%s\n", what);
}

static bool
runs_on_valgrind(void)
{
  return RUNNING_ON_VALGRIND != 0;
}

/* Old pointers on the stack would keep a lost block "reachable". */
__attribute__((noinline)) static void
clear_old_frames(void)
{
  volatile char old[16 * 1024];

  for (size_t i = 0; i < sizeof(old); i++)
    old[i] = 0;
}

/* With XML Valgrind would look for leaks once more at the end, whatever its options: that takes the
 * same time again, and finds blocks that the kit is right to keep. */
static void
set_baseline(void)
{
  VALGRIND_CLO_CHANGE("--leak-check=no");
  VALGRIND_DO_QUICK_LEAK_CHECK;
}

static void
ask_for_leaks(void)
{
  clear_old_frames();
  VALGRIND_DO_ADDED_LEAK_CHECK;
}

bool
kit_memory_is_sound(void)
{
  return VALGRIND_COUNT_ERRORS == 0;
}
#else
static void
say(const char *what)
{
  (void)what;
}

static bool
runs_on_valgrind(void)
{
  return false;
}

static void
set_baseline(void)
{
}

static void
ask_for_leaks(void)
{
}

bool
kit_memory_is_sound(void)
{
  return true;
}
#endif

/* Writes a word that would hide leaks if the plugin could write it. */
static bool
say_sealed(struct kit_report *report, const struct kit_job *job, int use, const char *what)
{
  uint64_t seal = kit_ask_seal(report, job, use);
  char text[KIT_SEAL_DIGITS + 64];

  snprintf(text, sizeof(text), "%0*" PRIx64 " %s", KIT_SEAL_DIGITS, seal, what);
  say(text);
  return seal != 0 || job->seals <= 0;
}

bool
kit_under_memcheck(void)
{
  return runs_on_valgrind();
}

uint32_t
kit_threads(void)
{
  return kit_count_threads();
}

void *
kit_memory_hold(const char *plugin, char *why, size_t size)
{
  void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);

  if (handle == NULL) {
    const char *reason = dlerror();
    snprintf(why, size, "%s", reason == NULL ? "the dynamic linker gives no reason" : reason);
  }
  return handle;
}

void
kit_memory_baseline(void)
{
  set_baseline();
}

void
kit_memory_inherit(struct kit_shared *shared, const struct kit_job *job)
{
  kit_shared_drop(shared, job->check->processes);
  set_baseline();
}

static bool
same_file(const struct stat *one, const struct stat *other)
{
  return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* "7f00-7f01 r-xp 00000000 08:01 1234   /path", whatever path it was loaded by.  Some file systems
 * (overlayfs, btrfs) show another device there than stat does: then the file at the path is
 * compared. */
static bool
is_line_of(const char *line, const char *plugin, const struct stat *wanted)
{
  const char *path = strchr(line, '/');
  unsigned major_of, minor_of;
  unsigned long long inode;
  struct stat there;

  if (path == NULL)
    return false;
  if (wanted == NULL)
    return strcmp(path, plugin) == 0;
  if (sscanf(line, "%*s %*s %*s %x:%x %llu", &major_of, &minor_of, &inode) == 3
      && makedev(major_of, minor_of) == wanted->st_dev && inode == wanted->st_ino)
    return true;
  return stat(path, &there) == 0 && same_file(&there, wanted);
}

static bool
is_mapped(const char *plugin)
{
  FILE *maps = fopen("/proc/self/maps", "re");
  struct stat wanted;
  bool there = stat(plugin, &wanted) == 0;
  bool found = false;
  char *line = NULL;
  size_t room = 0;
  ssize_t length;

  while (maps != NULL && !found && (length = getline(&line, &room, maps)) > 0) {
    line[length - 1] = '\0';
    found = is_line_of(line, plugin, there ? &wanted : NULL);
  }
  free(line);
  if (maps != NULL)
    fclose(maps);
  return found;
}

bool
kit_memory_end(struct kit_shared *shared, const struct kit_job *job, void *held)
{
  bool passed = shared->report.verdict == VERDICT_PASS;

  kit_shared_drop(shared, job->check->processes);
  if (passed) {
    if (job->plugin != NULL && job->unload) {
      if (held != NULL)
        dlclose(held);
      if (is_mapped(job->plugin))
        say(KIT_MEMORY_MAPPED);
    }
    ask_for_leaks();
  }
  return say_sealed(NULL, job, KIT_SEAL_MEMORY, KIT_MEMORY_JUDGED);
}

/* ---- memory/cycle ---------------------------------------------------------------------------- */

static void
use_turns(struct dk_check *t, const char *instance)
{
  struct dk_turn *turn;

  must(t, enqueue(t, instance, .id = instance));
  must(t, ack_turn(t, fetch_turn(t), .events = {{1}}, .schedule = {{1}, {2}, {3}}));
  must(t, enqueue(t, instance));
  turn = fetch_turn(t);
  must(t, renew_turn(t, turn->head.lock_token));
  must(t, abandon_turn(t, turn->head.lock_token));
  must(t, ack_turn(t, fetch_turn(t), .events = {{2}, {3}}, .cancel = {3}, .output = "so far",
                   .status = DK_RUNNING));
  read_history(t, instance);
  expect_status(t, try_fetch_turn(t, &turn, .wait_ms = 50), DK_NOTHING);
}

static void
use_work(struct dk_check *t, const char *instance)
{
  struct dk_work_item *item = fetch_work(t);
  struct dk_works *works;

  must(t, renew_work(t, item->work.lock_token));
  must(t, abandon_work(t, item->work.lock_token));
  if (provider(t)->ops->release_fetch != NULL) {
    fetch_work(t, .fetch_id = 1);
    must(t, release_fetch(t, 1));
  }
  if (provider(t)->ops->enqueue_for_worker != NULL)
    must(t, enqueue_work(t, instance, .activity = {.activity_id = 4}));
  while (try_fetch_work(t, &works) == DK_OK) {
    struct dk_bytes token = works->items[0].work.lock_token;
    must(t, ack_work(t, token, .to = instance));
    expect_status(t, ack_work(t, token), DK_LOCK_LOST);
  }
  must(t, ack_turn(t, fetch_turn(t), .events = {{4}}, .status = DK_COMPLETED, .output = "done"));
}

/* Looks at all there is, and deletes what has ended. */
static void
use_admin(struct dk_check *t, const char *instance)
{
  struct dk_removed removed;

  must(t, enqueue(t, instance));
  read_messages(t, instance);
  list_instances(t, .outputs = true);
  list_executions(t, instance);
  read_stats(t);
  must(t, prune(t, instance, .keep = 1));
  must(t, prune_matching(t, .max = 1, .ret = &removed));
  must(t, delete_instances(t, .ids = {instance}));
  must(t, delete_matching(t, .only = {.name = "order"}));
  expect_status(t, delete_instances(t, .ids = {instance}), DK_NOT_FOUND);
}

/* MEM-3: if a cycle leaks, the next one leaks the same again.  CALL-8: so it is with thread keys,
 * which Valgrind does not count. */
static void
run_cycles(struct dk_check *t)
{
  struct growth growth = {.cycles = 0};

  for (int cycle = 0; cycle <= KIT_MEMORY_CYCLES; cycle++) {
    char instance[32], word[32];

    snprintf(instance, sizeof(instance), "cycle-%d", cycle);
    if (cycle > 0)
      open_handle(t, NULL);
    use_turns(t, instance);
    use_work(t, instance);
    if (t->has_admin)
      use_admin(t, instance);
    close_handle(t, NULL);
    growth_look(&growth, cycle > 0);
    ask_for_leaks();
    snprintf(word, sizeof(word), KIT_MEMORY_CYCLE "%d", cycle + 1);
    say_sealed(t->report, t->job, KIT_SEAL_CYCLE + cycle, word);
  }
  expect_no_growth(t, &growth);
  open_handle(t, NULL);
}

const struct check kit_memory_cycle = {
  .id = "memory/cycle",
  .clauses = "MEM-3 CALL-8",
  .says = "open, every operation and close, repeated, leave nothing allocated",
  .run = run_cycles
};
