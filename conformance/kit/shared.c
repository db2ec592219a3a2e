/* SPDX-License-Identifier: Apache-2.0 */
/* The map that runner, check and actors share: made once, at one address, before any fork.
 *
 * It owns its address range and lays it out: the plain part, the virtual clock, then for each
 * process an actor may be, room for requests and room for replies.  Pages cost nothing until they
 * are touched.
 */
#include "conformance/kit/kit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };
#define REQUEST_ROOM ((size_t)32 << 20)
#define REPLY_ROOM ((size_t)64 << 20)

static size_t
whole_pages(size_t size)
{
  return (size + PAGE - 1) / PAGE * PAGE;
}

static size_t
clock_offset(void)
{
  return whole_pages(sizeof(struct kit_shared));
}

static size_t
rooms_offset(void)
{
  return clock_offset() + whole_pages(dk_virtual_clock_size());
}

static size_t
map_size(void)
{
  return rooms_offset() + KIT_PROCESSES * (REQUEST_ROOM + REPLY_ROOM);
}

int
kit_shared_file(void)
{
  int file = memfd_create("durakit", MFD_CLOEXEC);

  if (file >= 0 && ftruncate(file, (off_t)map_size()) != 0) {
    int reason = errno;
    close(file);
    errno = reason;
    return -1;
  }
  return file;
}

struct kit_shared *
kit_shared_map(int file)
{
  void *map = mmap(NULL, map_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);

  return map == MAP_FAILED ? NULL : map;
}

struct kit_shared *
kit_shared_new(void)
{
  int file = kit_shared_file();
  struct kit_shared *shared = file < 0 ? NULL : kit_shared_map(file);
  int reason = errno;

  if (file >= 0)
    close(file);
  errno = reason;
  return shared;
}

void
kit_shared_free(struct kit_shared *shared)
{
  if (shared != NULL)
    munmap(shared, map_size());
}

/* Frees all pages, so that they read as zeros; costs time only for pages that were touched. */
void
kit_shared_reset(struct kit_shared *shared)
{
  if (madvise(shared, map_size(), MADV_REMOVE) != 0)
    memset(shared, 0, rooms_offset());
}

void
kit_shared_drop(struct kit_shared *shared, uint32_t processes)
{
  munmap(shared, rooms_offset() + processes * (REQUEST_ROOM + REPLY_ROOM));
}

void
kit_shared_trim(struct kit_shared *shared, uint32_t processes)
{
  size_t used = processes * (REQUEST_ROOM + REPLY_ROOM), all = map_size() - rooms_offset();

  if (used < all)
    munmap((char *)shared + rooms_offset() + used, all - used);
}

struct kit_report *
kit_report_of(struct kit_shared *shared)
{
  return &shared->report;
}

struct kit_probe *
kit_probe_of(struct kit_shared *shared)
{
  return &shared->probe;
}

void *
kit_clock_region(struct kit_shared *shared)
{
  return (char *)shared + clock_offset();
}

void *
kit_request_region(struct kit_shared *shared, uint32_t process, size_t *ret_size)
{
  *ret_size = REQUEST_ROOM;
  return (char *)shared + rooms_offset() + process * (REQUEST_ROOM + REPLY_ROOM);
}

void *
kit_reply_region(struct kit_shared *shared, uint32_t process, size_t *ret_size)
{
  *ret_size = REPLY_ROOM;
  return (char *)shared + rooms_offset() + process * (REQUEST_ROOM + REPLY_ROOM) + REQUEST_ROOM;
}

static bool
is_socket_of_runner(const struct kit_job *job)
{
  struct stat found;

  return fstat(job->seals, &found) == 0 && found.st_ino == job->seals_inode;
}

uint64_t
kit_ask_seal(struct kit_report *report, const struct kit_job *job, int use)
{
  unsigned char question = (unsigned char)use;
  uint64_t seal = 0;
  ssize_t n = 0;

  if (job->seals <= 0)
    return 0;
  while (is_socket_of_runner(job) && (n = send(job->seals, &question, 1, MSG_NOSIGNAL)) < 0
         && errno == EINTR)
    continue;
  while (n == 1 && (n = recv(job->seals, &seal, sizeof(seal), 0)) < 0 && errno == EINTR)
    n = 1;
  if (n != (ssize_t)sizeof(seal) || seal == 0) {
    if (report != NULL)
      report->n_unanswered++;
    return 0;
  }
  return seal;
}

void
kit_say_verdict(struct kit_report *report, const struct kit_job *job, enum verdict verdict)
{
  report->verdict = (int32_t)verdict;
  report->seal = kit_ask_seal(report, job, KIT_SEAL_VERDICT);
  __atomic_store_n(&report->word, KIT_SAID ^ (uint64_t)verdict, __ATOMIC_RELEASE);
}

const char *
verdict_name(enum verdict verdict)
{
  switch (verdict) {
  case VERDICT_NONE: return "none";
  case VERDICT_PASS: return "pass";
  case VERDICT_FAIL: return "fail";
  case VERDICT_HOST_DAMAGE: return "host-damage";
  case VERDICT_UNEXERCISED: return "unexercised";
  case VERDICT_SKIP: return "skip";
  case VERDICT_ERROR: return "error";
  case VERDICT_CRASH: return "crash";
  case VERDICT_TIMEOUT: return "timeout";
  case VERDICT_EARLY_EXIT: return "early-exit";
  case VERDICT_MEMORY: return "memory";
  case VERDICT_FLAKY: return "flaky";
  case VERDICT_NOT_RUN: return "not-run";
  }
  return "unknown";
}

const char *
phase_name(enum phase phase)
{
  switch (phase) {
  case PHASE_START: return "before the plugin was loaded";
  case PHASE_LOAD: return "while loading the plugin";
  case PHASE_OPEN: return "while opening the store";
  case PHASE_RUN: return "while the check ran";
  case PHASE_TWIN: return "in a twin run";
  case PHASE_CLOSE: return "while closing the store";
  case PHASE_DESTROY: return "while removing the store";
  case PHASE_COMPARE: return "while comparing the process's state";
  case PHASE_DONE: return "after all was done";
  }
  return "in an unknown phase";
}
