/* SPDX-License-Identifier: Apache-2.0 */
/* The variations: in which other ways a check can be run.
 *
 *   X(name, id, says, needs, processes, (members of struct variation), ...)
 *
 * A varied check has the id of its check, "~", and the id of the variation.  It needs what its
 * check needs, and `needs`; and so many other processes more.  A variation applies to each check
 * that runs alone and whose subject it would not change: `.not_for` names those that have one of
 * these flags in areas.def, `.not_with` those that have one of these needs.  A new variation is an
 * entry here.
 *
 * First those that vary one thing: `--effort deep` runs all.  Behind them those that vary several
 * things at once: `certify` runs each check in one or two of them. */
#ifndef DK_CONFORMANCE_VARIATIONS_H
#define DK_CONFORMANCE_VARIATIONS_H

#include "conformance/kit/check.h"

/* Around each power of two: at these providers change from one way of storing to another. */
#define AROUND(k) (1u << (k)) - 1, 1u << (k), (1u << (k)) + 1
#define MIXED_SIZES                                                                                \
  .sizes = {0, AROUND(6), AROUND(7), AROUND(8), AROUND(9), AROUND(10), AROUND(11), 3000, 3072,     \
            AROUND(12), AROUND(13), AROUND(14), AROUND(15), AROUND(16)},                           \
  .n_sizes = 36
#define WILDCARDS "%_*?[a]'\"\\ \xc3\xa9."
#define NEARLY_TWICE " e\xcc\x81" "A"
#define ABOVE_DOUBLES ((UINT64_C(1) << 53) + 1)
#define NEARLY_THE_LAST ((uint64_t)INT64_MAX - (1u << 20))

