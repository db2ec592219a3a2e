/* SPDX-License-Identifier: Apache-2.0 */
/* A process that cancels many by name is killed again and again, and the command is run again: each
 * instance has one request, whose reason is that of the process that stored it first.  On
 * SQLite. */
#include <durakit/manage.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

enum { BATCH = 500, KILLS = 3, MANY = (KILLS + 2) * BATCH };

static struct dk_setting settings[2] = {{"store", {NULL, 0}}, {"synchronous", {"normal", 6}}};

static struct rig
begin(void)
{
  return rig_begin_on(faulty_open(getenv("SQLITE_PLUGIN"), settings, 2));
}

static bool
has_admin(void)
{
  struct rig rig = begin();
  bool has = dk_store_extension(rig.store, DK_ADMIN);

  rig_end(&rig);
  return has;
}

static void
id_of(int i, char id[16])
{
  snprintf(id, 16, "i-%04d", i);
}

static void
store_all(void)
{
  struct rig rig = begin();
  char id[16];

  for (int i = 0; i < MANY; i++) {
    id_of(i, id);
    rig_run(&rig, id, "order", "in");
  }
  rig_end(&rig);
}

/* ---- killed ---------------------------------------------------------------------------------- */

struct teller {
  int out, left;
};

/* Writes a byte for each of so many outcomes.  When the next one is reported, a batch is complete,
 * and the process waits to be killed, at some point in the next batch. */
static int32_t
write_byte(void *context, const struct dk_cancel_outcome *outcome)
{
  const char byte = (char)outcome->outcome;
  struct teller *teller = context;

  while (teller->left == 0)
    pause();
  teller->left--;
  return write(teller->out, &byte, 1) != 1;
}

/* The main function of the child. */
static void
cancel_all(const char *reason, struct teller *teller)
{
  const struct dk_cancel_options options = {
    .struct_size = sizeof(options), .reason = reason, .by = "me", .expect = UINT64_MAX};
  struct rig rig = begin();

  dk_cancel_by_name(rig.client, "order", &options, write_byte, teller, NULL);
  _exit(1); /* it has ended, but should have been killed */
}

/* Lets it report `n` outcomes, and kills it; returns how many it has reported. */
static int
kill_behind(const char *reason, int wanted)
{
  int pipes[2], told = 0, how = 0;
  char byte;

  if (pipe(pipes) != 0)
    BAIL_OUT("no pipe: %s", strerror(errno));
  pid_t pid = fork();
  if (pid == 0) {
    close(pipes[0]);
    cancel_all(reason, &(struct teller){pipes[1], wanted});
  }
  close(pipes[1]);
  while (told < wanted && read(pipes[0], &byte, 1) == 1)
    told++;
  if (pid < 0 || kill(pid, SIGKILL) != 0 || waitpid(pid, &how, 0) != pid)
    BAIL_OUT("the child cannot be killed: %s", strerror(errno));
  close(pipes[0]);
  ok(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL, "a process that cancels is killed");
  return told;
}

/* ---- the repetition -------------------------------------------------------------------------- */

static atomic_int entered;

static dk_result
order(dk_orch *o, dk_str input)
{
  atomic_fetch_add(&entered, 1);
  return dk_completed(o, input);
}

struct seen {
  unsigned requests, of_reason[KILLS + 1];
};

static int32_t
see(void *context, const struct dk_history_entry *entry)
{
  struct seen *seen = context;

  if (strcmp(entry->kind, "cancel_requested") != 0)
    return 0;
  seen->requests++;
  seen->of_reason[entry->text.ptr[0] - '0']++;
  return 0;
}

static void
run_once_more(struct rig *rig)
{
  const struct dk_cancel_options options = {
    .struct_size = sizeof(options), .reason = "3", .by = "me", .expect = UINT64_MAX};
  struct dk_cancel_counts counts = {.struct_size = sizeof(counts)};

  cmp_ok(dk_cancel_by_name(rig->client, "order", &options, NULL, NULL, &counts), "==", DK_OK,
         "run once more, it comes to its end");
  cmp_ok(counts.requested + counts.already_requested, "==", MANY, "with all of them");
  cmp_ok(counts.already_requested, ">=", KILLS * BATCH, "most of which were asked before");
  ok(counts.failed == 0 && counts.over == 0 && counts.not_found == 0, "and none is anything else");
}

static void
see_all(struct rig *rig)
{
  struct seen seen = {.requests = 0};
  unsigned n_cancelled = 0, n_odd = 0;
  char id[16];

  for (int i = 0; i < MANY; i++) {
    id_of(i, id);
    n_cancelled += strncmp(rig_result(rig, id), "cancelled: ", 11) == 0;
    unsigned before = seen.requests;
    dk_client_history(rig->client, dk_str_of(id), 0, 1, 0, see, &seen);
    n_odd += seen.requests != before + 1;
  }
  cmp_ok(n_cancelled, "==", MANY, "each is cancelled");
  cmp_ok(n_odd, "==", 0, "by one request each");
  cmp_ok(seen.of_reason[0], ">=", BATCH, "for the reason of the first process, where it came to");
  cmp_ok(seen.of_reason[KILLS], ">=", BATCH, "and of the last, where no other came to");
  cmp_ok(atomic_load(&entered), "==", 0, "and none has run");
}

int
main(void)
{
  char folder[] = "/tmp/test-killed-XXXXXX", path[64], command[64];
  const char *plugin = getenv("SQLITE_PLUGIN");
  const char reasons[KILLS][2] = {"0", "1", "2"};

  if (!plugin || access(plugin, R_OK) != 0)
    plan(SKIP_ALL, "the sqlite plugin is left out of this build");
  if (!mkdtemp(folder))
    BAIL_OUT("no folder: %s", strerror(errno));
  snprintf(path, sizeof(path), "%s/store", folder);
  settings[0].value = dk_str_of(path);
  if (!has_admin())
    plan(SKIP_ALL, "the sqlite plugin does not offer durakit.admin/1");
  plan(NO_PLAN);
  store_all();
  /* Each begins with the first instance, and is killed one batch later than the one before. */
  for (int i = 0; i < KILLS; i++)
    cmp_ok(kill_behind(reasons[i], (i + 1) * BATCH), "==", (i + 1) * BATCH,
           "killed when it had reported %d", (i + 1) * BATCH);
  struct rig rig = begin();
  rig_orchestration(&rig, "order", order);
  run_once_more(&rig);
  rig_start(&rig);
  see_all(&rig);
  rig_end(&rig);
  snprintf(command, sizeof(command), "rm -rf '%s'", folder);
  ok(system(command) == 0, "the folder is removed");
  return done_testing();
}
