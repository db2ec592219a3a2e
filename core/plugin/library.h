/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded provider, as the host keeps it. */
#ifndef DK_PLUGIN_LIBRARY_H
#define DK_PLUGIN_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include <durakit/host.h>

#include "core/plugin/serialise.h"

enum { DK_REQUIRED_OPERATIONS = 10 };

/* The size of a struct that ends with this member.  If this was its last member in ABI 2.0, the
 * struct is at least so large, however much it has grown since. */
#define DK_SIZE_TO(type, last)                                                                     \
  (offsetof(struct type, last) + sizeof(((const struct type *)NULL)->last))

struct dk_library {
  struct dk_library *next;        /* in the process's list, under its lock */
  uint32_t references;            /* opens and stores; under the process's lock */
  uint32_t reserved;
  void *handle;                   /* from dlopen; NULL: the library was made from a descriptor */
  dev_t device;
  ino_t inode;
  char *path;
  struct dk_provider provider;    /* copied and completed; ops and limits point to the two below */
  struct dk_ops ops;
  struct dk_limits limits;
  const char *missing[DK_REQUIRED_OPERATIONS + 1];
  struct dk_turnstile turnstile;  /* for DK_ONE_AT_A_TIME */
  struct dk_bells bells;          /* of fetches for which the host waits */
  atomic_bool probed;             /* its extensions were probed once */
};

/* Checks the descriptor and copies it into the library, in the order of host.h.  -1: refused. */
int32_t dk_descriptor_read(const struct dk_provider *found, const char *path, uint32_t flags,
                           struct dk_library *library, struct dk_refusal *refusal);

/* Refuses a library that was loaded as incomplete, for a caller that needs it complete. */
int32_t dk_descriptor_refuse_incomplete(const struct dk_library *library,
                                        struct dk_refusal *refusal);

/* For tests: a library without a file.  Closed by dk_library_close. */
int32_t dk_library_from_descriptor(const struct dk_provider *descriptor, uint32_t flags,
                                   struct dk_library **ret_library, struct dk_refusal *ret_refusal);

/* Checks that the file can be passed to dlopen, and identifies it. */
struct dk_file_identity {
  dev_t device;
  ino_t inode;
};
int32_t dk_file_check(const char *path, struct dk_file_identity *ret_identity,
                      struct dk_refusal *refusal);

/* Adds or removes a reference. */
void dk_library_keep(struct dk_library *library);
void dk_library_drop(struct dk_library *library);

bool dk_library_declares(const struct dk_library *library, const char *extension);
/* DK_ONE_AT_A_TIME, DK_ONE_PER_HANDLE or DK_PARALLEL: a value between two of these is treated as
 * the lower one. */
int32_t dk_library_thread_model(const struct dk_library *library);

#endif
