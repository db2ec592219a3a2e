/* SPDX-License-Identifier: Apache-2.0 */
/* libtap: writes the Test Anything Protocol, so that prove, automake's driver and a YAML parser all
 * read it alike.
 *
 * Two layers.  The producer (struct tap) writes one stream to any FILE.  The calls of a test
 * program (plan, ok, is, ...) write to standard output through a producer of their own, and report
 * failures on standard error; TAP_NO_MACROS before the #include leaves out their short names.
 * Neither has a lock: only one thread at a time may use them.
 *
 *     #include "conformance/tap/tap.h"
 *
 *     int
 *     main(void)
 *     {
 *       plan(2);
 *       ok(1 + 1 == 2, "one and one is two");
 *       is(name_of(7), "seven", "the name of %d", 7);
 *       return exit_status();
 *     }
 */
#ifndef CONFORMANCE_TAP_H
#define CONFORMANCE_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- The producer ------------------------------------------------------------------------------
 *
 * Every call writes a whole line and flushes it, so a crash loses nothing and a forked child
 * inherits nothing.  Text from any source may be given: parts that would break the line, forge a
 * directive or not decode are escaped.  Misuse (a point after the last plan, a block in a wrong
 * place) is never hidden: a comment at the end reports it, and tap_done returns -1. */

struct tap;

enum tap_directive {
  TAP_NONE,
  TAP_SKIP,
  TAP_TODO /* a point that is not ok and has this directive does not count as failed */
};

/* 14 if TAP_VERSION asks for 14 or more, else 13: an older prove refuses a stream that says 14. */
int tap_version_from_environment(void);

/* Begins a stream with its version line, 13 or 14.  `out` must outlive it and is not closed.
 * NULL: out of memory. */
struct tap *tap_new(FILE *out, int version);

/* How many points there will be (before the first) or were (after the last); at most once. */
void tap_plan(struct tap *tap, unsigned points);

/* Instead of a plan and points: why there are none. */
void tap_plan_skip_all(struct tap *tap, const char *why);

/* The next point.  The producer numbers them.  `name` and `reason` may be NULL. */
void tap_point(struct tap *tap, bool passed, const char *name, enum tap_directive directive,
               const char *reason);

/* One comment for each line of the text. */
void tap_comment(struct tap *tap, const char *text);

/* The same to any other file, such as standard error. */
void tap_comment_to(FILE *out, const char *text);

/* Ends the stream: nothing after it is written.  `why` may be NULL. */
void tap_bail_out(struct tap *tap, const char *why);

/* A block of diagnostics, directly after its point: keys ([a-z_]+) with strings, numbers, and lists
 * of strings.  A string may be NULL.  A block without a key is not written, an empty list is []. */
void tap_yaml_begin(struct tap *tap);
void tap_yaml_string(struct tap *tap, const char *key, const char *value);
void tap_yaml_bytes(struct tap *tap, const char *key, const void *value, size_t size);
void tap_yaml_number(struct tap *tap, const char *key, int64_t value);
void tap_yaml_list_begin(struct tap *tap, const char *key);
void tap_yaml_item(struct tap *tap, const char *value);
void tap_yaml_list_end(struct tap *tap);
void tap_yaml_end(struct tap *tap);

/* Writes the plan if none was written, ends the stream and frees it.  Returns how many points
 * failed; -1 if their number is not the planned one, if there was none at all, after a bail-out,
 * after misuse, if something could not be written, and for NULL. */
int tap_done(struct tap *tap);

/* ---- The calls of a test program ---------------------------------------------------------------
 *
 *   plan(n)  plan(NO_PLAN)  plan(SKIP_ALL, why)     first; SKIP_ALL ends the program with 0
 *   ok(expression, name...)                         every name is a printf format
 *   is(got, expected, name...)  isnt(...)           strings; NULL equals NULL only
 *   cmp_ok(a, "<", b, name...)                      integers of any type: == != < <= > >=
 *   cmp_mem(got, expected, size, name...)           bytes
 *   pass(name...)  fail(name...)
 *   diag(text...)  note(text...)                    comments on standard error, standard output
 *   skip(n, why...)                                 n points that are not run
 *   todo(why...)  ...  end_todo;                    what fails in between is expected to fail
 *   BAIL_OUT(why...)                                ends the program with 255
 *   return exit_status();                           0: all passed; else how many failed, at most
 *                                                   254; 255: not as planned, or misuse
 *   return done_testing();                          the same, for a program without a plan
 *
 * ok, is, isnt, cmp_ok and cmp_mem return whether the point passed. */

