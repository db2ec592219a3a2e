/* SPDX-License-Identifier: Apache-2.0 */
/* Stores of the kit's own making: their names, how they are opened, closed and destroyed.
 *
 * A name is announced in the report before the store is made, so that the runner can remove the
 * stores of a killed check; and it is never one that existed before. */
#include "conformance/kit/kit.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- options and settings -------------------------------------------------------------------- */

static void
on_violation(void *context, const char *operation, const char *clause, const char *text)
{
  struct kit_shared *shared = context;
  struct kit_violation *v = &shared->violation;
  int32_t none = 0;

  /* The first violation counts: the others may follow from it. */
  if (!atomic_compare_exchange_strong(&v->happened, &none, 1))
    return;
  snprintf(v->operation, sizeof(v->operation), "%s", operation);
  snprintf(v->clause, sizeof(v->clause), "%s", clause);
  snprintf(v->text, sizeof(v->text), "%s", text);
  atomic_store_explicit(&v->happened, 2, memory_order_release);
}

static void
on_log(void *context, int32_t level, struct dk_bytes line)
{
  struct kit_shared *shared = context;
  struct dk_text text = DK_TEXT_EMPTY;
  int64_t at = 0;

  dk_text_printf(&text, "provider says (%d): ", level);
  dk_text_add_escaped(&text, line.ptr, line.len < 180 ? line.len : 180, DK_ESCAPE_VISIBLE);
  if (shared->clock != NULL)
    at = dk_virtual_clock_now(shared->clock) - KIT_START;
  kit_trace(&shared->report, at, dk_text_str(&text));
  dk_text_done(&text);
}

static const void *
on_service(void *context, const char *id)
{
  struct kit_shared *shared = context;

  return strcmp(id, DK_MUTANT_REACHED) == 0 ? &shared->mutants : NULL;
}

void
kit_options(struct kit_shared *shared, struct dk_host_options *ret_options)
{
  bool by_gate = shared->clock != NULL || shared->is_gated != 0;

  *ret_options = (struct dk_host_options){
    .struct_size = sizeof(*ret_options),
    .flags = DK_HOST_GUARDED,
    .clock = by_gate ? &shared->gate.clock : NULL,
    .context = shared,
    .log = on_log,
    .violation = on_violation,
    .service = on_service,
  };
}

uint32_t
kit_library_flags(const struct kit_job *job)
{
  return (job->incomplete ? DK_LIBRARY_INCOMPLETE : 0) | (job->unload ? DK_LIBRARY_UNLOAD : 0);
}

uint32_t
kit_open_flags(const struct kit_shared *shared, const struct dk_provider *provider)
{
  bool by_host = (provider->clocks & DK_CLOCK_HOST) != 0 && shared->own_clock == 0;

  return DK_OPEN_CREATE | (by_host ? (uint32_t)DK_OPEN_HOST_CLOCK : 0u);
}

