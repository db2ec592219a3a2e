/* SPDX-License-Identifier: Apache-2.0 */
/* Types of settings.  Owns nothing. */
#ifndef DK_PLUGIN_SETTINGS_H
#define DK_PLUGIN_SETTINGS_H

#include <stdbool.h>

#include <durakit/host.h>

/* How people write a value of this type; NULL: there is no such type. */
const char *dk_setting_type_form(const char *type);
/* The value fits this type, which must exist. */
bool dk_setting_fits(const char *type, struct dk_bytes value);

/* As dk_settings_check, for a list of parameters (NULL: none).  `where` appears in the refusal's
 * advice. */
int32_t dk_settings_check_params(const struct dk_param *params, const char *where,
                                 const struct dk_setting *settings, size_t n_settings,
                                 struct dk_refusal *ret_refusal);

#endif
