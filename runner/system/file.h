/* SPDX-License-Identifier: Apache-2.0 */
/* Files in folders that a plugin can write to, where anything may have any name: a link that leads
 * elsewhere, a FIFO that nobody writes to, a file without end.  Each is reached from its folder,
 * which is open, by one name; no call waits for somebody, or follows a link. */
#ifndef DK_RUNNER_SYSTEM_FILE_H
#define DK_RUNNER_SYSTEM_FILE_H

#include "core/base/text.h"

/* A regular file, to be read; -1 with errno. */
int file_open(int folder, const char *name);
/* Adds its bytes, at most so many; -1 with errno.  EFBIG: it is longer, and these are the first. */
int file_read(int folder, const char *name, size_t most, struct dk_text *ret);
/* A new and empty file in the place of whatever has this name, to be read and written at its end;
 * -1 with errno.  `mode`: as for open. */
int file_make(int folder, const char *name, unsigned mode);
/* A new folder, open, of a name that nothing has; -1 with errno. */
int file_make_folder(int folder, const char *name, unsigned mode);
/* The folder of this name, open; made if it is not there, in the place of what is no folder. */
int file_enter_folder(int folder, const char *name, unsigned mode);
/* The words for errno, as these functions leave it. */
const char *file_words(int reason);

#endif
