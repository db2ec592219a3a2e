/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the small checks of the kit's tests: see test-meta.h.  Owns their folder and the shared
 * map. */
#include "conformance/kit/test-meta.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct meta meta;

/* ---- running one ----------------------------------------------------------------------------- */

struct kit_report *
report(void)
{
  return kit_report_of(meta.shared);
}

static int
status_of_child(pid_t child)
{
  int status = -1;

  waitpid(child, &status, 0);
  return status;
}

static void
capture_output(void)
{
  char path[128];
  int fd;

  snprintf(path, sizeof(path), "%s/stdout", meta.folder);
  fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
    _exit(99);
  close(fd);
}

/* How the child ended does not matter here: the report says it. */
void
run_job(const struct kit_job *job)
{
  pid_t child;

  fflush(NULL);
  kit_shared_reset(meta.shared);
  child = fork();
  if (child == 0) {
    capture_output();
    kit_run(meta.shared, job);
    _exit(0);
  }
  status_of_child(child);
}

struct kit_job
job_of(const struct check *check, const char *plugin)
{
  return (struct kit_job){
    .check = check, .plugin = plugin, .run = "t1", .number = 7, .folder = meta.folder
  };
}

bool
said(enum verdict verdict)
{
  uint64_t word = verdict == VERDICT_NONE ? 0 : KIT_SAID ^ (uint64_t)verdict;

  return report()->word == word && report()->verdict == (int32_t)verdict;
}

/* A line of the trace with this in it. */
static bool
traced_line(const char *text)
{
  uint32_t n = report()->n_trace < KIT_TRACE_LINES ? report()->n_trace : KIT_TRACE_LINES;

  for (uint32_t i = 0; i < n; i++) {
    if (strstr(report()->trace[i].text, text) != NULL)
      return true;
  }
  return false;
}

void
tell(void)
{
  uint32_t n = report()->n_trace < KIT_TRACE_LINES ? report()->n_trace : KIT_TRACE_LINES;

  diag("verdict %s, %s, clause %s: %s", verdict_name((enum verdict)report()->verdict),
       phase_name((enum phase)report()->phase), report()->clause, report()->message);
  diag("expected %s, found %s", report()->expected, report()->found);
  for (uint32_t i = 0; i < n; i++)
    diag("%6lld %s", (long long)report()->trace[i].at, report()->trace[i].text);
}

bool
stores_are_gone(void)
{
  for (uint32_t i = 0; i < report()->n_stores; i++) {
    char path[KIT_MAX_VALUE];
    struct kit_job job = job_of(NULL, NULL);

    kit_store_name(&job, report()->stores[i], path, sizeof(path));
    if (report()->store_gone[i] == 0 || access(path, F_OK) == 0)
      return false;
  }
  return true;
}

static bool
has(const char *text, const char *part)
{
  return part == NULL || strstr(text, part) != NULL;
}

static void
judge(const struct expected *e)
{
  bool well = said(e->verdict) && has(report()->clause, e->clause) &&
              has(report()->message, e->message) && has(report()->found, e->found) &&
              (e->trace == NULL || traced_line(e->trace));

  ok(well, "%s: %s", e->name, verdict_name(e->verdict));
  if (!well)
    tell();
}

static void
run_expected(const struct expected *e)
{
  struct check check = {
    .id = "meta/check", .clauses = e->clauses == NULL ? "TURN-1 ACK-1" : e->clauses,
    .run = e->run, .processes = e->processes
  };
  struct kit_job job = job_of(&check, e->without_plugin ? NULL : meta.model);
  struct dk_setting mutant = {"mutant", bytes(e->mutant)};

  job.real_time = e->real_time;
  job.real_wait_ms = 1000;
  if (e->mutant != NULL) {
    job.settings = &mutant;
    job.n_settings = 1;
  }
  run_job(&job);
  judge(e);
  if (e->verdict == VERDICT_PASS)
    ok(stores_are_gone() && report()->phase == PHASE_DONE, "%s: its stores were removed", e->name);
}

void
run_in_child(void (*act)(const struct kit_job *job), const struct kit_job *job)
{
  pid_t child;

  fflush(NULL);
  kit_shared_reset(meta.shared);
  child = fork();
  if (child == 0) {
    act(job);
    _exit(0);
  }
  ok(status_of_child(child) == 0, "the child ends");
}

void
run_all(const struct expected *table, size_t n)
{
  for (size_t i = 0; i < n; i++)
    run_expected(&table[i]);
}

/* ---- begin and end --------------------------------------------------------------------------- */

void
meta_begin(void)
{
  const char *tmp = getenv("TMPDIR");

  meta.model = getenv("MODEL");
  if (meta.model == NULL || access(meta.model, R_OK) != 0)
    BAIL_OUT("MODEL does not name the model's plugin");
  snprintf(meta.folder, sizeof(meta.folder), "%.40s/test-kit-XXXXXX", tmp == NULL ? "/tmp" : tmp);
  if (mkdtemp(meta.folder) == NULL)
    BAIL_OUT("no folder can be made in %s", tmp == NULL ? "/tmp" : tmp);
  plan(NO_PLAN);
  meta.shared = kit_shared_new();
  if (meta.shared == NULL)
    BAIL_OUT("the shared map cannot be made");
}

int
meta_end(void)
{
  char path[128];

  kit_shared_free(meta.shared);
  snprintf(path, sizeof(path), "%s/stdout", meta.folder);
  unlink(path);
  ok(rmdir(meta.folder) == 0, "nothing is left in the folder");
  return done_testing();
}