enum { NO_PLAN = -1, SKIP_ALL = -2 };

#define TAP_FORMAT(text, first) __attribute__((format(printf, text, first)))

/* An integer of any type; a large unsigned one differs from a negative one with the same bits. */
struct tap_integer {
  intmax_t value;
  int is_unsigned; /* `value` holds the bits of a uintmax_t */
};

void tap_program_plan(int points, const char *why, ...);
bool tap_program_ok(const char *file, int line, const char *expression, bool holds,
                    const char *name, ...) TAP_FORMAT(5, 6);
bool tap_program_is(const char *file, int line, bool alike, const char *got, const char *expected,
                    const char *name, ...) TAP_FORMAT(6, 7);
bool tap_program_cmp(const char *file, int line, const char *expression, struct tap_integer a,
                     const char *relation, struct tap_integer b, const char *name, ...)
  TAP_FORMAT(7, 8);
bool tap_program_cmp_mem(const char *file, int line, const void *got, const void *expected,
                         size_t size, const char *name, ...) TAP_FORMAT(6, 7);
void tap_program_diag(const char *format, ...) TAP_FORMAT(1, 2);
void tap_program_note(const char *format, ...) TAP_FORMAT(1, 2);
void tap_program_skip(unsigned points, const char *why, ...) TAP_FORMAT(2, 3);
void tap_program_todo(const char *why, ...) TAP_FORMAT(1, 2);
void tap_program_end_todo(void);
__attribute__((noreturn)) void tap_program_bail_out(const char *why, ...) TAP_FORMAT(1, 2);

/* The result is the test program's own: ignoring it would make a failure look like a success. */
__attribute__((warn_unused_result)) int tap_program_exit_status(void);
__attribute__((warn_unused_result)) int tap_program_done_testing(void);

#ifndef TAP_NO_MACROS

#define plan(...) tap_program_plan(__VA_ARGS__, (const char *)NULL)
#define ok(expression, ...)                                                                        \
  tap_program_ok(__FILE__, __LINE__, #expression, (expression) ? true : false, __VA_ARGS__)
#define is(got, expected, ...)                                                                     \
  tap_program_is(__FILE__, __LINE__, true, got, expected, __VA_ARGS__)
#define isnt(got, unexpected, ...)                                                                 \
  tap_program_is(__FILE__, __LINE__, false, got, unexpected, __VA_ARGS__)
#define cmp_ok(a, relation, b, ...)                                                                \
  tap_program_cmp(__FILE__, __LINE__, #a " " relation " " #b, TAP_INTEGER(a), relation,            \
                  TAP_INTEGER(b), __VA_ARGS__)
#define cmp_mem(got, expected, size, ...)                                                          \
  tap_program_cmp_mem(__FILE__, __LINE__, got, expected, size, __VA_ARGS__)
#define pass(...) tap_program_ok(__FILE__, __LINE__, "pass", true, __VA_ARGS__)
#define fail(...) tap_program_ok(__FILE__, __LINE__, "fail() is not reached", false, __VA_ARGS__)
#define diag(...) tap_program_diag(__VA_ARGS__)
#define note(...) tap_program_note(__VA_ARGS__)
#define skip(points, ...) tap_program_skip(points, __VA_ARGS__)
#define todo(...) tap_program_todo(__VA_ARGS__)
#define end_todo tap_program_end_todo()
#define BAIL_OUT(...) tap_program_bail_out(__VA_ARGS__)
#define bail_out(...) tap_program_bail_out(__VA_ARGS__)
#define exit_status() tap_program_exit_status()
#define done_testing() tap_program_done_testing()

/* Only integers: a double would lose its fraction, so the compiler warns of it. */
#define TAP_INTEGER(n)                                                                             \
  ((struct tap_integer){(intmax_t)(n), _Generic((n),                                               \
    unsigned long: 1, unsigned long long: 1,                                                       \
    float: (struct tap_integer *)NULL, double: (struct tap_integer *)NULL,                         \
    long double: (struct tap_integer *)NULL, default: 0)})

#endif
#endif
