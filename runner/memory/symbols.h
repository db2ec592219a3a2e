/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a plugin, from the tables of its file.  Nothing is loaded. */
#ifndef DK_RUNNER_MEMORY_SYMBOLS_H
#define DK_RUNNER_MEMORY_SYMBOLS_H

#include <stdbool.h>

/* True: the file defines a function whose name matches this pattern (* and ?). */
bool symbols_any(const char *path, const char *pattern);

#endif
