/* SPDX-License-Identifier: Apache-2.0 */
/* The topics and their members, made from topics.def. */
#include "conformance/checks/topics.h"

#include <string.h>

static const struct dk_topic topics[] = {
#define TOPIC(name_, says_) {.name = name_, .says = says_},
#include "conformance/checks/topics.def"
};

static const struct dk_topic_member members[] = {
#define MEMBER(topic_, check_) {.topic = topic_, .check = check_},
#include "conformance/checks/topics.def"
};

const struct dk_topic *
dk_topics(size_t *ret_n)
{
  *ret_n = sizeof(topics) / sizeof(topics[0]);
  return topics;
}

const struct dk_topic_member *
dk_topic_members(size_t *ret_n)
{
  *ret_n = sizeof(members) / sizeof(members[0]);
  return members;
}

const struct dk_topic *
dk_topic_find(const char *name)
{
  size_t n;
  const struct dk_topic *all = dk_topics(&n);

  for (size_t i = 0; i < n; i++)
    if (strcmp(all[i].name, name) == 0)
      return &all[i];
  return NULL;
}

bool
dk_topic_has(const struct dk_topic *topic, const char *check)
{
  size_t n;
  const struct dk_topic_member *all = dk_topic_members(&n);

  for (size_t i = 0; i < n; i++)
    if (strcmp(all[i].topic, topic->name) == 0 && strcmp(all[i].check, check) == 0)
      return true;
  return false;
}
