/* SPDX-License-Identifier: Apache-2.0 */
/* The client: messages to instances, and what became of them, with the operations of host.h only.
 *
 * Owns a caller, and the texts of the last info.  `lock` guards both and the error's text; it is
 * held for one call of the store at a time, never while anything is waited for.  Under it nothing
 * else is locked but what the host locks.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/base/sat.h"
#include "core/base/utf8.h"
#include "core/plugin/call.h"
#include "core/plugin/look.h"
#include "core/runtime/event.h"
#include "core/runtime/registry.h"

enum {
  MAX_REPEATS = 8,       /* of a call whose outcome is unknown: about a second */
  FIRST_PAUSE_MS = 10,
  LONGEST_PAUSE_MS = 500,
  CLASS_UNKNOWN = 3,
  ID_SIZE = 1 + 2 * 16 + 1
};

struct dk_client {
  struct dk_store *store;
  struct dk_canceller *canceller;
  pthread_mutex_t lock;
  struct dk_caller *caller;
  struct dk_arena arena;  /* the last info's texts */
  char error[1024];
};

/* A message on its way: what the request points to. */
struct letter {
  struct dk_text instance, payload;
  char id[ID_SIZE];
  struct dk_item item;
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* A call of this client failed before it came to the store. */
__attribute__((format(printf, 3, 4))) static dk_status
refuse(struct dk_client *client, dk_status status, const char *format, ...)
{
  va_list args;

  pthread_mutex_lock(&client->lock);
  va_start(args, format);
  vsnprintf(client->error, sizeof(client->error), format, args);
  va_end(args);
  pthread_mutex_unlock(&client->lock);
  return status;
}

static void
forget_error(struct dk_client *client)
{
  pthread_mutex_lock(&client->lock);
  client->error[0] = '\0';
  pthread_mutex_unlock(&client->lock);
}

/* What the store said, to be kept after the caller's next call.  Under the lock. */
static void
keep_error(struct dk_client *client, dk_status status)
{
  const struct dk_failure *failure = dk_caller_failure(client->caller);
  char name[32];

  if (status == DK_OK || !failure->operation[0])
    client->error[0] = '\0';
  else
    snprintf(client->error, sizeof(client->error), "%s: %s: %s", failure->operation,
             dk_status_name(status, name, sizeof(name)), failure->text);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits for so long; false: the canceller wants the call back. */
static bool
pause_for(const struct dk_client *client, int64_t ms)
{
  const struct dk_wait wait = {.cancel_fd = client->canceller ? client->canceller->fd : -1,
                               .fd = -1};
  const int64_t until = dk_sat_add(dk_monotonic_ms(), ms);

  for (;;) {
    int64_t left = until - dk_monotonic_ms();
    if (dk_look(&wait, -1, left > 0 ? left : 0) & DK_LOOK_CANCELLED)
      return false;
    if (left <= 0)
      return true;
  }
}

/* 10, 20, 40, ... 500 ms. */
static int64_t
pause_of(unsigned n)
{
  int64_t ms = n < 6 ? (int64_t)FIRST_PAUSE_MS << n : LONGEST_PAUSE_MS;

  return ms < LONGEST_PAUSE_MS ? ms : LONGEST_PAUSE_MS;
}

static bool
is_unknown(dk_status status)
{
  return dk_status_class(status) == CLASS_UNKNOWN;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A letter's own id: a repetition is found by it. */
static bool
make_id(char id[ID_SIZE], char first)
{
  unsigned char bytes[16];
  size_t n = 0;

  while (n < sizeof(bytes)) {
    ssize_t got = getrandom(bytes + n, sizeof(bytes) - n, 0);
    if (got < 0 && errno != EINTR)
      return false;
    n += got > 0 ? (size_t)got : 0;
  }
  id[0] = first;
  for (size_t i = 0; i < sizeof(bytes); i++)
    snprintf(id + 1 + 2 * i, 3, "%02x", bytes[i]);
  return true;
}

/* first: 's' for the id "start", which is the same for all who start; else the id's first letter.
 */
static dk_status
write_letter(struct dk_client *client, struct letter *letter, dk_str instance, char first,
             const struct message *message)
{
  *letter = (struct letter){.id = "start"};
  dk_text_add(&letter->instance, instance.ptr, instance.ptr ? instance.len : 0);
  message_encode(&letter->payload, message);
  if (dk_text_failed(&letter->instance) || dk_text_failed(&letter->payload))
    return refuse(client, DK_NO_MEMORY, "no memory for the message");
  if (first != 's' && !make_id(letter->id, first))
    return refuse(client, DK_UNAVAILABLE, "the system has no random numbers for the message's id");
  letter->item = (struct dk_item){
    .struct_size = sizeof(letter->item),
    .instance = {dk_text_str(&letter->instance), letter->instance.length},
    .id = dk_str_of(letter->id),
    .payload = {dk_text_str(&letter->payload), letter->payload.length},
  };
  return DK_OK;
}

static void
burn_letter(struct letter *letter)
{
  dk_text_done(&letter->instance);
  dk_text_done(&letter->payload);
}

static dk_status
send_once(struct dk_client *client, const struct letter *letter)
{
  pthread_mutex_lock(&client->lock);
  dk_caller_reset(client->caller);
  dk_status status =
    dk_store_enqueue_for_orchestrator(client->store, client->caller, &letter->item);
  keep_error(client, status);
  pthread_mutex_unlock(&client->lock);
  return status;
}

/* Sends it.  Where it is unknown whether it arrived, sends it again until that is known, for a
 * second or so.  *ret_repeated: the answer is that of a repetition. */
static dk_status
send_surely(struct dk_client *client, struct letter *letter, bool *ret_repeated)
{
  dk_status status = send_once(client, letter);

  *ret_repeated = is_unknown(status);
  if (!is_unknown(status))
    return status;
  letter->item.flags = DK_REPEATED;
  for (unsigned n = 0; n < MAX_REPEATS && pause_for(client, pause_of(n)); n++) {
    status = send_once(client, letter);
    if (status == DK_OK || status == DK_DUPLICATE)
      return status;
    if (dk_status_class(status) == 2)
      break;
  }
  return DK_OUTCOME_UNKNOWN; /* of the first, whatever the others said */
}

/* A letter with an id of its own: stored twice it is there once. */
static dk_status
send_message(struct dk_client *client, dk_str instance, char first, const struct message *message)
{
  struct letter letter;
  bool repeated = false;
  dk_status status = write_letter(client, &letter, instance, first, message);

  if (status == DK_OK)
    status = send_surely(client, &letter, &repeated);
  if (status == DK_DUPLICATE && repeated) {
    forget_error(client);
    status = DK_OK;
  }
  burn_letter(&letter);
  return status;
}

static dk_status
check_name(struct dk_client *client, const char *what, const char *name)
{
  const struct dk_provider *provider = dk_library_provider(dk_store_library(client->store));
  size_t most = provider->limits->max_id;

  forget_error(client);
  if (name && dk_text_id_valid(name, strlen(name), most))
    return DK_OK;
  return refuse(client, DK_INVALID, "%s has to be 1 to %zu bytes of UTF-8, and is %s", what, most,
                !name ? "NULL" : !name[0] ? "empty" : "not");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads in the caller's memory, under the lock; again while it is unknown whether that was read,
 * which harms nobody. */
static dk_status
read_once(struct dk_client *client, const struct dk_read_history *request,
          struct dk_history **ret_history)
{
  dk_caller_reset(client->caller);
  dk_status status =
    dk_store_read_history(client->store, client->caller, request, ret_history);
  for (unsigned n = 0; n < MAX_REPEATS && is_unknown(status); n++) {
    dk_caller_reset(client->caller);
    status = dk_store_read_history(client->store, client->caller, request, ret_history);
  }
  keep_error(client, status);
  return status;
}

static struct dk_read_history
a_reading(const struct dk_text *instance, uint64_t execution, uint64_t from)
{
  return (struct dk_read_history){
    .struct_size = sizeof(struct dk_read_history),
    .max_events = 1,
    .instance = {dk_text_str(instance), instance->length},
    .execution_id = execution,
    .from_event = from,
  };
}

/* The status of the newest execution, without any of its events; DK_NOT_FOUND: there is none. */
static dk_status
read_status(struct dk_client *client, const struct dk_text *instance, int32_t *ret_status)
{
  const struct dk_read_history request = a_reading(instance, 0, INT64_MAX);
  struct dk_history *history;

  pthread_mutex_lock(&client->lock);
  dk_status status = read_once(client, &request, &history);
  if (status == DK_OK && !history->found)
    status = DK_NOT_FOUND;
  if (status == DK_OK)
    *ret_status = history->execution.status;
  pthread_mutex_unlock(&client->lock);
  return status;
}

/* The next execution is about to begin: nothing is over. */
static int32_t
shown_status(int32_t status)
{
  return status == DK_CONTINUED_AS_NEW ? DK_RUNNING : status;
}

static dk_status
keep(struct dk_client *client, dk_str text, dk_str *ret_text)
{
  *ret_text = (dk_str){text.ptr ? dk_arena_copy(&client->arena, text.ptr, text.len) : NULL,
                       text.len};
  return text.ptr && !ret_text->ptr ? DK_NO_MEMORY : DK_OK;
}

/* The first event of what was read, if there is one that can be read; else of kind EVENT_NONE: the
 * status of an execution is told also if its history is damaged. */
static dk_status
first_event(struct dk_client *client, const struct dk_history *history, struct event *ret_event)
{
  const char *why;
  dk_status status = DK_OK;

  *ret_event = (struct event){.kind = EVENT_NONE};
  if (history->found && history->n_events > 0)
    status = event_decode(&client->arena, history->events[0].payload, ret_event, &why);
  return status == DK_CORRUPT ? DK_OK : status;
}

/* The head, and the name and version of the beginning. */
static dk_status
read_begin(struct dk_client *client, const struct dk_text *instance, struct dk_instance_info *info)
{
  const struct dk_read_history request = a_reading(instance, 0, 1);
  struct dk_history *history;
  struct event event;

  TRY(read_once(client, &request, &history));
  if (!history->found)
    return DK_NOT_FOUND;
  const struct dk_execution *execution = &history->execution;
  info->status = shown_status(execution->status);
  info->execution_id = execution->execution_id;
  info->n_events = execution->last_event_id;
  info->started_at = execution->started_at;
  info->ended_at = info->status == DK_RUNNING ? 0 : execution->completed_at;
  if (info->status != DK_RUNNING)
    TRY(keep(client, execution->output, &info->output));
  TRY(first_event(client, history, &event));
  if (event.kind == EVENT_STARTED) {
    info->name = event.name;
    info->version = event.version;
  }
  return DK_OK;
}

/* Who has cancelled it, from its last event. */
static dk_status
read_end(struct dk_client *client, const struct dk_text *instance, struct dk_instance_info *info)
{
  const struct dk_read_history request =
    a_reading(instance, info->execution_id, info->n_events);
  struct dk_history *history;
  struct event event;

  TRY(read_once(client, &request, &history));
  TRY(first_event(client, history, &event));
  if (event.kind == EVENT_CANCELLED)
    info->cancelled_by = event.by;
  return DK_OK;
}

static dk_status
read_info(struct dk_client *client, const struct dk_text *instance, struct dk_instance_info *info)
{
  TRY(read_begin(client, instance, info));
  return info->status == DK_CANCELLED ? read_end(client, instance, info) : DK_OK;
}

/* What the caller's struct has room for. */
static void
give_info(const struct dk_instance_info *info, struct dk_instance_info *ret_info)
{
  uint32_t size = ret_info->struct_size;

  memcpy(ret_info, info, size < sizeof(*info) ? size : sizeof(*info));
  ret_info->struct_size = size;
}

static dk_status
fetch_info(struct dk_client *client, const struct dk_text *instance,
           struct dk_instance_info *ret_info)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};

  if (!DK_HAS_FIELD(dk_instance_info, ret_info, status))
    return refuse(client, DK_INVALID, "struct_size of the info is %u: set it to its size",
                  (unsigned)ret_info->struct_size);
  pthread_mutex_lock(&client->lock);
  dk_arena_reset(&client->arena);
  dk_status status = read_info(client, instance, &info);
  pthread_mutex_unlock(&client->lock);
  if (status == DK_OK)
    give_info(&info, ret_info);
  return status;
}

/* ---- the public part ------------------------------------------------------------------------- */

struct dk_client *
dk_client_new(struct dk_store *store, struct dk_canceller *canceller)
{
  struct dk_client *client = calloc(1, sizeof(*client));
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  if (!client || !caller || pthread_mutex_init(&client->lock, NULL) != 0) {
    dk_caller_free(caller);
    free(client);
    return NULL;
  }
  dk_caller_set_canceller(caller, canceller);
  dk_arena_init(&client->arena);
  client->store = store;
  client->canceller = canceller;
  client->caller = caller;
  return client;
}

void
dk_client_free(struct dk_client *client)
{
  if (!client)
    return;
  dk_caller_free(client->caller);
  dk_arena_done(&client->arena);
  pthread_mutex_destroy(&client->lock);
  free(client);
}

const char *
dk_client_error(const struct dk_client *client)
{
  return client->error;
}

/* Sends the start.  That it is stored already may be our own doing, if the first outcome was
 * unknown: nobody can tell, so that is said. */
static dk_status
send_start(struct dk_client *client, struct letter *letter)
{
  bool repeated;
  dk_status status = send_surely(client, letter, &repeated);

  if (status == DK_DUPLICATE && repeated)
    return refuse(client, status, "a start is stored: this one, whose first outcome was unknown, "
                                  "or another's");
  return status;
}

dk_status
dk_client_start(struct dk_client *client, dk_str instance, const char *name, dk_str input,
                const char *version)
{
  const struct message message = {.kind = MESSAGE_START,
                                  .name = dk_str_of(name),
                                  .text = input,
                                  .version = dk_str_of(version)};
  struct dk_version parsed;
  struct letter letter;
  int32_t status_of;

  TRY(check_name(client, "the orchestration's name", name));
  if (version && version_parse(message.version, &parsed) != DK_OK)
    return refuse(client, DK_INVALID, "the version \"%.40s\" is not of the form 1.2.3", version);
  dk_status status = write_letter(client, &letter, instance, 's', &message);
  if (status == DK_OK)
    status = read_status(client, &letter.instance, &status_of);
  if (status == DK_OK)
    status = refuse(client, DK_DUPLICATE, "the instance is there already");
  else if (status == DK_NOT_FOUND)
    status = send_start(client, &letter);
  burn_letter(&letter);
  return status;
}

dk_status
dk_client_raise(struct dk_client *client, dk_str instance, const char *event, dk_str data)
{
  const struct message message = {
    .kind = MESSAGE_RAISED, .name = dk_str_of(event), .text = data};

  TRY(check_name(client, "the event's name", event));
  return send_message(client, instance, 'r', &message);
}

dk_status
dk_client_enqueue(struct dk_client *client, dk_str instance, const char *queue, dk_str data)
{
  const struct message message = {
    .kind = MESSAGE_QUEUED, .name = dk_str_of(queue), .text = data};

  TRY(check_name(client, "the queue's name", queue));
  return send_message(client, instance, 'q', &message);
}

dk_status
dk_client_cancel(struct dk_client *client, dk_str instance, const char *reason, const char *by)
{
  const struct message message = {
    .kind = MESSAGE_CANCEL, .text = dk_str_of(reason), .by = dk_str_of(by)};

  forget_error(client);
  return send_message(client, instance, 'k', &message);
}

dk_status
dk_client_status(struct dk_client *client, dk_str instance, struct dk_instance_info *ret_info)
{
  struct dk_text copy = DK_TEXT_EMPTY;
  dk_status status;

  forget_error(client);
  dk_text_add(&copy, instance.ptr, instance.ptr ? instance.len : 0);
  if (dk_text_failed(&copy))
    status = refuse(client, DK_NO_MEMORY, "no memory for the instance's id");
  else
    status = fetch_info(client, &copy, ret_info);
  dk_text_done(&copy);
  return status;
}

/* Looks until it is over, the time is up, or nothing can come of it any more.  A store that is away
 * meanwhile is waited for: only at the end it is told. */
static dk_status
wait_until_over(struct dk_client *client, const struct dk_text *instance, int64_t until)
{
  int32_t status_of = DK_RUNNING;

  for (unsigned n = 0;; n++) {
    dk_status status = read_status(client, instance, &status_of);
    if (status == DK_OK && shown_status(status_of) != DK_RUNNING)
      return DK_OK;
    if (status == DK_CALL_CANCELLED ||
        (dk_status_class(status) == 2 && status != DK_NOT_FOUND))
      return status;
    int64_t left = until - dk_monotonic_ms();
    if (left <= 0)
      return status == DK_OK || status == DK_NOT_FOUND ? DK_NOTHING : status;
    if (!pause_for(client, left < pause_of(n) ? left : pause_of(n)))
      return refuse(client, DK_CALL_CANCELLED, "the wait was called back");
  }
}

dk_status
dk_client_wait(struct dk_client *client, dk_str instance, int64_t wait_ms,
               struct dk_instance_info *ret_info)
{
  const int64_t until = dk_sat_add(dk_monotonic_ms(), wait_ms);
  struct dk_text copy = DK_TEXT_EMPTY;
  dk_status status;

  forget_error(client);
  dk_text_add(&copy, instance.ptr, instance.ptr ? instance.len : 0);
  if (wait_ms < 0)
    status = refuse(client, DK_INVALID, "wait_ms is negative");
  else if (dk_text_failed(&copy))
    status = refuse(client, DK_NO_MEMORY, "no memory for the instance's id");
  else
    status = wait_until_over(client, &copy, until);
  if (status == DK_OK)
    status = fetch_info(client, &copy, ret_info);
  dk_text_done(&copy);
  return status;
}
