/* SPDX-License-Identifier: Apache-2.0 */
/* KV, STAT, SESS: key-values, custom status and sessions, as far as they are fields of a commit and
 * of a fetch.  Model-full declares them; the model itself refuses them here.  No clause is named
 * and no mutant is here: both come with the checks of these areas. */
#include "conformance/model/model.h"

#include <string.h>

#include "core/base/sat.h"

/* ---- the tables ------------------------------------------------------------------------------ */

static uint64_t
look_at_status(void *self, struct dk_bytes id, struct dk_bytes *ret_text)
{
  struct store *s = self;

  pthread_mutex_lock(&s->mutex);
  const struct instance *instance = find_instance(s, id);
  *ret_text = instance ? instance->custom_status : (struct dk_bytes){NULL, 0};
  uint64_t version = instance ? instance->custom_version : 0;
  pthread_mutex_unlock(&s->mutex);
  return version;
}

void
make_tables(struct store *s)
{
  s->status_table = (struct model_status){
    .head = {.struct_size = sizeof s->status_table}, .self = s, .look = look_at_status};
}

const void *
table_of(const struct store *s, const char *id)
{
  static const struct dk_extension fields_only = {.struct_size = sizeof fields_only};

  if (strcmp(id, DK_ADMIN) == 0)
    return &model_admin;
  return strcmp(id, "durakit.status/1") == 0 ? (const void *)&s->status_table : &fields_only;
}

/* ---- a commit -------------------------------------------------------------------------------- */

dk_status
refuse_unknown_changes(struct op *op, const struct dk_turn_result *r)
{
  if (!op->s->has_extensions)
    return refuse_unknown(op, r->n_kv || r->custom_status_op, "what belongs to an extension");
  TRY(refuse_unknown(op, r->custom_status_op < DK_CUSTOM_KEEP ||
                           r->custom_status_op > DK_CUSTOM_CLEAR, "a change of the custom status"));
  for (size_t i = 0; i < r->n_kv; i++)
    TRY(refuse_unknown(op, r->kv[i].op < DK_KV_SET || r->kv[i].op > DK_KV_CLEAR_ALL,
                       "a change of a key"));
  return DK_OK;
}

static struct dk_bytes
or_empty(struct dk_bytes bytes)
{
  return bytes.ptr ? bytes : (struct dk_bytes){"", 0};
}

/* One after the other: what was set before all keys are cleared is deleted. */
void
change_keys(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  for (size_t i = 0; i < r->n_kv; i++) {
    const struct dk_kv_change *change = &r->kv[i];

    if (change->op == DK_KV_SET)
      STEP(op, .kind = KEY_COMES, .instance = turn->id, .id = change->key,
           .payload = or_empty(change->value), .enqueued_at = change->updated_at);
    else if (change->op == DK_KV_CLEAR)
      STEP(op, .kind = KEY_GOES, .instance = turn->id, .id = change->key);
    else
      STEP(op, .kind = KEY_GOES, .instance = turn->id);
  }
}

void
change_custom_status(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  if (r->custom_status_op == DK_CUSTOM_SET)
    STEP(op, .kind = CUSTOM_STATUS, .instance = turn->id, .payload = or_empty(r->custom_status));
  else if (r->custom_status_op == DK_CUSTOM_CLEAR)
    STEP(op, .kind = CUSTOM_STATUS, .instance = turn->id);
}

/* ---- a fetch --------------------------------------------------------------------------------- */

dk_status
hand_up_keys(struct op *op, const struct instance *turn)
{
  const struct store *s = op->s;

  for (const struct key *key = turn->keys; key; key = key->next)
    TRY(s->host->kv(op->call, &(struct dk_kv){
                                .struct_size = sizeof(struct dk_kv),
                                .key = key->name,
                                .value = key->value,
                                .updated_at = key->updated_at,
                              }));
  return DK_OK;
}

int64_t
session_free_at(const struct op *op, const struct row *row, const struct dk_fetch_work *request)
{
  const struct session *session = row->session.ptr ? find_session(op->s, row->session) : NULL;
  bool is_held = session && session->until > op->now;

  if (!row->session.ptr)
    return INT64_MIN;
  if (request->session_rule == DK_SESSION_NONE || !request->owner.ptr)
    return INT64_MAX;
  if (is_held && equal_bytes(session->owner, request->owner))
    return INT64_MIN;
  if (request->session_rule == DK_SESSION_HELD)
    return INT64_MAX;
  return is_held ? session->until : INT64_MIN;
}

/* With each item that is handed out, from now on: sooner than before, too. */
void
hold_session(struct op *op, const struct row *row, const struct dk_fetch_work *request)
{
  if (row->session.ptr)
    STEP(op, .kind = SESSION, .id = row->session, .owner = request->owner,
         .until = dk_sat_add(op->now, request->session_lock_ms));
}
