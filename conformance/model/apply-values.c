/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of key-values, custom statuses and sessions do to the store in memory: see
 * apply.c. */
#include "conformance/model/apply.h"

#include <stdlib.h>

/* ---- key-values and custom status ------------------------------------------------------------ */

/* The key of this name, or the place for it. */
static struct key **
place_of_key(struct instance *instance, struct dk_bytes name)
{
  struct key **place = &instance->keys;

  while (*place && str_compare((*place)->name, name) < 0)
    place = &(*place)->next;
  return place;
}

static void
remove_key(struct key **place)
{
  struct key *gone = *place;

  *place = gone->next;
  free(gone);
}

void
remove_keys(struct instance *instance)
{
  while (instance->keys)
    remove_key(&instance->keys);
}

dk_status
apply_key_comes(struct store *s, const struct step *p)
{
  char *tail;
  struct instance *instance = find_instance(s, p->instance);
  struct key *made = new_piece(sizeof *made, room_for(p->id) + room_for(p->payload), &tail);

  if (!instance || !made) {
    free(made);
    return instance ? DK_NO_MEMORY : DK_CORRUPT;
  }
  made->name = keep(&tail, p->id);
  made->value = keep(&tail, p->payload);
  made->updated_at = p->enqueued_at;
  struct key **place = place_of_key(instance, p->id);
  if (*place && equal_bytes((*place)->name, p->id))
    remove_key(place);
  made->next = *place;
  *place = made;
  return DK_OK;
}

dk_status
apply_key_goes(struct store *s, const struct step *p)
{
  struct instance *instance = find_instance(s, p->instance);

  if (!instance)
    return DK_CORRUPT;
  if (!p->id.ptr) {
    remove_keys(instance);
    return DK_OK;
  }
  struct key **place = place_of_key(instance, p->id);
  if (*place && equal_bytes((*place)->name, p->id))
    remove_key(place);
  return DK_OK;
}

dk_status
apply_custom_status(struct store *s, const struct step *p)
{
  struct instance *instance = find_instance(s, p->instance);

  if (!instance)
    return DK_CORRUPT;
  if (!replace(&instance->custom_status, p->payload))
    return DK_NO_MEMORY;
  instance->custom_version++;
  return DK_OK;
}

/* ---- sessions -------------------------------------------------------------------------------- */

static struct session *
find_or_make_session(struct store *s, struct dk_bytes id)
{
  char *tail;
  struct session *session = find_session(s, id);

  if (session || !(session = new_piece(sizeof *session, room_for(id), &tail)))
    return session;
  session->id = keep(&tail, id);
  session->next = s->sessions;
  s->sessions = session;
  return session;
}

dk_status
apply_session(struct store *s, const struct step *p)
{
  struct session *held = find_or_make_session(s, p->id);

  if (!held || !replace(&held->owner, p->owner))
    return DK_NO_MEMORY;
  held->until = p->until;
  return DK_OK;
}

void
free_sessions(struct store *s)
{
  while (s->sessions) {
    struct session *gone = s->sessions;
    s->sessions = gone->next;
    free((char *)gone->owner.ptr);
    free(gone);
  }
}
