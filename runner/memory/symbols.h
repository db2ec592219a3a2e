/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a plugin, by the tables of its file.  Nothing is loaded. */
#ifndef DK_RUNNER_MEMORY_SYMBOLS_H
#define DK_RUNNER_MEMORY_SYMBOLS_H

#include <stdbool.h>

/* A function that the file defines has a name that fits this pattern (* and ?). */
bool symbols_any(const char *path, const char *pattern);

#endif
