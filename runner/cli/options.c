/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line.  An unknown name is refused, with the nearest known one. */
#include "runner/cli/options.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "runner/cli/message.h"
#include "runner/cli/option-row.h"
#include "runner/cli/settings.h"
#include "runner/cli/suggest.h"
#include "runner/cli/usage.h"

static const char *const names[COMMANDS] = {
  [COMMAND_CERTIFY] = "certify",   [COMMAND_CHECK] = "check", [COMMAND_LIST] = "list",
  [COMMAND_EXPLAIN] = "explain",   [COMMAND_PROBE] = "probe", [COMMAND_REPRO] = "repro",
  [COMMAND_SELFTEST] = "selftest", [COMMAND_CLEAN] = "clean", [COMMAND_BENCH] = "bench",
  [COMMAND_START] = "start",       [COMMAND_STATUS] = "status", [COMMAND_WAIT] = "wait",
  [COMMAND_HISTORY] = "history",   [COMMAND_RAISE] = "raise",
  [COMMAND_ENQUEUE] = "enqueue",   [COMMAND_CANCEL] = "cancel",
  [COMMAND_INSTANCES] = "instances", [COMMAND_DELETE] = "delete", [COMMAND_PRUNE] = "prune",
  [COMMAND_STATS] = "stats",
};

/* Which commands take an option; the commands that operate may give it another meaning. */
#define ALL (~(unsigned)REPEATS)
#define NOT_OPERATING (ALL & ~OPERATES)
#define RUNS (OF(CERTIFY) | OF(CHECK) | OF(REPRO))
#define WITH_SETTINGS (RUNS | OF(PROBE) | OF(CLEAN) | OF(BENCH) | OPERATES)

enum { MOST_PROCESSORS = 4 };

const char *
options_command_name(enum command command)
{
  return command < COMMANDS && names[command] ? names[command] : "";
}

static int
take_count(const struct options *o, const char *option, const char *value, unsigned long least,
           unsigned *ret)
{
  char *end;

  errno = 0;
  unsigned long n = strtoul(value, &end, 10);
  if (errno || *end || end == value || *value == '-' || n < least || n > 1000000)
    return usage_bad_value(o, option, value, least ? "a number, at least 1"
                                                   : "a number, at least 0");
  *ret = (unsigned)n;
  return EXIT_PASSED;
}

static int
take_jobs(struct options *o, const char *option, const char *value)
{
  int code = take_count(o, option, value, 1, &o->jobs);

  if (code == EXIT_PASSED && o->jobs > 64)
    return usage_bad_value(o, option, value, "at most 64 checks at a time");
  return code;
}

static int
take_pairs(struct options *o, const char *option, const char *value)
{
  int code = take_count(o, option, value, 1, &o->pairs);

  if (code == EXIT_PASSED && o->pairs > 99)
    return usage_bad_value(o, option, value, "at most 99 pairs");
  return code;
}

#define COUNT_OPTION(name, least, member)                                                          \
  static int take_##name(struct options *o, const char *option, const char *value)                 \
  {                                                                                                \
    return take_count(o, option, value, least, &o->member);                                        \
  }
COUNT_OPTION(classify, 0, classify)
COUNT_OPTION(repeat, 1, repeat)
COUNT_OPTION(slice, 1, slice_ms)

static int
take_timeout_scale(struct options *o, const char *option, const char *value)
{
  char *end;
  double scale = strtod(value, &end);

  if (*end || end == value || !(scale >= 0.001 && scale <= 10000))
    return usage_bad_value(o, option, value, "a factor from 0.001 to 10000");
  o->timeout_scale = scale;
  return EXIT_PASSED;
}

static int
take_seed(struct options *o, const char *option, const char *value)
{
  char *end;

  errno = 0;
  o->seed = strtoull(value, &end, 0);
  if (errno || *end || end == value || *value == '-')
    return usage_bad_value(o, option, value, "a number of 64 bits, 0x... in hexadecimal");
  return EXIT_PASSED;
}

