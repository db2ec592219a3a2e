/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that is another one (MODEL, a path) in all but what is given: the status that its open
 * (OPEN), its enqueue_for_orchestrator (ENQUEUE) or its read_history (READ) always answers.  Each
 * refusal has a number of its own in its text; with OTHER_WORDS those of enqueue differ by
 * instance.  In stores whose path has WORKS_IN in it enqueue works.  SHARED and ADDRESS (the name
 * of a setting) say that a server is behind the store. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "durakit/provider.h"

#ifndef WORKS_IN
#define WORKS_IN "://" /* in none */
#endif

static const struct dk_host *host;
static const struct dk_provider *model;
static unsigned refusals;
static bool works;

__attribute__((unused)) static dk_status
refuse(struct dk_call *call, dk_status status, const char *words)
{
  char text[80];

  snprintf(text, sizeof(text), "%s (%u)", words, ++refusals);
  return host->fail(call, status, (struct dk_bytes){text, strlen(text)});
}

static dk_status
open_store(const struct dk_host *given, struct dk_call *call, const struct dk_open *open,
           void **ret_self)
{
  host = given;
  for (size_t i = 0; i < open->n_settings; i++)
    works = works || strstr(open->settings[i].value.ptr, WORKS_IN) != NULL;
#ifdef OPEN
  (void)ret_self;
  return refuse(call, OPEN, "open: nothing answers");
#else
  return model->open(given, call, open, ret_self);
#endif
}

#ifdef ENQUEUE
static dk_status
enqueue(void *self, struct dk_call *call, const struct dk_item *item)
{
  if (works)
    return model->ops->enqueue_for_orchestrator(self, call, item);
#ifdef OTHER_WORDS
  if (item->instance.len != strlen("inst"))
    return refuse(call, ENQUEUE, "enqueue: no row was written");
#endif
  return refuse(call, ENQUEUE, "enqueue: no such table");
}
#endif

#ifdef READ
static dk_status
read_history(void *self, struct dk_call *call, const struct dk_read_history *request)
{
  (void)self;
  (void)request;
  return refuse(call, READ, "read_history: no such column");
}
#endif

const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  static struct dk_provider provider;
  static struct dk_ops ops;
  union {
    void *found;
    dk_entry_fn *call;
  } entry = {dlsym(dlopen(MODEL, RTLD_NOW | RTLD_LOCAL), "durakit_provider_2")};

  model = entry.call(host_minor);
  provider = *model;
  ops = *model->ops;
  provider.ops = &ops;
  provider.open = open_store;
#ifdef ENQUEUE
  ops.enqueue_for_orchestrator = enqueue;
#endif
#ifdef READ
  ops.read_history = read_history;
#endif
#ifdef SHARED
  provider.shared = SHARED;
#endif
#ifdef ADDRESS
  static struct dk_param params[16] = {{.key = ADDRESS, .type = "address"}};
  for (unsigned i = 0; i < 14 && model->params[i].key != NULL; i++)
    params[i + 1] = model->params[i];
  provider.params = params;
#endif
  return &provider;
}
