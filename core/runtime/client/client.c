/* SPDX-License-Identifier: Apache-2.0 */
/* A client: how it sends, with the operations of host.h only.  Owns a caller, and the texts of the
 * last info.  Locking: client.h. */
#include "core/runtime/client/client.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "core/base/sat.h"
#include "core/base/utf8.h"
#include "core/plugin/call.h"
#include "core/plugin/look.h"
#include "core/runtime/code/registry.h"

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 500, ID_BYTES = 16, MAX_REASON = 1024,
       MAX_BY = 256 };

/* ---- errors ---------------------------------------------------------------------------------- */

dk_status
client_refuse(struct dk_client *client, dk_status status, const char *format, ...)
{
  va_list args;

  dk_lock(&client->lock);
  va_start(args, format);
  vsnprintf(client->error, sizeof(client->error), format, args);
  va_end(args);
  dk_unlock(&client->lock);
  return status;
}

void
client_forget_error(struct dk_client *client)
{
  dk_lock(&client->lock);
  client->error[0] = '\0';
  dk_unlock(&client->lock);
}

void
client_copy_error(struct dk_client *client, char ret_words[CLIENT_ERROR])
{
  dk_lock(&client->lock);
  memcpy(ret_words, client->error, CLIENT_ERROR);
  dk_unlock(&client->lock);
}

void
client_words(const struct dk_caller *caller, dk_status status, char ret_words[CLIENT_ERROR])
{
  const struct dk_failure *failure = dk_caller_failure(caller);
  const char *operation = failure->operation[0] ? failure->operation : "before it was sent";
  const char *text = failure->text;
  size_t named = strlen(operation);
  char name[32];

  if (strncmp(text, operation, named) == 0 && strncmp(text + named, ": ", 2) == 0) /* words */
    text += named + 2; /* some providers write it as well */
  snprintf(ret_words, CLIENT_ERROR, "%s: %s: %s", operation,
           dk_status_name(status, name, sizeof(name)), text);
}

dk_status
client_set_error(struct dk_client *client, const struct dk_caller *caller, dk_status status)
{
  assert(dk_lock_is_held(&client->lock));
  if (status == DK_OK || !dk_caller_failure(caller)->operation[0])
    client->error[0] = '\0';
  else
    client_words(caller, status, client->error);
  return status;
}

dk_status
client_keep_error(struct dk_client *client, const struct dk_caller *caller, dk_status status)
{
  dk_lock(&client->lock);
  client_set_error(client, caller, status);
  dk_unlock(&client->lock);
  return status;
}

/* ---- the provider ---------------------------------------------------------------------------- */

static const struct dk_provider *
provider_of(const struct dk_client *client)
{
  return dk_library_provider(dk_store_library(client->store));
}

size_t
client_max_id(const struct dk_client *client)
{
  return provider_of(client)->limits->max_id;
}

struct dk_caller *
client_new_caller(const struct dk_client *client)
{
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  if (caller)
    dk_caller_set_canceller(caller, client->canceller);
  return caller;
}

bool
client_has_admin(const struct dk_client *client)
{
  return client->has_admin;
}

dk_status
client_needs_admin(struct dk_client *client, const char *call)
{
  client_forget_error(client);
  if (client_has_admin(client))
    return DK_OK;
  return client_refuse(client, DK_UNSUPPORTED,
                       "%s needs " DK_ADMIN ", which the provider %s does not offer; without it, "
                       "use dk_client_status, dk_client_history, dk_client_cancel or "
                       "dk_cancel_many",
                       call, provider_of(client)->name);
}

/* ---- repetitions ----------------------------------------------------------------------------- */

bool
client_pause_for(const struct dk_client *client, int64_t ms)
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

int64_t
client_pause_of(unsigned n)
{
  int64_t ms = n < 6 ? (int64_t)FIRST_PAUSE_MS << n : LONGEST_PAUSE_MS;

  return ms < LONGEST_PAUSE_MS ? ms : LONGEST_PAUSE_MS;
}

bool
client_is_unknown(dk_status status)
{
  return dk_status_class(status) == 3;
}

bool
client_is_cancelled(const struct dk_client *client)
{
  return client->canceller && dk_cancelled(client->canceller);
}

struct attempts
attempts_begin(void)
{
  return (struct attempts){.until = dk_sat_add(dk_monotonic_ms(), CLIENT_AGAIN_MS)};
}

static bool
are_over(const struct attempts *attempts)
{
  return attempts->repetitions >= CLIENT_REPEATS || dk_monotonic_ms() >= attempts->until;
}