static int
take_run_id(struct options *o, const char *option, const char *value)
{
  size_t n = strlen(value);

  if (n == 0 || n >= sizeof(o->run_id)
      || value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789")])
    return usage_bad_value(o, option, value, "1 to 12 of a-z and 0-9");
  memcpy(o->run_id, value, n + 1);
  return EXIT_PASSED;
}

/* One of a few words. */
struct word {
  const char *name;
  int value;
};
static int
take_word(struct options *o, const char *option, const char *value, const struct word *words,
          const char *expected, int *ret_value)
{
  for (; words->name; words++) {
    if (strcmp(words->name, value) == 0) {
      *ret_value = words->value;
      return EXIT_PASSED;
    }
  }
  return usage_bad_value(o, option, value, expected);
}
#define WORD_OPTION(member, expected, ...)                                                         \
  static int take_##member(struct options *o, const char *option, const char *value)               \
  {                                                                                                \
    static const struct word words[] = {__VA_ARGS__, {NULL, 0}};                                   \
    int chosen = 0, code = take_word(o, option, value, words, expected, &chosen);                  \
    if (code == EXIT_PASSED)                                                                       \
      o->member = chosen;                                                                          \
    return code;                                                                                   \
  }
WORD_OPTION(format, "tap or human", {"tap", FORMAT_TAP}, {"human", FORMAT_HUMAN})
WORD_OPTION(color, "auto, always or never", {"auto", COLOR_AUTO}, {"always", COLOR_ALWAYS},
            {"never", COLOR_NEVER})
WORD_OPTION(effort, "quick, default or deep", {"quick", EFFORT_QUICK}, {"default", EFFORT_DEFAULT},
            {"deep", EFFORT_DEEP})

static const struct {
  const char *name;
  enum profile profile;
} profiles[] = {{"core", PROFILE_CORE},
                {"admin", PROFILE_ADMIN},
                {"runtime", PROFILE_RUNTIME},
                {"all", PROFILE_ALL}};
enum { N_PROFILES = sizeof(profiles) / sizeof(profiles[0]) };

const char *
options_profile_name(enum profile profile)
{
  for (size_t i = 0; i < N_PROFILES; i++) {
    if (profiles[i].profile == profile)
      return profiles[i].name;
  }
  return "";
}

static int
take_profile(struct options *o, const char *option, const char *value)
{
  for (size_t i = 0; i < N_PROFILES; i++) {
    if (strcmp(profiles[i].name, value) == 0) {
      o->profile = profiles[i].profile;
      return EXIT_PASSED;
    }
  }
  return usage_bad_value(o, option, value, "core, admin, runtime or all");
}

/* One pattern, or several in one value, separated by commas. */
static int
take_only(struct options *o, const char *option, const char *value)
{
  (void)option;
  const char **grown = reallocarray(o->only, o->n_only + 1, sizeof(*grown));
  if (!grown) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  o->only = grown;
  o->only[o->n_only++] = value;
  o->memcheck = o->memcheck || strstr(value, "@memcheck"); /* the id of a result */
  return EXIT_PASSED;
}

static int
take_set(struct options *o, const char *option, const char *value)
{
  return settings_take_pair(o, option, value);
}

static int
take_set_env(struct options *o, const char *option, const char *value)
{
  return settings_take_env(o, option, value);
}

static int
take_settings_file(struct options *o, const char *option, const char *value)
{
  (void)option;
  return settings_take_file(o, value, "--settings");
}

#define TEXT_OPTION(member)                                                                        \
  static int take_##member(struct options *o, const char *option, const char *value)               \
  {                                                                                                \
    (void)option;                                                                                  \
    o->member = value;                                                                             \
    return EXIT_PASSED;                                                                            \
  }
/* A command for the server, or the way to it. */
#define HURT_OPTION(member)                                                                        \
  static int take_##member(struct options *o, const char *option, const char *value)               \
  {                                                                                                \
    if (!*value)                                                                                   \
      return usage_bad_value(o, option, value, "a command");                                       \
    o->server.member = value;                                                                      \
    return EXIT_PASSED;                                                                            \
  }
#define SWITCH(member)                                                                             \
  static int take_##member(struct options *o, const char *option, const char *value)               \
  {                                                                                                \
    (void)option;                                                                                  \
    (void)value;                                                                                   \
    o->member = true;                                                                              \
    return EXIT_PASSED;                                                                            \
  }
TEXT_OPTION(out)
TEXT_OPTION(zoo)
TEXT_OPTION(model)
TEXT_OPTION(floor)
HURT_OPTION(crash)
HURT_OPTION(start)
HURT_OPTION(pause)
HURT_OPTION(resume)
HURT_OPTION(deny)
HURT_OPTION(allow)
SWITCH(help)
SWITCH(version)
SWITCH(next)
SWITCH(gdb)
SWITCH(in_process)
SWITCH(json)
SWITCH(verbose)
SWITCH(memcheck)
SWITCH(no_memcheck)

static int
take_through(struct options *o, const char *option, const char *value)
{
  const char *equals = strchr(value, '=');

  if (!equals || equals == value || (!strstr(value, "{folder}") && !strstr(value, "{port}")))
    return usage_bad_value(o, option, value,
                           "KEY=VALUE with {folder}, or {host} and {port}, in the value");
  o->server.through = value;
  return EXIT_PASSED;
}

static int
take_address(struct options *o, const char *option, const char *value)
{
  const char *colon = strrchr(value, ':');

  if (value[0] != '/' && (!colon || colon == value || !colon[1]))
    return usage_bad_value(o, option, value, "the absolute path of a socket, or HOST:PORT");
  o->server.address = value;
  return EXIT_PASSED;
}

static int
take_suppressions(struct options *o, const char *option, const char *value)
{
  if (o->n_suppressions == sizeof(o->suppressions) / sizeof(o->suppressions[0]))
    return usage_bad_value(o, option, value, "at most 8 files");
  o->suppressions[o->n_suppressions++] = value;
  return EXIT_PASSED;
}

static const struct option_row rows[] = {
  {"--help", NULL, ALL, take_help},
  {"--version", NULL, NOT_OPERATING, take_version}, /* elsewhere: that of an orchestration */
  {"--set", "KEY=VALUE", WITH_SETTINGS | REPEATS, take_set},
  {"--set-env", "KEY=VARIABLE", WITH_SETTINGS | REPEATS, take_set_env},
  {"--settings", "FILE", WITH_SETTINGS | REPEATS, take_settings_file},
  {"--only", "GLOB|CLAUSE|TOPIC", OF(CHECK) | REPEATS, take_only},
  {"--only", "WORKLOADS", OF(BENCH) | REPEATS, take_only},
  {"--profile", "core|admin|runtime|all", OF(CERTIFY) | OF(CHECK) | OF(LIST), take_profile},
  {"--effort", "quick|default|deep", OF(CERTIFY), take_effort},
  {"--memcheck", NULL, OF(CHECK), take_memcheck},
  {"--no-memcheck", NULL, OF(CERTIFY), take_no_memcheck},
  {"--suppressions", "FILE", RUNS | REPEATS, take_suppressions},
  {"--store-crash", "COMMAND", RUNS, take_crash},
  {"--store-start", "COMMAND", RUNS, take_start},
  {"--store-pause", "COMMAND", RUNS, take_pause},
  {"--store-resume", "COMMAND", RUNS, take_resume},
  {"--store-deny", "COMMAND", RUNS, take_deny},
  {"--store-allow", "COMMAND", RUNS, take_allow},
  {"--store-address", "PATH|HOST:PORT", RUNS, take_address},
  {"--through", "KEY=VALUE", RUNS, take_through},
  {"--next", NULL, OF(CHECK), take_next},
  {"--gdb", NULL, OF(CHECK), take_gdb},
  {"--in-process", NULL, OF(CHECK), take_in_process},
  {"--repeat", "N", OF(CHECK), take_repeat},
  {"--classify", "N", RUNS, take_classify},
  {"--jobs", "N", RUNS | OF(SELFTEST), take_jobs},
  {"--timeout-scale", "X", OF(CERTIFY) | OF(CHECK) | OF(PROBE) | OF(SELFTEST) | OF(CLEAN),
   take_timeout_scale},
  {"--seed", "NUMBER", OF(CERTIFY) | OF(CHECK) | OF(SELFTEST), take_seed},
  {"--run-id", "ID", RUNS | OF(PROBE) | OF(BENCH), take_run_id},
  {"--out", "FOLDER", RUNS, take_out},
  {"--format", "tap|human", RUNS | OF(SELFTEST), take_format},
  {"--color", "auto|always|never", RUNS | OF(SELFTEST), take_color},
  {"--json", NULL, OF(LIST) | OF(PROBE) | OF(BENCH) | OPERATES, take_json},
  {"--verbose", NULL, RUNS | OF(SELFTEST), take_verbose},
  {"--zoo", "FOLDER", OF(SELFTEST), take_zoo},
  {"--model", "PLUGIN", OF(SELFTEST), take_model},
  {"--floor", "PROGRAM", OF(BENCH), take_floor},
  {"--pairs", "N", OF(BENCH), take_pairs},
  {"--slice", "MS", OF(BENCH), take_slice},
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Of both tables; NULL after the last. */
static const struct option_row *
row_at(size_t i)
{
  size_t n;
  const struct option_row *operating = operate_options(&n);

  return i < n ? &operating[i] : i - n < N_ROWS ? &rows[i - n] : NULL;
}

static bool
is_of(const struct option_row *row, enum command command)
{
  return (row->commands & (1u << command)) != 0;
}

/* The option of that name that the command takes. */
static const struct option_row *
row_of(enum command command, const char *name, size_t length)
{
  const struct option_row *row;

  for (size_t i = 0; (row = row_at(i)); i++) {
    if (strlen(row->name) == length && memcmp(row->name, name, length) == 0 && is_of(row, command))
      return row;
  }
  return NULL;
}

bool
options_takes(enum command command, const char *name)
{
  return row_of(command, name, strlen(name)) != NULL;
}

void
options_each(enum command command, option_fn *each, void *context)
{
  const struct option_row *row;

  for (size_t i = 0; (row = row_at(i)); i++) {
    if (row == row_of(command, row->name, strlen(row->name)))
      each(context, row->name, row->value);
  }
}

/* "durakit check and bench take --only": the first of the commands that do; first those of the same
 * kind, then the others. */
static void
add_others(struct dk_text *next, const struct options *o, const char *option)
{
  enum { MOST_NAMED = 5 };
  const unsigned kind = OPERATES & (1u << o->command) ? OPERATES : ~OPERATES;
  const char *others[COMMANDS];
  size_t n = 0;

  for (enum command c = COMMAND_NONE + 1; c < COMMANDS; c++)
    if ((kind & (1u << c)) && options_takes(c, option))
      others[n++] = names[c];
  for (enum command c = COMMAND_NONE + 1; c < COMMANDS; c++)
    if (!(kind & (1u << c)) && options_takes(c, option))
      others[n++] = names[c];
  for (size_t i = 0; i < n && i < MOST_NAMED; i++)
    dk_text_printf(next, "%s%s", i == 0 ? "; durakit " : i + 1 == n ? " and " : ", ", others[i]);
  if (n > 0)
    dk_text_printf(next, "%s %s %s", n > MOST_NAMED ? " and others" : "",
                   n == 1 ? "takes" : "take", option);
}

/* The option of this command that does the same under another name, or NULL. */
static const char *
synonym(const struct options *o, const char *option)
{
  const struct option_row *other, *own;

  for (size_t i = 0; (other = row_at(i)); i++)
    for (size_t k = 0; strcmp(other->name, option) == 0 && (own = row_at(k)); k++)
      if (own->take == other->take && is_of(own, o->command))
        return own->name;
  return NULL;
}

/* The nearest option of this command, without the dashes, which all have. */
static const char *
nearest_option(const struct options *o, const char *option)
{
  enum { DASHES = 2 };
  struct suggest nearest = {.word = option + strspn(option, "-")};
  const struct option_row *row;

  for (size_t i = 0; (row = row_at(i)); i++)
    if (is_of(row, o->command))
      suggest_try(&nearest, row->name + DASHES);
  return nearest.best ? nearest.best - DASHES : NULL;
}

/* An option of another command, or of none: first suggests one of this command. */
static int
unknown_option(const struct options *o, const char *option)
{
  struct dk_text what = DK_TEXT_EMPTY, next = DK_TEXT_EMPTY;
  const char *meant = synonym(o, option);

  if (!meant)
    meant = nearest_option(o, option);
  dk_text_puts(&what, "there is no such option");
  if (o->command != COMMAND_NONE)
    dk_text_printf(&what, " of durakit %s", names[o->command]);
  if (meant)
    dk_text_printf(&next, "did you mean %s? ", meant);
  usage_add_help(&next, o, "lists them");
  add_others(&next, o, option);
  int code = usage(o, option, dk_text_str(&what), NULL, dk_text_str(&next));
  dk_text_done(&what);
  dk_text_done(&next);
  return code;
}

static int
refuse_second(const struct options *o, const char *option)
{
  struct dk_text next = DK_TEXT_EMPTY;

  usage_add_help(&next, o, "shows what it takes");
  int code = usage(o, option, "is given twice", "it once, with one value", dk_text_str(&next));
  dk_text_done(&next);
  return code;
}

/* Takes the value.  A second one is refused, because it would silently replace the first; a switch
 * that is given twice has the same effect as once. */
static int
take_value(struct options *o, const struct option_row *row, const char *option, const char *value)
{
  for (size_t i = 0; i < o->n_given; i++) {
    if (o->given[i] == row)
      return refuse_second(o, option);
  }
  if (!(row->commands & REPEATS))
    o->given[o->n_given++] = row;
  return row->take(o, option, value);
}

/* Takes argv[*at], and the value after it if it needs one. */
static int
take_option(struct options *o, int argc, char **argv, int *at)
{
  const char *word = argv[*at];
  size_t n = strcspn(word, "=");
  const struct option_row *row = row_of(o->command, word, n);

  if (!row) {
    struct dk_text name = DK_TEXT_EMPTY;
    dk_text_add(&name, word, n);
    int code = unknown_option(o, dk_text_str(&name));
    dk_text_done(&name);
    return code;
  }
  if (!row->value)
    return word[n] ? usage(o, row->name, "takes no value", NULL, NULL)
                   : row->take(o, row->name, "");
  if (word[n])
    return take_value(o, row, row->name, word + n + 1);
  if (*at + 1 >= argc)
    return usage_missing_value(o, row->name, row->value);
  return take_value(o, row, row->name, argv[++*at]);
}

/* -j4 and -j 4; -h. */
static int
take_short(struct options *o, int argc, char **argv, int *at)
{
  const char *word = argv[*at];

  if (word[1] == 'h' && !word[2])
    return take_help(o, "-h", "");
  /* It may come before the command. */
  enum command command = o->command == COMMAND_NONE ? COMMAND_CERTIFY : o->command;
  const struct option_row *row = word[1] == 'j' ? row_of(command, "--jobs", 6) : NULL;
  if (!row)
    return unknown_option(o, word);
  if (word[2])
    return take_value(o, row, "-j", word + 2);
  if (*at + 1 >= argc)
    return usage_missing_value(o, "-j", "N");
  return take_value(o, row, "-j", argv[++*at]);
}

/* A word that is not a command, or no word at all. */
static int
refuse_command(const struct options *o, const char *word, const char *what, const char *nearest)
{
  struct dk_text list = DK_TEXT_EMPTY, next = DK_TEXT_EMPTY;

  for (unsigned i = 1; i < COMMANDS; i++)
    dk_text_printf(&list, "%s%s", i == 1 ? "" : i + 1 < COMMANDS ? ", " : " or ", names[i]);
  int code = usage(o, word, what, dk_text_str(&list), message_did_you_mean(&next, nearest, NULL));
  dk_text_done(&list);
  dk_text_done(&next);
  return code;
}

static int
take_command(struct options *o, const char *word)
{
  struct suggest nearest = {.word = word};

  for (unsigned i = 1; i < COMMANDS; i++) {
    if (strcmp(names[i], word) == 0) {
      o->command = (enum command)i;
      return EXIT_PASSED;
    }
    suggest_try(&nearest, names[i]);
  }
  return refuse_command(o, word, "there is no such command", nearest.best);
}

static int
take_argument(struct options *o, const char *word)
{
  if (o->command == COMMAND_NONE)
    return take_command(o, word);
  o->arguments[o->n_arguments++] = word;
  return EXIT_PASSED;
}

/* An option that disturbs a server needs the one that undoes it. */
static int
check_hurting(const struct options *o)
{
  const struct server_options *h = &o->server;
  const struct {
    const char *one, *other, *name, *missing;
  } pairs[] = {
    {h->crash, h->start, "--store-crash", "--store-start"},
    {h->start, h->crash, "--store-start", "--store-crash"},
    {h->pause, h->resume, "--store-pause", "--store-resume"},
    {h->resume, h->pause, "--store-resume", "--store-pause"},
    {h->deny, h->allow, "--store-deny", "--store-allow"},
    {h->allow, h->deny, "--store-allow", "--store-deny"},
    {h->through, h->address, "--through", "--store-address"},
    {h->address, h->through, "--store-address", "--through"},
  };

  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
    if (pairs[i].one && !pairs[i].other)
      return usage(o, pairs[i].name, "cannot be given alone", pairs[i].missing,
                   NULL);
  }
  return EXIT_PASSED;
}

/* That this process may use; a few are enough, since each check has its own stores to write. */
static unsigned
processors(void)
{
  cpu_set_t set;

  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return 1;
  return CPU_COUNT(&set) < MOST_PROCESSORS ? (unsigned)CPU_COUNT(&set) : MOST_PROCESSORS;
}

/* Options that were not given: chosen at random, or by the machine. */
static int
choose_the_rest(struct options *o, bool seed_given)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  unsigned char random[16];

  if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
    message_print("the system gave no random numbers: %s", strerror(errno));
    return EXIT_ENVIRONMENT;
  }
  if (!seed_given)
    memcpy(&o->seed, random, sizeof(o->seed));
  if (o->jobs == 0 && (RUNS & (1u << o->command)))
    o->jobs = processors() < MOST_PROCESSORS ? processors() + 1 : MOST_PROCESSORS;
  if (o->run_id[0] == '\0') {
    for (size_t j = 0; j < 6; j++)
      o->run_id[j] = letters[random[8 + j] % (sizeof(letters) - 1)];
  }
  return EXIT_PASSED;
}

