/* SPDX-License-Identifier: Apache-2.0 */
/* A provider whose stores are folders in another folder, which plays the server: what a run leaves
 * behind there can be looked at.  It is a plugin on its own.  Files beside the stores say what the
 * server is to do:
 *
 *   hang-make    making a store is never answered
 *   late         and is done only after the store was removed for the first time
 *   refuse       no store that is there is removed
 *   slow         removing a store takes some time
 *   hang-STORE   removing this one is never answered
 *
 * Its file "log" has a line for each store that was to be removed. */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STUB_ANSWER(call) DK_INTERNAL
#define STUB_FETCHED DK_INTERNAL
#include "core/plugin/testing/stub.h"

enum { SLOW_MS = 60 };

struct place {
  char server[512], store[128];
};

static void
take_place(struct place *place, const struct dk_open *open)
{
  *place = (struct place){"", ""};
  for (size_t i = 0; i < open->n_settings; i++) {
    const struct dk_setting *s = &open->settings[i];
    bool is_server = strcmp(s->key, "server") == 0;
    snprintf(is_server ? place->server : place->store,
             is_server ? sizeof(place->server) : sizeof(place->store), "%.*s", (int)s->value.len,
             s->value.ptr);
  }
}

static void
path_of(const struct place *place, const char *prefix, const char *name, char path[700])
{
  snprintf(path, 700, "%s/%s%s", place->server, prefix, name);
}

static bool
has(const struct place *place, const char *prefix, const char *name)
{
  char path[700];

  path_of(place, prefix, name, path);
  return access(path, F_OK) == 0;
}

static bool
make(const struct place *place)
{
  char path[700];

  path_of(place, "", place->store, path);
  return mkdir(path, 0700) == 0;
}

static dk_status
say(const struct dk_host *host, struct dk_call *call, dk_status status, const char *text)
{
  return host->fail(call, status, (struct dk_bytes){text, strlen(text)});
}

static dk_status
stores_open(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
            void **ret_self)
{
  static char self;
  struct place place;

  take_place(&place, open);
  bool there = has(&place, "", place.store);
  if (!there && (open->flags & DK_OPEN_CREATE) == 0)
    return say(host, call, DK_NOT_FOUND, "there is no such store");
  while (!there && has(&place, "", "hang-make"))
    poll(NULL, 0, 60000);
  if (!there && !make(&place))
    return say(host, call, DK_UNAVAILABLE, "the store cannot be made");
  *ret_self = &self;
  return DK_OK;
}

/* The line of this removal; it is not the first of this store. */
static bool
log_removal(const struct place *place)
{
  char path[700], line[200];
  bool again = false;

  path_of(place, "", "log", path);
  FILE *log = fopen(path, "a+e");
  while (log && fgets(line, sizeof(line), log)) {
    line[strcspn(line, "\n")] = '\0';
    again = again || strcmp(line, place->store) == 0;
  }
  if (log) {
    fprintf(log, "%s\n", place->store);
    fclose(log);
  }
  return again;
}

static dk_status
stores_destroy(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  struct place place;
  char path[700];

  take_place(&place, open);
  bool again = log_removal(&place);
  while (has(&place, "hang-", place.store))
    poll(NULL, 0, 60000);
  if (has(&place, "", "slow"))
    poll(NULL, 0, SLOW_MS);
  if (has(&place, "", place.store) && has(&place, "", "refuse"))
    return say(host, call, DK_UNAVAILABLE, "it does not want to");
  path_of(&place, "", place.store, path);
  if (has(&place, "", place.store) && rmdir(path) != 0)
    return say(host, call, DK_UNAVAILABLE, "it cannot be removed");
  if (!again && has(&place, "", "late") && !make(&place))
    return say(host, call, DK_INTERNAL, "the server has not done what was requested");
  return DK_OK;
}

static const struct dk_ops ops = {STUB_OPS};

static const struct dk_param params[] = {
  {.key = "server", .type = "string", .help = "its folder", .flags = DK_PARAM_REQUIRED},
  {.key = "store", .type = "string", .help = "the folder in it", .flags = DK_PARAM_STORE},
  {.key = NULL},
};

static const struct dk_provider provider = {
  STUB_PROVIDER,
  .clocks = DK_CLOCK_HOST,
  .shared = 3,
  .name = "stores",
  .help = "Makes stores and removes them.",
  .params = params,
  .extensions = stub_extensions,
  .ops = &ops,
  .open = stores_open,
  .destroy_store = stores_destroy,
};

const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  (void)host_minor;
  return &provider;
}
