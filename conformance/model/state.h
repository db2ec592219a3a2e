/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and hash tables whose links lie in the rows themselves: nothing here fails. */
#ifndef DK_MODEL_STATE_H
#define DK_MODEL_STATE_H

#include "conformance/model/model.h"

void list_init(struct link *list);
void link_after(struct link *place, struct link *link);
void link_remove(struct link *link);
void link_to_end(struct link *list, struct link *link);

void table_add(struct table *t, struct entry *entry, uint64_t hash);
void table_remove(struct table *t, struct entry *entry);

uint64_t hash_of_instance(struct dk_bytes id);
uint64_t hash_of_message(struct dk_bytes instance, struct dk_bytes id);
uint64_t hash_of_identity(const struct identity *identity);

#endif
