/* SPDX-License-Identifier: Apache-2.0 */
/* Reads instances for a client: turns the store's answers into infos.
 *
 * Owns callers and arenas, and so can be used by one thread at a time, while others use the client.
 * Texts of infos are valid until the next page (info_reader_next_page), or the end. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_INFO_H
#define DK_RUNTIME_CLIENT_CLIENT_INFO_H

#include "core/runtime/client/client.h"

struct info_reader {
  struct dk_client *client;
  bool is_patient;                     /* repeats for about a second if the store is busy or
                                          unreachable */
  bool with_output;
  struct dk_caller *started, *unborn;  /* have the rows of a page */
  struct dk_caller *detail, *again;    /* have the data of one instance */
  struct dk_arena page, scratch;
};

/* with_output: see dk_client_list.  Call info_reader_end even after a failure. */
dk_status info_reader_begin(struct info_reader *l, struct dk_client *client, bool with_output);
void info_reader_end(struct info_reader *l);
/* Ends the current page. */
void info_reader_next_page(struct info_reader *l);

/* Returns the store's answer, in the caller's memory. */
dk_status info_list(struct info_reader *l, struct dk_caller *caller,
                    const struct dk_list_instances *request, struct dk_instances **ret_instances);
dk_status info_messages(struct info_reader *l, dk_str instance, uint32_t max,
                        struct dk_messages **ret_messages);
dk_status info_history(struct info_reader *l, const struct dk_read_history *request,
                       struct dk_history **ret_history);

/* Fills in the info from a row, and, if outputs are wanted, the requester of a cancellation. */
dk_status info_from_row(struct info_reader *l, const struct dk_instance *row,
                        struct dk_instance_info *ret_info);
/* The start that waits for an instance, if there is one; its unreadable parts are absent.  It is
 * valid until the next call.  `instance` is followed by a NUL, here and below. */
dk_status info_find_start(struct info_reader *l, dk_str instance, struct message *ret_start,
                          bool *ret_is_there);
/* Fills in the info from that. */
dk_status info_from_start(struct info_reader *l, const struct message *start,
                          struct dk_instance_info *info);
/* Copies the info's texts, so that they no longer depend on the callers. */
dk_status info_keep(struct info_reader *l, struct dk_instance_info *info);
/* Fills in everything that the history has, with any provider.  DK_NOT_FOUND: no turn was
 * committed. */
dk_status info_from_history(struct info_reader *l, dk_str instance,
                            struct dk_instance_info *ret_info);

#endif
