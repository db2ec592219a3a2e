/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that open was given, read and checked.  A struct settings owns the path's memory. */
#ifndef DK_SQLITE_SETTINGS_H
#define DK_SQLITE_SETTINGS_H

#include "providers/sqlite/why.h"

/* The values of PRAGMA synchronous. */
enum synchronous { SYNCHRONOUS_NORMAL = 1, SYNCHRONOUS_FULL = 2 };

struct settings {
  char *path;          /* absolute, without symbolic links: one store has one lock file */
  enum synchronous synchronous;
  int64_t busy_ms;     /* how long a call waits for another process before it is DK_BUSY */
};

/* For the descriptor; ends with a NULL key. */
extern const struct dk_param sqlite_params[];

dk_status settings_read(const struct dk_open *open, struct settings *ret_settings,
                        struct why *why);
void settings_done(struct settings *settings);

#endif
