/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the statuses, for the host itself.  Owns nothing. */
#ifndef DK_PLUGIN_STATUS_H
#define DK_PLUGIN_STATUS_H

#include <durakit/host.h>

/* NULL: this host does not know it. */
const char *dk_status_known_name(dk_status status);

/* A name to use in a text, in its own buffer, which is valid until the end of the enclosing
 * block. */
enum { DK_STATUS_NAME_SIZE = 24 };
#define DK_STATUS_NAME(status)                                                                     \
  dk_status_name((status), (char[DK_STATUS_NAME_SIZE]){0}, DK_STATUS_NAME_SIZE)

#endif