bool
client_reads_again(const struct dk_client *client, struct attempts *attempts, dk_status status,
                   bool is_patient)
{
  int32_t class = dk_status_class(status);

  if ((class != 3 && !(is_patient && class == 1)) || are_over(attempts))
    return false;
  unsigned before = attempts->repetitions++;
  return !is_patient || client_pause_for(client, client_pause_of(before));
}

/* The first attempt with an unknown outcome might have taken long: the time limit begins anew, so
 * that it is repeated at least once. */
bool
client_changes_again(const struct dk_client *client, struct attempts *attempts, dk_status status,
                     const char *words)
{
  int32_t class = dk_status_class(status);

  if (client_is_unknown(status) && !attempts->is_unknown) {
    *attempts = attempts_begin();
    attempts->is_unknown = true;
    snprintf(attempts->words, sizeof(attempts->words), "%s", words);
  }
  if (!attempts->is_unknown || (class != 1 && class != 3) || are_over(attempts))
    return false;
  return client_pause_for(client, client_pause_of(attempts->repetitions++));
}

dk_status
attempts_answer(const struct attempts *attempts, dk_status status, bool tells)
{
  bool is_certain = status == DK_OK || (tells && dk_status_class(status) == 2);

  return attempts->is_unknown && !is_certain ? DK_OUTCOME_UNKNOWN : status;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Makes the id of a request, by which a repetition is recognised. */
static bool
make_id(char id[2 + 2 * ID_BYTES], char first)
{
  unsigned char bytes[ID_BYTES];
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

dk_status
request_message_write(struct dk_client *client, struct request_message *request_message,
                      dk_str instance, const char *id, char first, const struct message *message)
{
  *request_message = (struct request_message){.item = {.flags = 0}};
  dk_text_add(&request_message->instance, instance.ptr, instance.ptr ? instance.len : 0);
  message_encode(&request_message->payload, message);
  if (dk_text_failed(&request_message->instance) || dk_text_failed(&request_message->payload))
    return client_refuse(client, DK_NO_MEMORY, "no memory for the message");
  if (id)
    snprintf(request_message->id, sizeof(request_message->id), "%s", id);
  else if (!make_id(request_message->id, first))
    return client_refuse(client, DK_UNAVAILABLE,
                         "the system has no random numbers for the message's id");
  request_message->item = (struct dk_item){
      .struct_size = sizeof(request_message->item),
      .instance = {dk_text_str(&request_message->instance), request_message->instance.length},
      .id = dk_str_of(request_message->id),
      .payload = {dk_text_str(&request_message->payload), request_message->payload.length},
  };
  return DK_OK;
}

void
request_message_done(struct request_message *request_message)
{
  dk_text_done(&request_message->instance);
  dk_text_done(&request_message->payload);
}

static dk_status
send_with(struct dk_client *client, struct dk_caller *caller,
          struct request_message *request_message)
{
  dk_caller_reset(caller);
  dk_status status =
      dk_store_enqueue_for_orchestrator(client->store, caller, &request_message->item);
  client_words(caller, status, request_message->words);
  return status;
}

static dk_status
send_as_client(struct dk_client *client, struct request_message *request_message)
{
  dk_lock(&client->lock);
  dk_status status = send_with(client, client->caller, request_message);
  client_set_error(client, client->caller, status);
  dk_unlock(&client->lock);
  return status;
}

static dk_status
send_once(struct dk_client *client, struct dk_caller *caller,
          struct request_message *request_message)
{
  return caller == client->caller ? send_as_client(client, request_message)
                                  : send_with(client, caller, request_message);
}

/* After an unknown outcome only one refusal is conclusive: that it is stored already. */
dk_status
request_message_send(struct dk_client *client, struct dk_caller *caller,
                     struct request_message *request_message, bool *ret_repeated)
{
  struct attempts attempts = attempts_begin();
  dk_status status = send_once(client, caller, request_message);

  while (client_changes_again(client, &attempts, status, request_message->words)) {
    request_message->item.flags = DK_REPEATED;
    status = send_once(client, caller, request_message);
  }
  *ret_repeated = attempts.is_unknown;
  status = attempts_answer(&attempts, status, status == DK_DUPLICATE);
  if (!client_is_unknown(status))
    return status;
  memcpy(request_message->words, attempts.words, sizeof(request_message->words));
  return caller == client->caller ? client_refuse(client, status, "%s", request_message->words)
                                  : status;
}

/* Sends a request with its own id: if it is stored twice, it still arrives once. */
static dk_status
send_message(struct dk_client *client, dk_str instance, char first, const struct message *message)
{
  struct request_message request_message;
  bool repeated = false;
  dk_status status =
      request_message_write(client, &request_message, instance, NULL, first, message);

  if (status == DK_OK)
    status = request_message_send(client, client->caller, &request_message, &repeated);
  if (status == DK_DUPLICATE && repeated) {
    client_forget_error(client);
    status = DK_OK;
  }
  request_message_done(&request_message);
  return status;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static dk_status
check_name(struct dk_client *client, const char *what, const char *name)
{
  size_t most = client_max_id(client);

  client_forget_error(client);
  if (name && dk_text_id_valid(name, strlen(name), most))
    return DK_OK;
  return client_refuse(client, DK_INVALID, "%s must be 1 to %zu bytes of UTF-8, but is %s", what,
                       most, !name ? "NULL" : !name[0] ? "empty" : "longer, or not UTF-8");
}

/* The control characters of Unicode that a terminal might interpret: C0, DEL and C1. */
static bool
is_control(uint32_t character)
{
  return character < 0x20 || (character >= 0x7f && character < 0xa0);
}

static dk_status
check_words(struct dk_client *client, const char *what, const char *words, size_t least,
            size_t most)
{
  size_t size = words ? strlen(words) : 0, length;
  uint32_t character;

  if (!words)
    return DK_OK;
  if (size < least)
    return client_refuse(client, DK_INVALID, "%s is empty: give a text, or NULL for none", what);
  if (size > most)
    return client_refuse(client, DK_INVALID, "%s has %zu bytes, but at most %zu are stored; it is "
                         "not cut: give a shorter text", what, size, most);
  for (size_t i = 0; i < size; i += length) {
    length = dk_utf8_next(words + i, size - i, &character);
    if (length == 0)
      return client_refuse(client, DK_INVALID, "%s is not valid UTF-8 at byte %zu", what, i);
    if (is_control(character))
      return client_refuse(client, DK_INVALID, "%s has the control character U+%04X at byte %zu: "
                           "remove it", what, (unsigned)character, i);
  }
  return DK_OK;
}

dk_status
client_check_words(struct dk_client *client, const char *reason, const char *by)
{
  TRY(check_words(client, "the reason", reason, 0, MAX_REASON));
  return check_words(client, "the requester (by)", by, 1, MAX_BY);
}

/* ---- the public part ------------------------------------------------------------------------- */

struct dk_client *
dk_client_new(struct dk_store *store, struct dk_canceller *canceller)
{
  struct dk_client *client = calloc(1, sizeof(*client));
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  if (!client || !caller || !dk_lock_init(&client->lock)) {
    dk_caller_free(caller);
    free(client);
    return NULL;
  }
  dk_caller_set_canceller(caller, canceller);
  dk_arena_init(&client->arena);
  client->store = store;
  client->has_admin = dk_store_extension(store, DK_ADMIN) != NULL;
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
  dk_lock_done(&client->lock);
  free(client);
}

const char *
dk_client_error(const struct dk_client *client)
{
  return client->error;
}

/* Sends the start.  If it is stored already after an unknown outcome, it might be this call's own
 * start; the error says so, because the two cannot be distinguished. */
static dk_status
send_start(struct dk_client *client, struct request_message *request_message)
{
  bool repeated;
  dk_status status = request_message_send(client, client->caller, request_message, &repeated);

  if (status == DK_DUPLICATE && repeated)
    return client_refuse(client, status, "a start is stored, either by this call, whose first "
                                         "outcome was unknown, or by another one");
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
  struct request_message request_message;
  int32_t status_of;

  TRY(check_name(client, "the orchestration's name", name));
  if (version && version_parse(message.version, &parsed) != DK_OK)
    return client_refuse(client, DK_INVALID, "the version \"%.40s\" is not of the form 1.2.3",
                         version);
  dk_status status =
      request_message_write(client, &request_message, instance, CLIENT_START_ID, 0, &message);
  if (status == DK_OK)
    status = client_read_status(client, &request_message.instance, &status_of);
  if (status == DK_OK)
    status = client_refuse(client, DK_DUPLICATE, "the instance exists already");
  else if (status == DK_NOT_FOUND)
    status = send_start(client, &request_message);
  request_message_done(&request_message);
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

/* A request that is stored already has the same effect as this one, and was first. */
dk_status
dk_client_cancel(struct dk_client *client, dk_str instance, const char *reason, const char *by)
{
  const struct message message = {
    .kind = MESSAGE_CANCEL, .text = dk_str_of(reason), .by = dk_str_of(by)};
  struct request_message request_message;
  bool repeated;

  client_forget_error(client);
  TRY(client_check_words(client, reason, by));
  dk_status status =
      request_message_write(client, &request_message, instance, CLIENT_CANCEL_ID, 0, &message);
  if (status == DK_OK)
    status = request_message_send(client, client->caller, &request_message, &repeated);
  if (status == DK_DUPLICATE) {
    client_forget_error(client);
    status = DK_OK;
  }
  request_message_done(&request_message);
  return status;
}
