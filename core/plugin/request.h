/* SPDX-License-Identifier: Apache-2.0 */
/* What the host refuses before it calls, so that no provider has to check it.  Each function
 * returns DK_OK, or writes the failure: which field, what was expected, what was found. */
#ifndef DK_PLUGIN_REQUEST_H
#define DK_PLUGIN_REQUEST_H

#include "core/plugin/call.h"

dk_status dk_check_enqueue_message(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_enqueue_work(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_fetch_turn(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_fetch_work(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_commit(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_ack_work(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_abandon(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_renew(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_release_fetch(struct dk_call *call, const struct dk_request *request);
dk_status dk_check_read_history(struct dk_call *call, const struct dk_request *request);

#endif