/* For a command that works with one provider, if the command line does not name it. */
static int
take_environment(struct options *o)
{
  bool operates = (OPERATES & (1u << o->command)) != 0;
  bool names_one = operates ? o->operating.provider != NULL : o->n_arguments > 0;

  if (names_one || (!operates && o->command != COMMAND_PROBE))
    return EXIT_PASSED;
  int code = settings_take_environment(o);
  if (operates)
    o->operating.provider = o->environment.provider;
  else if (o->environment.provider)
    o->arguments[o->n_arguments++] = o->environment.provider;
  return o->help ? EXIT_PASSED : code;
}

int
options_parse(struct options *options, int argc, char **argv)
{
  bool only_arguments = false;
  int code = EXIT_PASSED;

  *options = (struct options){.program = argv[0],
                              .profile = PROFILE_CORE,
                              .timeout_scale = 1,
                              .classify = 1,
                              .repeat = 1};
  operate_options_defaults(&options->operating);
  options->arguments = calloc((size_t)argc + 1, sizeof(*options->arguments));
  options->given = calloc((size_t)argc + 1, sizeof(*options->given));
  if (!options->arguments || !options->given) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  bool seed_given = false;
  for (int i = 1; i < argc && code == EXIT_PASSED; i++) {
    if (only_arguments || argv[i][0] != '-' || !argv[i][1]) {
      code = take_argument(options, argv[i]);
    } else if (strcmp(argv[i], "--") == 0) {
      only_arguments = true;
    } else {
      seed_given = seed_given || strncmp(argv[i], "--seed", 6) == 0;
      code = argv[i][1] == '-' ? take_option(options, argc, argv, &i)
                               : take_short(options, argc, argv, &i);
    }
  }
  if (code == EXIT_PASSED)
    code = take_environment(options);
  if (code != EXIT_PASSED || options->help || options->version)
    return code;
  if (options->command == COMMAND_NONE)
    return refuse_command(options, "", "a command is missing", NULL);
  code = arguments_check(options);
  if (code == EXIT_PASSED)
    code = check_hurting(options);
  if (code == EXIT_PASSED)
    code = operate_options_check(options);
  return code == EXIT_PASSED ? choose_the_rest(options, seed_given) : code;
}

void
options_done(struct options *options)
{
  settings_done(options);
  free(options->arguments);
  free(options->given);
  free(options->only);
  operate_options_done(&options->operating);
}
