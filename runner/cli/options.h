/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, taken apart. */
#ifndef DK_RUNNER_CLI_OPTIONS_H
#define DK_RUNNER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/cli/operate-options.h"

enum command {
  COMMAND_NONE = 0,
  COMMAND_CERTIFY,
  COMMAND_CHECK,
  COMMAND_LIST,
  COMMAND_EXPLAIN,
  COMMAND_PROBE,
  COMMAND_REPRO,
  COMMAND_SELFTEST,
  COMMAND_CLEAN,
  COMMAND_BENCH,
  /* Those that operate a store: runner/operate. */
  COMMAND_START,
  COMMAND_STATUS,
  COMMAND_WAIT,
  COMMAND_HISTORY,
  COMMAND_RAISE,
  COMMAND_ENQUEUE,
  COMMAND_CANCEL,
  COMMAND_INSTANCES,
  COMMAND_DELETE,
  COMMAND_PRUNE,
  COMMAND_STATS,
  COMMANDS
};

/* How many variations of the checks are run: none, two of each check, all. */
enum effort { EFFORT_DEFAULT, EFFORT_QUICK, EFFORT_DEEP };
enum format { FORMAT_AUTO, FORMAT_TAP, FORMAT_HUMAN };
/* Which checks: those of the contract (as far as the provider declares it), of these the ones for
 * durakit.admin/1, those of the runtime on the provider. */
enum profile { PROFILE_CORE = 1, PROFILE_RUNTIME = 2, PROFILE_ALL = 3, PROFILE_ADMIN = 4 };
enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* One setting for the provider.  Owned by the options. */
struct given {
  char *key;
  char *value;
  char *env;   /* --set-env: the variable that it came from */
  char *file;  /* the file that it came from, whose line it is, and what names that file */
  unsigned line;
  const char *whose;
};

/* How a server may be hurt: commands and a way through the kit, as given; NULL: not given. */
struct server_options {
  const char *crash, *start, *pause, *resume, *deny, *allow;
  const char *through, *address;
};

/* What the environment gives if the command line does not; NULL: nothing. */
struct environment {
  const char *provider; /* DURAKIT_PROVIDER */
  const char *settings; /* DURAKIT_SETTINGS, a file */
};

struct options {
  enum command command;
  bool help, version;
  const char *program;       /* argv[0] */
  const char **arguments;    /* the words that are not options */
  size_t n_arguments;
  const struct option_row **given; /* that take a value, and no second one */
  size_t n_given;
  struct given *settings;
  size_t n_settings;
  struct environment environment;
  const char **only;         /* patterns, with commas between several */
  size_t n_only;
  enum profile profile;
  enum effort effort;        /* certify */
  enum format format;
  enum color color;
  unsigned jobs;             /* for runs, as many as processors if it was not given; else 0 */
  unsigned classify, repeat;
  double timeout_scale;
  uint64_t seed;
  char run_id[13];           /* "": not given */
  const char *out;
  const char *zoo, *model;   /* selftest */
  const char *floor;         /* bench */
  unsigned pairs, slice_ms;  /* bench; 0: not given */
  bool memcheck;             /* check: under Valgrind */
  bool no_memcheck;          /* certify: natively only */
  bool both;                 /* repro: natively and under Valgrind */
  const char *suppressions[8];
  size_t n_suppressions;
  bool next, gdb, in_process, json, verbose;
  struct server_options server;
  struct operating operating;
};

/* EXIT_PASSED, or EXIT_USAGE after a message. */
int options_parse(struct options *options, int argc, char **argv);
void options_done(struct options *options);

const char *options_command_name(enum command command);
const char *options_profile_name(enum profile profile);
/* Whether the command, or all commands (COMMAND_NONE), take the option "--name". */
bool options_takes(enum command command, const char *name);
/* Each option of it, with what it takes (for people; "a|b" is one of these), or NULL. */
typedef void option_fn(void *context, const char *name, const char *value);
void options_each(enum command command, option_fn *each, void *context);
/* Adds the help of one command, or of all (COMMAND_NONE). */
struct dk_text;
void options_help_text(enum command command, struct dk_text *help);
/* Of its first line: "PLUGIN [--json]", and "loads it in a child process, ..." without the full
 * stop. */
void options_synopsis(enum command command, struct dk_text *arguments, struct dk_text *says);

#endif
