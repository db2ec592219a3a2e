/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at instances, for a client: what the store tells of one becomes an info.
 *
 * Owns callers and arenas, and so can be used by one thread at a time, while others use the client.
 * Texts of infos live until the next page (info_reader_next_page), or the end. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_INFO_H
#define DK_RUNTIME_CLIENT_CLIENT_INFO_H

#include "core/runtime/client/client.h"

struct info_reader {
  struct dk_client *client;
  bool is_patient;                     /* with a store that is busy or away, for about a second */
  bool with_output;
  struct dk_caller *started, *unborn;  /* where the rows of a page are */
  struct dk_caller *detail, *again;    /* what is read of one instance */
  struct dk_arena page, scratch;
};

/* with_output: see dk_client_list.  info_reader_end after a failure, too. */
dk_status info_reader_begin(struct info_reader *l, struct dk_client *client, bool with_output);
void info_reader_end(struct info_reader *l);
/* The page before is over. */
void info_reader_next_page(struct info_reader *l);

/* The store's answer, in the caller's memory. */
dk_status info_list(struct info_reader *l, struct dk_caller *caller,
                    const struct dk_list_instances *request, struct dk_instances **ret_instances);
dk_status info_messages(struct info_reader *l, dk_str instance, uint32_t max,
                        struct dk_messages **ret_messages);
dk_status info_history(struct info_reader *l, const struct dk_read_history *request,
                       struct dk_history **ret_history);

/* What a row says, and of one that was cancelled who has done it, if outputs are wanted. */
dk_status info_from_row(struct info_reader *l, const struct dk_instance *row,
                        struct dk_instance_info *ret_info);
/* The start that waits for an instance, if there is one; what cannot be read of it is absent.  It
 * lives until the next call.  `instance` has a NUL behind it, here and below. */
dk_status info_find_start(struct info_reader *l, dk_str instance, struct message *ret_start,
                          bool *ret_is_there);
/* Puts that into the info. */
dk_status info_from_start(struct info_reader *l, const struct message *start,
                          struct dk_instance_info *info);
/* Copies the info's texts: they do not depend on the callers any more. */
dk_status info_keep(struct info_reader *l, struct dk_instance_info *info);
/* All that the history tells: of any provider.  DK_NOT_FOUND: no turn was committed. */
dk_status info_from_history(struct info_reader *l, dk_str instance,
                            struct dk_instance_info *ret_info);

#endif
