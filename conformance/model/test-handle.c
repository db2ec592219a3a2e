/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the model share: see test-handle.h.  Owns the loaded model and the folder. */
#include "conformance/model/test-handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

static struct dk_library *library; /* one program, one plugin, one folder */
static char folder[] = "/tmp/test-model-XXXXXX";

struct dk_bytes
text(const char *string)
{
  return (struct dk_bytes){string, string ? strlen(string) : 0};
}

bool
same(struct dk_bytes got, const char *expected)
{
  return got.len == strlen(expected) && memcmp(got.ptr, expected, got.len) == 0;
}

/* ---- the model and a folder ------------------------------------------------------------------ */

static struct dk_library *
load(const char *variable)
{
  struct dk_refusal refusal;
  const char *model = getenv(variable);

  if (!model)
    BAIL_OUT("%s is not set", variable);
  if (dk_library_open(model, 0, &library, &refusal) < 0)
    BAIL_OUT("the model cannot be loaded: %s", refusal.what);
  if (!mkdtemp(folder))
    BAIL_OUT("no folder for the stores");
  return library;
}

struct dk_library *
begin(void)
{
  return load("MODEL");
}

struct dk_library *
begin_full(void)
{
  return load("MODEL_FULL");
}

void
end(void)
{
  char command[sizeof folder + 16];

  dk_library_close(library);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0)
    diag("cannot remove %s", folder);
}

off_t
size_of(const char *path)
{
  struct stat file;

  return stat(path, &file) == 0 ? file.st_size : -1;
}

/* ---- a handle, its caller and its clock ------------------------------------------------------ */

static void
violation(void *context, const char *operation, const char *clause, const char *what)
{
  struct handle *h = context;

  diag("%s breaks %s: %s", operation, clause, what);
  h->broke_a_rule = true;
}

struct dk_virtual_clock *
new_clock(void **ret_region)
{
  *ret_region = aligned_alloc(64, (dk_virtual_clock_size() + 63) / 64 * 64);
  struct dk_virtual_clock *clock =
    *ret_region ? dk_virtual_clock_init(*ret_region, START, 0) : NULL;

  if (!clock)
    BAIL_OUT("no clock");
  return clock;
}

static dk_status
open_store(struct handle *h, struct dk_virtual_clock *clock, const char *path, const char *mutant,
           uint32_t flags)
{
  struct dk_setting settings[2];
  size_t n = 0;
  struct dk_host_options options = {.struct_size = sizeof options, .violation = violation,
                                    .context = h};

  *h = (struct handle){.clock = clock, .caller = dk_caller_new(NULL, 0)};
  if (!h->caller)
    BAIL_OUT("no caller");
  if (clock)
    options.clock = dk_virtual_clock_as_clock(clock);
  if (path)
    settings[n++] = (struct dk_setting){"store", text(path)};
  if (mutant)
    settings[n++] = (struct dk_setting){"mutant", text(mutant)};
  return dk_store_open(library, &options, h->caller, flags, settings, n, &h->store);
}

dk_status
open_with(struct handle *h, struct dk_virtual_clock *clock, const char *path, const char *mutant,
          uint32_t flags)
{
  return open_store(h, clock, path, mutant, flags | DK_OPEN_HOST_CLOCK);
}

dk_status
open_by_its_own_clock(struct handle *h, const char *path)
{
  return open_store(h, NULL, path, NULL, DK_OPEN_CREATE);
}

void
open_handle(struct handle *h, struct dk_virtual_clock *clock, const char *path)
{
  dk_status status = open_with(h, clock, path, NULL, DK_OPEN_CREATE);

  if (status != DK_OK)
    BAIL_OUT("open: %s", dk_caller_failure(h->caller)->text);
}

void
close_handle(struct handle *h)
{
  if (h->store && dk_store_close(h->store))
    fail("close: an operation did not return");
  if (h->broke_a_rule)
    fail("the model broke a rule of the ABI");
  dk_caller_free(h->caller);
}

const char *
store_path(const char *name)
{
  static char path[sizeof folder + 64];

  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* ---- operations in short --------------------------------------------------------------------- */

dk_status
enqueue(struct handle *h, const char *instance, const char *id)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text(instance), .id = text(id),
                         .payload = text("hello")};

  return dk_store_enqueue_for_orchestrator(h->store, h->caller, &item);
}

struct dk_turn *
fetch_turn(struct handle *h)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn = NULL;

  return dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn) == DK_OK ? turn
                                                                                          : NULL;
}

struct dk_work_item *
fetch_work(struct handle *h)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE,
                                  .tag_rule = DK_TAG_ANY, .owner = text("worker")};
  struct dk_works *works = NULL;
  dk_status status = dk_store_fetch_work_item(h->store, h->caller, &request, &works);

  return status == DK_OK ? works->items : NULL;
}

struct dk_bytes
kept(struct dk_bytes token)
{
  static _Thread_local char room[16][4096];
  static _Thread_local size_t next;
  char *place = room[next++ % 16];

  memcpy(place, token.ptr, token.len);
  place[token.len] = '\0';
  return (struct dk_bytes){place, token.len};
}

dk_status
commit_first(struct handle *h, struct dk_bytes token, size_t n_activities)
{
  struct dk_event event = {1, text("began")};
  struct dk_item *items = calloc(n_activities + 1, sizeof *items);
  const struct dk_item **list = calloc(n_activities + 1, sizeof *list);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("order"), .version = text("1"), .events = &event,
                                  .n_events = 1, .worker_items = list,
                                  .n_worker_items = n_activities};
  struct dk_commit_outcome outcome;

  for (size_t i = 0; i < n_activities; i++) {
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .execution_id = 1,
                                .activity_id = i + 1, .payload = text("do")};
    list[i] = &items[i];
  }
  dk_status status =
    dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome);
  free(list);
  free(items);
  return status;
}

dk_status
commit_cancelling(struct handle *h, struct dk_bytes token, size_t n,
                  struct dk_commit_outcome *ret_outcome)
{
  struct dk_activity *cancelled = calloc(n, sizeof *cancelled);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .cancelled_activities = cancelled, .n_cancelled_activities = n};

  for (size_t i = 0; i < n; i++)
    cancelled[i] = (struct dk_activity){1, i + 1};
  dk_status status =
    dk_store_ack_orchestration_item(h->store, h->caller, token, &result, ret_outcome);
  free(cancelled);
  return status;
}

dk_status
ack_work(struct handle *h, struct dk_bytes token, const char *to)
{
  struct dk_item completion = {.struct_size = sizeof completion, .instance = text(to),
                               .payload = text("done")};
  struct dk_work_result result = {.struct_size = sizeof result,
                                  .completion = to ? &completion : NULL};

  return dk_store_ack_work_item(h->store, h->caller, token, &result);
}