#define VARIATIONS(X, ...)                                                                         \
  X(payload_1025, "payload-1025", "each payload has 1,025 bytes", 0, 0,                            \
    (.not_for = OF_SIZES, .sizes = {1025}, .n_sizes = 1), __VA_ARGS__)                             \
  X(payload_32769, "payload-32769", "each payload has 32,769 bytes", 0, 0,                         \
    (.not_for = OF_SIZES, .sizes = {32769}, .n_sizes = 1), __VA_ARGS__)                            \
  X(payload_1k, "payload-1k", "each payload has 1,023, 1,024 or 1,025 bytes", 0, 0,                \
    (.not_for = OF_SIZES, .sizes = {AROUND(10)}, .n_sizes = 3), __VA_ARGS__)                       \
  X(payload_4k, "payload-4k", "each payload has 4,095, 4,096 or 4,097 bytes", 0, 0,                \
    (.not_for = OF_SIZES, .sizes = {AROUND(12)}, .n_sizes = 3), __VA_ARGS__)                       \
  X(payload_64k, "payload-64k", "each payload has 65,535, 65,536 or 65,537 bytes", 0, 0,           \
    (.not_for = OF_SIZES, .sizes = {AROUND(16)}, .n_sizes = 3), __VA_ARGS__)                       \
  X(payload_1m, "payload-1m", "one in four payloads has 1 MiB", 0, 0,                              \
    (.not_for = OF_SIZES, .sizes = {0, 0, 0, 1u << 20}, .n_sizes = 4), __VA_ARGS__)                \
  X(payload_mixed, "payload-mixed", "payloads have sizes around powers of two", 0, 0,              \
    (.not_for = OF_SIZES, MIXED_SIZES), __VA_ARGS__)                                               \
  X(odd_ids, "odd-ids", "each id and tag begins with wildcards, quotes and an accent", 0, 0,       \
    (.not_for = OF_IDS, .before_ids = WILDCARDS), __VA_ARGS__)                                     \
  X(neighbours, "neighbours", "instances with similar ids exist, and some are deleted", 0, 0,      \
    (.not_for = OF_IDS | OF_HANDLES | OF_NEIGHBOURS, .not_with = NEEDS_ADMIN | NEEDS_STORE_CLOCK,  \
     .after_ids = NEARLY_TWICE, .has_neighbours = true), __VA_ARGS__)                              \
  X(large_numbers, "large-numbers", "the ids of events and activities are above 2^53", 0, 0,       \
    (.not_for = OF_NUMBERS, .above_numbers = ABOVE_DOUBLES), __VA_ARGS__)                          \
  X(largest_numbers, "largest-numbers", "the ids of events and activities are near 2^63", 0, 0,    \
    (.not_for = OF_NUMBERS, .above_numbers = NEARLY_THE_LAST), __VA_ARGS__)                        \
  X(limits_64, "limits-64", "a limit that is not given is 2^64 - 1, or 2^32 - 1", 0, 0,            \
    (.no_limit = UINT64_MAX), __VA_ARGS__)                                                         \
  X(limits_63, "limits-63", "a limit that is not given is 2^63 - 1, or 2^31 - 1", 0, 0,            \
    (.no_limit = INT64_MAX), __VA_ARGS__)                                                          \
  X(unsorted_100, "unsorted-100", "lists are in no order, and have 100 absent entries", 0, 0,      \
    (.absent = 100), __VA_ARGS__)                                                                  \
  X(unsorted_10000, "unsorted-10000", "lists are in no order, and have 10,000 absent entries",     \
    0, 0, (.absent = 10000), __VA_ARGS__)                                                          \
  X(two_handles, "two-handles", "two handles make the calls in turn", NEEDS_HANDLES, 0,            \
    (.not_for = OF_HANDLES, .alternates = true), __VA_ARGS__)                                      \
  X(two_processes, "two-processes", "two processes make the calls in turn", NEEDS_PROCESSES, 1,    \
    (.not_for = OF_HANDLES, .leaves = true), __VA_ARGS__)                                          \
  X(reopened, "reopened", "the handle is closed and opened before each call",                      \
    NEEDS_STORE | NEEDS_DURABLE, 0, (.not_for = OF_HANDLES, .reopens = true), __VA_ARGS__)         \
  X(given_back, "given-back", "what is fetched has been fetched and given back before", 0, 0,      \
    (.not_for = OF_DELIVERIES, .first = FIRST_GIVEN_BACK), __VA_ARGS__)                            \
  X(given_back_later, "given-back-later",                                                          \
    "what is fetched has been fetched and given back with a delay before", 0, 0,                   \
    (.not_for = OF_DELIVERIES | OF_COUNTS, .not_with = NEEDS_HOST_CLOCK, .first = FIRST_PUT_OFF),  \
    __VA_ARGS__)                                                                                   \
  X(expired, "expired", "what is fetched has been fetched before, and the lease has ended", 0, 0,  \
    (.not_for = OF_DELIVERIES | OF_COUNTS, .not_with = NEEDS_HOST_CLOCK, .first = FIRST_EXPIRED),  \
    __VA_ARGS__)                                                                                   \
  X(taken_over, "taken-over", "what is fetched is taken over from another owner, who comes late",  \
    0, 0,                                                                                          \
    (.not_for = OF_DELIVERIES | OF_COUNTS, .not_with = NEEDS_HOST_CLOCK,                           \
     .first = FIRST_TAKEN_OVER),                                                                   \
    __VA_ARGS__)                                                                                   \
                                                                                                   \
  X(usual_1, "given-back+mixed+limits", "payloads have sizes around powers of two, no limit is "   \
    "2^64 - 1, and what is fetched has been fetched and given back before", 0, 0,                  \
    (.is_usual = true, .not_for = OF_SIZES | OF_DELIVERIES, MIXED_SIZES, .no_limit = UINT64_MAX,   \
     .first = FIRST_GIVEN_BACK), __VA_ARGS__)                                                      \
  X(usual_2, "neighbours+mixed", "payloads have sizes around powers of two; instances with "       \
    "similar ids exist, and some are deleted", 0, 0,                                               \
    (.is_usual = true, .not_for = OF_SIZES | OF_IDS | OF_HANDLES | OF_NEIGHBOURS,                  \
     .not_with = NEEDS_ADMIN | NEEDS_STORE_CLOCK, MIXED_SIZES, .after_ids = NEARLY_TWICE,          \
     .has_neighbours = true), __VA_ARGS__)                                                         \
  X(usual_3, "taken-over+odd+unsorted", "ids begin with wildcards, lists are in no order and have "\
    "10,000 absent entries, and what is fetched is taken over from another owner, who comes late", \
    0, 0, (.is_usual = true, .not_for = OF_IDS | OF_DELIVERIES | OF_COUNTS,                        \
           .not_with = NEEDS_HOST_CLOCK, .before_ids = WILDCARDS, .absent = 10000,                 \
           .first = FIRST_TAKEN_OVER), __VA_ARGS__)                                                \
  X(usual_4, "two-processes+largest", "two processes make the calls in turn; the ids of events "   \
    "and activities are near 2^63", NEEDS_PROCESSES, 1,                                            \
    (.is_usual = true, .not_for = OF_HANDLES | OF_NUMBERS, .leaves = true,                         \
     .above_numbers = NEARLY_THE_LAST), __VA_ARGS__)                                               \
  X(usual_5, "reopened+mixed", "payloads have sizes around powers of two, and the handle is "      \
    "closed and opened before each call", NEEDS_STORE | NEEDS_DURABLE, 0,                          \
    (.is_usual = true, .not_for = OF_SIZES | OF_HANDLES, MIXED_SIZES, .reopens = true),            \
    __VA_ARGS__)                                                                                   \
  X(usual_6, "two-handles+expired+large", "two handles make the calls in turn, ids of events and " \
    "activities are above 2^53, and what is fetched has been fetched before, and the lease has "   \
    "ended", NEEDS_HANDLES, 0,                                                                     \
    (.is_usual = true, .not_for = OF_HANDLES | OF_NUMBERS | OF_DELIVERIES | OF_COUNTS,             \
     .not_with = NEEDS_HOST_CLOCK, .alternates = true, .above_numbers = ABOVE_DOUBLES,             \
     .no_limit = INT64_MAX, .first = FIRST_EXPIRED), __VA_ARGS__)

#endif
