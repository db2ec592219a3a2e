/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at instances, for a client: what the store tells of one becomes an info.
 *
 * Owns callers and arenas, and so can be used by one thread at a time, while others use the client.
 * Texts of infos live until the next page (looking_turn), or the end. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_INFO_H
#define DK_RUNTIME_CLIENT_CLIENT_INFO_H

#include "core/runtime/client/client.h"

struct looking {
  struct dk_client *client;
  bool is_patient;                     /* with a store that is busy or away, for about a second */
  bool with_output;
  struct dk_caller *started, *unborn;  /* where the rows of a page are */
  struct dk_caller *detail, *again;    /* what is read of one instance */
  struct dk_arena page, scratch;
};

/* with_output: see dk_client_list.  looking_end after a failure, too. */
dk_status looking_begin(struct looking *l, struct dk_client *client, bool with_output);
void looking_end(struct looking *l);
/* The page before is over. */
void looking_turn(struct looking *l);

/* The store's answer, in the caller's memory. */
dk_status look_list(struct looking *l, struct dk_caller *caller,
                    const struct dk_list_instances *request, struct dk_instances **ret_instances);
dk_status look_messages(struct looking *l, dk_str instance, uint32_t max,
                        struct dk_messages **ret_messages);
dk_status look_history(struct looking *l, const struct dk_read_history *request,
                       struct dk_history **ret_history);

/* What a row says, and of one that was cancelled who has done it, if outputs are wanted. */
dk_status look_at_row(struct looking *l, const struct dk_instance *row,
                      struct dk_instance_info *ret_info);
/* The start that waits for an instance, if there is one; what cannot be read of it is absent.  It
 * lives until the next call.  `instance` has a NUL behind it, here and below. */
dk_status look_at_start(struct looking *l, dk_str instance, struct message *ret_start,
                        bool *ret_is_there);
/* Puts that into the info. */
dk_status look_into_start(struct looking *l, const struct message *start,
                          struct dk_instance_info *info);
/* Copies the info's texts: they do not depend on the callers any more. */
dk_status look_keep(struct looking *l, struct dk_instance_info *info);
/* All that the history tells: of any provider.  DK_NOT_FOUND: no turn was committed. */
dk_status look_by_history(struct looking *l, dk_str instance, struct dk_instance_info *ret_info);

#endif
