/* SPDX-License-Identifier: Apache-2.0 */
/* The service "durakit.model-choice/1" of a host: what the model hands out where the contract
 * leaves a choice.
 *
 * Which of several instances a fetch gets, and which of several work items, is the provider's own
 * choice.  A host that runs the model beside another provider tells the model what the other one
 * has chosen.  The model hands that out if it could have chosen so itself, and else nothing.  Or it
 * hands out anything but that.  Or nothing: it only tells when such a fetch would get something. */
#ifndef DK_MODEL_CHOICE_H
#define DK_MODEL_CHOICE_H

#include <durakit/host.h>

#define DK_MODEL_CHOICE "durakit.model-choice/1"

enum { DK_CHOICE_FREE, DK_CHOICE_ONLY, DK_CHOICE_NOT, DK_CHOICE_NONE };
struct dk_model_choice {
  uint32_t struct_size;
  int32_t what;                      /* DK_CHOICE_...; FREE: the model chooses by itself */
  struct dk_bytes instance;          /* of the turn */
  const struct dk_work_item *items;  /* by their identities */
  size_t n_items;
  int64_t *ret_due;                  /* of NONE: when, but for `instance` and `items`; `now` or
                                        before: at once; INT64_MAX: never */
};

/* The model's entry point, in a program that the model is linked into. */
DK_EXPORT dk_entry_fn dk_model_entry;

#endif