bool
kit_settings(const struct kit_shared *shared, const struct kit_job *job, const char *value,
             struct kit_settings *ret_settings)
{
  ret_settings->n = 0;
  if (job->n_settings > KIT_MAX_SETTINGS)
    return false;
  for (size_t i = 0; i < job->n_settings; i++) {
    if (strcmp(job->settings[i].key, shared->proxy.key) != 0)
      ret_settings->items[ret_settings->n++] = job->settings[i];
  }
  if (shared->proxy.key[0] != '\0')
    ret_settings->items[ret_settings->n++] = (struct dk_setting){
      shared->proxy.key, {shared->proxy.value, strlen(shared->proxy.value)}
    };
  if (shared->store_key[0] != '\0' && value[0] != '\0')
    ret_settings->items[ret_settings->n++] =
      (struct dk_setting){shared->store_key, {value, strlen(value)}};
  return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Finds the parameter that names the store, and whether the kit chooses its value: a path in the
 * check's folder.  false: the user must give it. */
bool
kit_find_store_key(struct kit_shared *shared, const struct kit_job *job,
                   const struct dk_provider *provider)
{
  const struct dk_param *p = provider->params;

  while (p != NULL && p->key != NULL && (p->flags & DK_PARAM_STORE) == 0)
    p++;
  if (p == NULL || p->key == NULL)
    return true;
  snprintf(shared->store_key, sizeof(shared->store_key), "%s", p->key);
  if (job->store_value != NULL)
    return true;
  if (strcmp(p->type, "path") == 0)
    return job->folder != NULL;
  if ((p->flags & DK_PARAM_REQUIRED) != 0)
    return false;
  shared->store_key[0] = '\0'; /* it has a store of its own for each handle */
  return true;
}

void
kit_store_name(const struct kit_job *job, const char *suffix, char *buffer, size_t size)
{
  if (job->store_value != NULL)
    snprintf(buffer, size, "%s-%s", job->store_value, suffix);
  else
    snprintf(buffer, size, "%s/store-%s", job->folder == NULL ? "." : job->folder, suffix);
}

bool
kit_store_value(const struct kit_shared *shared, const struct kit_job *job, const char *suffix,
                char *buffer, size_t size)
{
  buffer[0] = '\0';
  if (shared->store_key[0] == '\0')
    return true;
  kit_store_name(job, suffix, buffer, size);
  return strlen(buffer) + 1 < size;
}

static int
find_announced(const struct kit_report *report, const char *suffix)
{
  for (uint32_t i = 0; i < report->n_stores; i++) {
    if (strcmp(report->stores[i], suffix) == 0)
      return (int)i;
  }
  return -1;
}

bool
kit_announce(struct kit_report *report, const char *suffix)
{
  int i = find_announced(report, suffix);

  /* The entry of a store that was removed may be used again. */
  for (uint32_t k = 0; i < 0 && k < report->n_stores; k++) {
    if (report->store_gone[k] != 0 && report->store_making[k] == 0)
      i = (int)k;
  }
  if (i < 0 && report->n_stores == KIT_MAX_STORES)
    return false;
  if (i < 0)
    i = (int)report->n_stores;
  snprintf(report->stores[i], sizeof(report->stores[i]), "%s", suffix);
  report->store_gone[i] = 0;
  report->store_making[i] = 1;
  if (i == (int)report->n_stores)
    report->n_stores++;
  return true;
}

void
kit_announce_made(struct kit_report *report, const char *suffix, dk_status status)
{
  int i = find_announced(report, suffix);

  if (i >= 0)
    report->store_making[i] = dk_status_class(status) == 3;
}

void
kit_announce_gone(struct kit_report *report, const char *suffix)
{
  int i = find_announced(report, suffix);

  if (i >= 0)
    report->store_gone[i] = 1;
}

/* "dk<run>-<number>-a", then -b, ... -z, -aa: one for each pass. */
static void
pass_suffix(struct dk_check *t)
{
  char letters[8];
  size_t at = sizeof(letters) - 1;
  int32_t n = t->pass;

  letters[at] = '\0';
  do {
    letters[--at] = (char)('a' + n % 26);
    n = n / 26 - 1;
  } while (n >= 0 && at > 0);
  snprintf(t->pass_suffix, sizeof(t->pass_suffix), "dk%.12s-%u-%s", t->job->run, t->job->number,
           letters + at);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static struct kit_settings
settings_for(struct dk_check *t, const char *value)
{
  struct kit_settings settings;

  if (!kit_settings(t->shared, t->job, value, &settings))
    kit_trouble(t, "more than %d settings", KIT_MAX_SETTINGS);
  return settings;
}

static dk_status
try_open(struct dk_check *t, struct actor *who, uint32_t flags, const char *value,
         struct dk_store **ret_store)
{
  struct kit_settings settings = settings_for(t, value);
  struct dk_host_options options;

  kit_options(t->shared, &options);
  options.host_size = t->host_size;
  dk_caller_set_actor(who->caller, 0);
  kit_enter(t, "open");
  struct dk_library *library = t->through != NULL ? t->through : t->library;
  kit_take_doom(who);
  kit_faults_begin(t, &who->op);
  dk_status status =
    dk_store_open(library, &options, who->caller, flags, settings.items, settings.n, ret_store);
  kit_faults_end(t);
  kit_left(t);
  return status;
}

static void
close_store(struct dk_check *t, const char *whose, struct dk_store *store)
{
  const char *stuck;

  kit_enter(t, "close");
  stuck = dk_store_close(store);
  kit_left(t);
  if (stuck != NULL) {
    snprintf(t->report->clause, sizeof(t->report->clause), "CALL-4");
    kit_fail(t, VERDICT_FAIL, NULL, "every call returns when its handle is closed", stuck,
             "%s of %s did not return when the handle was closed", stuck, whose);
  }
  kit_judge_violation(t);
}

/* Of a variation. */
static bool
wants_second(const struct dk_check *t, const struct actor *who)
{
  const struct check *check = t->job->check;

  return who->kind == IS_MAIN && check != NULL && check->variation != NULL &&
         check->variation->alternates;
}

dk_status
kit_open(struct dk_check *t, struct actor *who)
{
  uint32_t flags = kit_open_flags(t->shared, t->provider);
  if (t->only_reads)
    flags = (flags & ~(uint32_t)DK_OPEN_CREATE) | DK_OPEN_READ_ONLY;
  dk_status status = try_open(t, who, flags, t->shared->store_value, &who->store);
  if (status == DK_OK && wants_second(t, who))
    status = try_open(t, who, flags, t->shared->store_value, &t->second);

  kit_judge_violation(t);
  return status;
}

void
kit_close(struct dk_check *t, struct actor *who)
{
  struct dk_store *store = who->store, *second = t->second;

  if (who->kind == IS_MAIN && t->helper != NULL && t->helper->in_use) {
    kit_run_handle_op(t, t->helper, OP_CLOSE);
    t->helper->in_use = 0;
    t->helper = NULL;
  }
  if (who->kind == IS_MAIN && second != NULL) {
    t->second = NULL;
    close_store(t, "the second handle", second);
  }
  who->store = NULL;
  if (who->kind == IS_MAIN && t->provider->durable < 1)
    t->n_neighbours = 0;
  if (store != NULL)
    close_store(t, who->name, store);
}

/* An operation in the actor's own process: it opens or closes its handle. */
void
kit_run_handle_op(struct dk_check *t, struct actor *who, enum op_kind kind)
{
  kit_begin(t, who, kind);
  kit_give(t, who);
  kit_wait_done(t, who);
  who->given = 0;
  kit_judge_violation(t);
  if (who->op.broken != 0)
    kit_fail(t, VERDICT_FAIL, NULL, "the store can be used by another process", who->op.text,
             "%s: %s", who->name, who->op.text);
}

static void
judge_open(struct dk_check *t, struct actor *who, dk_status status)
{
  const char *text = dk_caller_failure(who->caller)->text;
  char name[32], why[300] = "";
  enum verdict verdict = dk_status_class(status) == 1 ? VERDICT_ERROR : VERDICT_FAIL;

  if (status == DK_OK)
    return;
  if (status == DK_UNAVAILABLE)
    verdict = kit_judge_unavailable(t, why, sizeof(why));
  kit_note_answer(t, "open", status, text);
  kit_fail(t, verdict, NULL, "DK_OK", text, "open of %s answered %s: %s%s", who->name,
           kit_status_name(status, name, sizeof(name)), text, why);
}

void
kit_reopen(struct dk_check *t, struct actor *who)
{
  judge_open(t, who, kit_open(t, who));
}

void
open_handle(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  if (who->kind == IS_THREAD || who->store != NULL)
    kit_trouble(t, "open_handle(%s): it has a handle", who->name);
  say_in_trace(t, "open %s", who->name);
  if (who->kind == IS_PROCESS)
    kit_run_handle_op(t, who, OP_OPEN);
  else
    judge_open(t, who, kit_open(t, who));
}

dk_status
try_open_handle(struct dk_check *t)
{
  struct actor *who = kit_actor(t, NULL);
  char name[32];

  if (who->store != NULL)
    kit_trouble(t, "try_open_handle(): it has a handle");
  if (!kit_announce(t->report, t->pass_suffix))
    kit_trouble(t, "more than %d stores at once", KIT_MAX_STORES);
  dk_status status = kit_open(t, who);
  kit_announce_made(t->report, t->pass_suffix, status);
  say_in_trace(t, "open %s -> %s %s", who->name, kit_status_name(status, name, sizeof(name)),
               status == DK_OK ? "" : dk_caller_failure(who->caller)->text);
  return status;
}

void
open_handle_of_older_host(struct dk_check *t, size_t host_size)
{
  t->host_size = host_size;
  say_in_trace(t, "the host is an older one: its table has %zu bytes", host_size);
  open_handle(t, NULL);
  t->host_size = 0;
}

void
open_handle_to_read(struct dk_check *t)
{
  t->only_reads = true;
  say_in_trace(t, "with DK_OPEN_READ_ONLY:");
  open_handle(t, NULL);
  t->only_reads = false;
}

void
open_handle_through(struct dk_check *t, struct dk_library *library)
{
  t->through = library;
  open_handle(t, NULL);
  t->through = NULL;
}

void
close_handle(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  say_in_trace(t, "close %s", who->name);
  if (who->kind == IS_PROCESS)
    kit_run_handle_op(t, who, OP_CLOSE);
  else if (who->kind == IS_THREAD || who->store == NULL)
    kit_trouble(t, "close_handle(%s): it has no handle of its own", who->name);
  else
    kit_close(t, who);
}

/* ---- the store of a pass --------------------------------------------------------------------- */

static void
say_exists(struct dk_check *t)
{
  kit_trouble(t, "the store %s exists already: the kit works only in stores that it made itself",
              t->shared->store_value);
}

/* Called before anything is changed, and only in the first pass, because later names differ only by
 * a letter.  In the check's own folder nothing can exist. */
void
kit_refuse_existing_store(struct dk_check *t)
{
  struct actor *who = kit_actor(t, NULL);
  struct dk_store *store = NULL;
  struct stat there;

  pass_suffix(t);
  if (!kit_store_value(t->shared, t->job, t->pass_suffix, t->shared->store_value, KIT_MAX_VALUE))
    kit_trouble(t, "the name of the store is too long");
  if (t->shared->store_value[0] == '\0' || t->job->store_value == NULL)
    return;
  if (t->shared->store_value[0] == '/' && lstat(t->shared->store_value, &there) == 0)
    say_exists(t);
  uint32_t flags = kit_open_flags(t->shared, t->provider) & ~(uint32_t)DK_OPEN_CREATE;
  dk_status status = try_open(t, who, flags, t->shared->store_value, &store);
  if (status == DK_OK)
    close_store(t, who->name, store);
  if (status == DK_OK)
    say_exists(t);
  if (status == DK_REFUSED)
    kit_trouble(t, "the store %s cannot be made: %s%s", t->shared->store_value, KIT_MAY_EXIST,
                dk_caller_failure(who->caller)->text);
  if (status != DK_NOT_FOUND)
    judge_open(t, who, status);
}

bool
kit_store_answers(struct dk_check *t, char *ret_why, size_t size)
{
  struct actor *who = kit_actor(t, NULL);
  struct dk_read_history request = {.struct_size = sizeof(request),
                                    .instance = bytes("durakit: no such instance")};
  struct dk_history *history;
  struct dk_store *store = NULL;
  uint32_t flags = kit_open_flags(t->shared, t->provider) & ~(uint32_t)DK_OPEN_CREATE;
  dk_status status = try_open(t, who, flags, t->shared->store_value, &store);
  const char *doing = store != NULL ? "read_history" : "open";
  char name[32];

  if (store != NULL)
    status = dk_store_read_history(store, who->caller, &request, &history);
  snprintf(ret_why, size, "%s of a new handle answered %s: %s", doing,
           kit_status_name(status, name, sizeof(name)),
           status == DK_OK ? "the store works" : dk_caller_failure(who->caller)->text);
  if (store != NULL)
    close_store(t, "a new handle", store);
  return status == DK_OK;
}

/* ABI-3: a handle may offer less than is declared, but not for a store that its open has made:
 * there the declaration must hold. */
static void
judge_extensions(struct dk_check *t, struct actor *who)
{
  const char *const *id = t->provider->extensions;

  for (; id != NULL && *id != NULL; id++) {
    if (dk_store_extension(who->store, *id) != NULL)
      continue;
    snprintf(t->report->clause, sizeof(t->report->clause), "ABI-3");
    kit_fail(t, VERDICT_FAIL, NULL, "a table for each extension that is declared", "NULL",
             "the descriptor declares %s, and the handle of a new store does not offer it", *id);
  }
}

void
kit_new_store(struct dk_check *t)
{
  struct actor *who = kit_actor(t, NULL);

  pass_suffix(t);
  if (!kit_store_value(t->shared, t->job, t->pass_suffix, t->shared->store_value, KIT_MAX_VALUE))
    kit_trouble(t, "the name of the store is too long");
  if (!kit_announce(t->report, t->pass_suffix))
    kit_trouble(t, "more than %d stores at once", KIT_MAX_STORES);
  dk_status status = kit_open(t, who);
  kit_announce_made(t->report, t->pass_suffix, status);
  judge_open(t, who, status);
  judge_extensions(t, who);
}

static dk_status
destroy(struct dk_check *t, const char *suffix)
{
  struct actor *who = kit_actor(t, NULL);
  char value[KIT_MAX_VALUE];
  struct dk_host_options options;
  dk_status status;

  if (!kit_store_value(t->shared, t->job, suffix, value, sizeof(value)))
    kit_trouble(t, "the name of the store is too long");
  struct kit_settings settings = settings_for(t, value);
  kit_options(t->shared, &options);
  kit_enter(t, "destroy_store");
  kit_take_doom(who);
  kit_faults_begin(t, &who->op);
  status = dk_store_destroy(t->library, &options, who->caller, settings.items, settings.n);
  kit_faults_end(t);
  kit_left(t);
  kit_judge_violation(t);
  if (status == DK_OK)
    kit_announce_gone(t->report, suffix);
  return status;
}

void
kit_destroy_store(struct dk_check *t)
{
  dk_status status = destroy(t, t->pass_suffix);
  enum verdict verdict = dk_status_class(status) == 1 ? VERDICT_ERROR : VERDICT_FAIL;
  char name[32], why[300] = "";

  if (status == DK_OK)
    return;
  snprintf(t->report->clause, sizeof(t->report->clause), "ABI-14");
  if (status == DK_UNAVAILABLE)
    verdict = kit_judge_unavailable(t, why, sizeof(why));
  kit_fail(t, verdict, NULL, "DK_OK", dk_caller_failure(kit_actor(t, NULL)->caller)->text,
           "destroy_store answered %s%s", kit_status_name(status, name, sizeof(name)), why);
}

/* ---- for checks about stores ----------------------------------------------------------------- */

static void
suffix_of(struct dk_check *t, const char *store_suffix, char buffer[64])
{
  if (store_suffix == NULL)
    snprintf(buffer, 64, "%s", t->pass_suffix);
  else
    snprintf(buffer, 64, "%s-%s", t->pass_suffix, store_suffix);
}

dk_status
open_status(struct dk_check *t, uint32_t flags, const char *store_suffix)
{
  struct actor *who = kit_actor(t, NULL);
  char suffix[64], value[KIT_MAX_VALUE], name[32];
  struct dk_store *store = NULL;
  dk_status status;

  suffix_of(t, store_suffix, suffix);
  if (!kit_store_value(t->shared, t->job, suffix, value, sizeof(value)))
    kit_trouble(t, "the name of the store is too long");
  if (!kit_announce(t->report, suffix))
    kit_trouble(t, "more than %d stores at once", KIT_MAX_STORES);
  status = try_open(t, who, flags, value, &store);
  kit_announce_made(t->report, suffix, status);
  if (status == DK_OK)
    close_store(t, "the opened store", store);
  kit_judge_violation(t);
  say_in_trace(t, "open(%s, flags %u) -> %s", suffix, flags,
               kit_status_name(status, name, sizeof(name)));
  return status;
}

dk_status
destroy_store(struct dk_check *t, const char *store_suffix)
{
  char suffix[64], name[32];
  dk_status status;

  suffix_of(t, store_suffix, suffix);
  if (store_suffix == NULL)
    t->n_neighbours = 0;
  status = destroy(t, suffix);
  say_in_trace(t, "destroy_store(%s) -> %s", suffix,
               kit_status_name(status, name, sizeof(name)));
  return status;
}

const char *
left_of_store(struct dk_check *t, const char *store_suffix)
{
  char suffix[64], value[KIT_MAX_VALUE];
  const struct dirent *entry;
  const char *left = NULL;

  suffix_of(t, store_suffix, suffix);
  if (!kit_store_value(t->shared, t->job, suffix, value, sizeof(value)) || value[0] != '/')
    return NULL;
  char *name = strrchr(value, '/');
  *name++ = '\0';
  DIR *folder = opendir(value);
  while (folder != NULL && left == NULL && (entry = readdir(folder)) != NULL) {
    if (strncmp(entry->d_name, name, strlen(name)) == 0)
      left = kit_copy_bytes(t, &t->arena, bytes(entry->d_name)).ptr;
  }
  if (folder != NULL)
    closedir(folder);
  return left;
}
