/* SPDX-License-Identifier: Apache-2.0 */
/* The other tasks of a child: describes a plugin, judges settings, removes stores. */
#include "conformance/kit/kit.h"

#include <stdio.h>
#include <string.h>

static void
copy_text(char *to, size_t size, const char *from)
{
  snprintf(to, size, "%s", from == NULL ? "" : from);
}

/* ---- the descriptor -------------------------------------------------------------------------- */

static void
describe_params(struct kit_probe *probe, const struct dk_param *params)
{
  enum { MOST = sizeof(probe->params) / sizeof(probe->params[0]) };

  for (; params != NULL && params->key != NULL && probe->n_params < MOST; params++) {
    uint32_t i = probe->n_params++;

    copy_text(probe->params[i].key, sizeof(probe->params[i].key), params->key);
    copy_text(probe->params[i].type, sizeof(probe->params[i].type), params->type);
    copy_text(probe->params[i].fallback, sizeof(probe->params[i].fallback), params->fallback);
    copy_text(probe->params[i].help, sizeof(probe->params[i].help), params->help);
    probe->params[i].flags = params->flags;
  }
}

static void
describe_lists(struct kit_probe *probe, const struct dk_library *library)
{
  const char *const *extension = dk_library_provider(library)->extensions;
  const char *const *missing = dk_library_missing(library);

  for (; extension != NULL && *extension != NULL && probe->n_extensions < 32; extension++)
    copy_text(probe->extensions[probe->n_extensions++], sizeof(probe->extensions[0]), *extension);
  for (; missing != NULL && *missing != NULL && probe->n_missing < 16; missing++)
    copy_text(probe->missing[probe->n_missing++], sizeof(probe->missing[0]), *missing);
}

static void
describe(struct kit_probe *probe, const struct dk_library *library)
{
  const struct dk_provider *p = dk_library_provider(library);

  copy_text(probe->name, sizeof(probe->name), p->name);
  copy_text(probe->version, sizeof(probe->version), p->version);
  copy_text(probe->built_with, sizeof(probe->built_with), p->built_with);
  copy_text(probe->help, sizeof(probe->help), p->help);
  probe->thread_model = p->thread_model;
  probe->durable = p->durable;
  probe->shared = p->shared;
  probe->unload = p->unload;
  probe->clocks = p->clocks;
  probe->runtime = p->runtime;
  probe->abi_minor = p->abi_minor;
  probe->stamp = p->stamp;
  if (p->limits != NULL)
    probe->limits = *p->limits;
  if (p->ops != NULL) {
    probe->has_enqueue_for_worker = p->ops->enqueue_for_worker != NULL;
    probe->has_release_fetch = p->ops->release_fetch != NULL;
    probe->has_interrupt = p->ops->interrupt != NULL;
  }
  describe_params(probe, p->params);
  describe_lists(probe, library);
  probe->loaded = true;
}

static struct dk_library *
load(struct kit_shared *shared, const struct kit_job *job)
{
  struct kit_probe *probe = kit_probe_of(shared);
  struct kit_report *report = kit_report_of(shared);
  struct dk_library *library = NULL;

  report->phase = PHASE_LOAD;
  if (dk_library_open(job->plugin, job->incomplete ? DK_LIBRARY_INCOMPLETE : 0, &library,
                      &probe->refusal) == 0)
    return library;
  snprintf(report->message, sizeof(report->message), "the plugin cannot be loaded: %s",
           probe->refusal.what);
  return NULL;
}

/* ---- a store of its own ---------------------------------------------------------------------- */

/* The means to open a store: all of them on the caller's stack frame. */
struct opening {
  struct kit_shared *shared;
  const struct kit_job *job;
  struct dk_library *library;
  struct dk_caller *caller;
  struct dk_host_options options;
  struct kit_settings settings;
  char suffix[64], value[KIT_MAX_VALUE];
};

