/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the steps share: pieces of memory, each with its texts behind it, and the
 * functions that one file has for another. */
#ifndef DK_MODEL_APPLY_H
#define DK_MODEL_APPLY_H

#include "conformance/model/model.h"

size_t room_for(struct dk_bytes text);
/* A zeroed piece with room behind it; *ret_tail then points there. */
void *new_piece(size_t size, size_t tail, char **ret_tail);
/* A copy at *tail, which moves on. */
struct dk_bytes keep(char **tail, struct dk_bytes text);
/* Puts a copy in place of a text that has memory of its own; false if there is no memory. */
bool replace(struct dk_bytes *place, struct dk_bytes text);

/* apply-values.c */
dk_status apply_key_comes(struct store *s, const struct step *p);
dk_status apply_key_goes(struct store *s, const struct step *p);
dk_status apply_custom_status(struct store *s, const struct step *p);
dk_status apply_session(struct store *s, const struct step *p);
void remove_keys(struct instance *instance);
void free_sessions(struct store *s);

#endif
