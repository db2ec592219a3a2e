/* SPDX-License-Identifier: Apache-2.0 */
/* Files in folders that a plugin can write to, where a name may be anything: a link that leads
 * elsewhere, a FIFO without a writer, a file without end.  Each is reached from its open folder by
 * one name; no call blocks or follows a link. */
#ifndef DK_RUNNER_SYSTEM_FILE_H
#define DK_RUNNER_SYSTEM_FILE_H

#include "core/base/text.h"

/* Opens a regular file for reading; -1 with errno. */
int file_open(int folder, const char *name);
/* Adds its bytes, at most so many; -1 with errno.  EFBIG: it is longer, and the first bytes were
 * added. */
int file_read(int folder, const char *name, size_t most, struct dk_text *ret);
/* Makes a new and empty file, for reading and appending, and replaces anything with this name; -1
 * with errno.  `mode`: as for open. */
int file_make(int folder, const char *name, unsigned mode);
/* Makes and opens a folder with a name that is free; -1 with errno. */
int file_make_folder(int folder, const char *name, unsigned mode);
/* Opens the folder with this name; makes it if it does not exist, and replaces anything that is not
 * a folder. */
int file_enter_folder(int folder, const char *name, unsigned mode);
/* The words for errno as these functions set it. */
const char *file_words(int reason);

#endif