/* In real time, even if the provider can use the host's clock: nothing here waits. */
static bool
begin_opening(struct opening *o, const char *suffix)
{
  const struct dk_provider *provider = dk_library_provider(o->library);

  copy_text(o->suffix, sizeof(o->suffix), suffix);
  if (!kit_find_store_key(o->shared, o->job, provider) ||
      !kit_store_value(o->shared, o->job, o->suffix, o->value, sizeof(o->value)) ||
      !kit_settings(o->shared, o->job, o->value, &o->settings))
    return false;
  if (o->caller == NULL)
    o->caller = dk_caller_new(NULL, 0);
  kit_options(o->shared, &o->options);
  return o->caller != NULL;
}

static dk_status
open_store(struct opening *o, uint32_t flags, struct dk_store **ret_store)
{
  return dk_store_open(o->library, &o->options, o->caller, flags, o->settings.items, o->settings.n,
                       ret_store);
}

/* Notes the status and text of open, and what the kit itself finds in that place. */
static void
note_open(const struct opening *o, struct kit_probe *probe, dk_status status, const char *before)
{
  const char *text = dk_caller_failure(o->caller)->text;
  char why[300] = "";

  probe->open_status = status;
  if (status == DK_UNAVAILABLE)
    probe->place_is_well = kit_place_is_well(dk_library_provider(o->library), o->job, o->value,
                                             why, sizeof(why));
  size_t room = sizeof(probe->open_text) - strlen(before) - strlen(why) - 1;
  snprintf(probe->open_text, sizeof(probe->open_text), "%s%.*s%s", before, (int)room, text, why);
}

/* A store may be made, and removed, only if the provider says that there is none.  False: the probe
 * says why not. */
static bool
is_free(struct opening *o, uint32_t flags, struct kit_probe *probe)
{
  struct dk_store *store = NULL;

  if (o->job->store_value == NULL || o->value[0] == '\0')
    return true;
  dk_status status = open_store(o, flags & ~(uint32_t)DK_OPEN_CREATE, &store);
  if (status == DK_NOT_FOUND)
    return true;
  if (status == DK_OK) {
    dk_store_close(store);
    probe->exists = true;
    probe->open_status = DK_REFUSED;
    copy_text(probe->open_text, sizeof(probe->open_text), "this store exists already");
  } else {
    note_open(o, probe, status, status == DK_REFUSED ? KIT_MAY_EXIST : "");
  }
  return false;
}

static void
measure_round_trip(struct opening *o, struct dk_store *store, struct kit_probe *probe)
{
  struct dk_item item = {
    .struct_size = sizeof(item), .instance = bytes("probe"), .payload = bytes("probe")
  };
  int64_t began = kit_real_ns();

  if (dk_store_enqueue_for_orchestrator(store, o->caller, &item) == DK_OK)
    probe->round_trip_ns = kit_real_ns() - began;
}

static void
use_store(struct opening *o, struct kit_probe *probe)
{
  struct kit_report *report = kit_report_of(o->shared);
  uint32_t flags = kit_open_flags(o->shared, dk_library_provider(o->library));
  struct dk_store *store = NULL;

  report->phase = PHASE_OPEN;
  if (!is_free(o, flags, probe))
    return;
  kit_announce(report, o->suffix);
  note_open(o, probe, open_store(o, flags, &store), "");
  kit_announce_made(report, o->suffix, probe->open_status);
  if (probe->open_status == DK_OK) {
    report->phase = PHASE_RUN;
    measure_round_trip(o, store, probe);
    report->phase = PHASE_CLOSE;
    dk_store_close(store);
  }
  report->phase = PHASE_DESTROY;
  if (dk_store_destroy(o->library, &o->options, o->caller, o->settings.items, o->settings.n) ==
      DK_OK)
    kit_announce_gone(report, o->suffix);
  probe->opened = probe->open_status == DK_OK;
}

