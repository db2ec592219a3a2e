/* SPDX-License-Identifier: Apache-2.0 */
/* What the upcalls that hand up results have in common: each copies at once into the caller's
 * memory, and refuses what the contract does not allow at that point.  Owns nothing. */
#ifndef DK_PLUGIN_SINK_H
#define DK_PLUGIN_SINK_H

#include <string.h>

#include "core/plugin/call.h"
#include "core/plugin/memory.h"

/* ABI-4: in a running call, of an operation that has such results, and not after an error. */
dk_status dk_sink_expect(struct dk_call *call, uint32_t takes, const char *upcall);

/* ABI-9: reads the members that the provider's struct has; the others are zero. */
dk_status dk_sink_read_struct(struct dk_call *call, const char *upcall,
                              const struct dk_shape *shape, const void *given, void *copy,
                              size_t size);
#define READ(call, upcall, shape, given, copy)                                                     \
  dk_sink_read_struct(call, upcall, &dk_shape_##shape, given, (copy), sizeof(*(copy)))

/* Adds a zeroed row after the others; NULL: no memory. */
void *dk_sink_add_row(struct dk_call *call, struct dk_rows *rows, size_t size);
dk_status dk_sink_no_memory(struct dk_call *call);
#define ADD_ROW(call, rows, row)                                                                   \
  do {                                                                                             \
    void *added = dk_sink_add_row((call), (rows), sizeof(row));                                    \
    if (!added)                                                                                    \
      return dk_sink_no_memory(call);                                                              \
    memcpy(added, &(row), sizeof(row));                                                            \
  } while (0)

/* Copies the bytes into the caller's memory; absent stays absent.  `what` begins the text of a
 * finding. */
dk_status dk_sink_keep(struct dk_call *call, const char *what, struct dk_bytes *bytes);
dk_status dk_sink_keep_text(struct dk_call *call, const char *what, const char *clause,
                            struct dk_bytes *text);
dk_status dk_sink_keep_payload(struct dk_call *call, const char *what, struct dk_bytes *payload);
dk_status dk_sink_keep_instance(struct dk_call *call, const char *what, const char *clause,
                                struct dk_bytes *instance);

/* sink-admin.c */
void dk_sink_admin_upcalls(struct dk_host *host);
dk_status dk_sink_expect_message(struct dk_call *call); /* one of read_messages */
dk_status dk_sink_add_execution(struct dk_call *call, const struct dk_execution *given);
dk_status dk_sink_complete_admin(struct dk_call *call);

#endif
