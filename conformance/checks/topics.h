/* SPDX-License-Identifier: Apache-2.0 */
/* The topics, as topics.def has them: what `--only no-state` selects. */
#ifndef DK_CONFORMANCE_TOPICS_H
#define DK_CONFORMANCE_TOPICS_H

#include <stdbool.h>
#include <stddef.h>

struct dk_topic {
  const char *name, *says;
};
struct dk_topic_member {
  const char *topic, *check;
};

const struct dk_topic *dk_topics(size_t *ret_n);
const struct dk_topic_member *dk_topic_members(size_t *ret_n);
const struct dk_topic *dk_topic_find(const char *name); /* NULL: there is no such topic */
bool dk_topic_has(const struct dk_topic *topic, const char *check);

#endif