static void
probe_store(struct kit_shared *shared, const struct kit_job *job, struct dk_library *library)
{
  struct opening o = {.shared = shared, .job = job, .library = library};
  struct kit_probe *probe = kit_probe_of(shared);
  char suffix[64];

  snprintf(suffix, sizeof(suffix), "dk%.12s-%u-probe", job->run, job->number);
  if (begin_opening(&o, suffix)) {
    use_store(&o, probe);
  } else {
    probe->open_status = DK_INVALID;
    snprintf(probe->open_text, sizeof(probe->open_text),
             "the store cannot be named: give a value for %s", shared->store_key);
  }
  dk_caller_free(o.caller);
}

/* ---- tasks of the runner --------------------------------------------------------------------- */

static void
finish_well(struct kit_report *report, const struct kit_job *job, bool well)
{
  if (well)
    report->phase = PHASE_DONE;
  kit_say_verdict(report, job, well ? VERDICT_PASS : VERDICT_ERROR);
}

void
kit_probe(struct kit_shared *shared, const struct kit_job *job, bool open)
{
  struct kit_probe *probe = kit_probe_of(shared);
  struct kit_report *report = kit_report_of(shared);
  struct dk_library *library = load(shared, job);

  if (library == NULL) {
    finish_well(report, job, false);
    return;
  }
  probe->threads_after_load = kit_count_threads();
  describe(probe, library);
  if (open)
    probe_store(shared, job, library);
  dk_library_close(library);
  if (open && !probe->opened)
    snprintf(report->message, sizeof(report->message), "the store could not be opened: %s",
             probe->open_text);
  finish_well(report, job, !open || probe->opened);
}

void
kit_check_settings(struct kit_shared *shared, const struct kit_job *job)
{
  struct kit_probe *probe = kit_probe_of(shared);
  struct kit_report *report = kit_report_of(shared);
  struct dk_library *library = load(shared, job);
  struct kit_settings settings = {.n = 0};
  bool well;

  if (library == NULL) {
    finish_well(report, job, false);
    return;
  }
  kit_find_store_key(shared, job, dk_library_provider(library));
  well = kit_settings(shared, job, job->store_value == NULL ? "" : job->store_value, &settings) &&
         dk_settings_check(library, settings.items, settings.n, &probe->refusal) == 0;
  dk_library_close(library);
  snprintf(report->message, sizeof(report->message), "%s", probe->refusal.what);
  finish_well(report, job, well);
}

static bool
destroy_one(struct opening *o, const char *suffix)
{
  struct kit_report *report = kit_report_of(o->shared);
  size_t length = strlen(report->message);
  dk_status status = DK_INVALID;
  char name[32];

  kit_announce(report, suffix);
  report->since_ns = kit_real_ns();
  report->running = 1;
  if (begin_opening(o, suffix))
    status = dk_store_destroy(o->library, &o->options, o->caller, o->settings.items,
                              o->settings.n);
  report->running = 0;
  report->operations++;
  if (status == DK_OK) {
    kit_announce_gone(report, suffix);
    return true;
  }
  snprintf(report->message + length, sizeof(report->message) - length, "%s%s: %s",
           length == 0 ? "" : "; ", suffix, dk_status_name(status, name, sizeof(name)));
  return false;
}

void
kit_destroy_stores(struct kit_shared *shared, const struct kit_job *job,
                   const char (*suffixes)[64], size_t n)
{
  struct kit_report *report = kit_report_of(shared);
  struct opening o = {.shared = shared, .job = job, .library = load(shared, job)};
  bool well = o.library != NULL;

  report->phase = PHASE_DESTROY;
  kit_wait_until_mended(job);
  copy_text(report->operation, sizeof(report->operation), "destroy_store");
  for (size_t i = 0; o.library != NULL && i < n; i++)
    well = destroy_one(&o, suffixes[i]) && well;
  dk_caller_free(o.caller);
  dk_library_close(o.library);
  finish_well(report, job, well);
}
