/* SPDX-License-Identifier: Apache-2.0 */
/* Prints docs/contract.md from the tables of areas.def.
 *
 * The prose of the tables is plain text.  On its way out words that are names in C become code, and
 * clause ids become links; a text that names a clause which does not exist ends the program with 1.
 */
#include "conformance/contract/contract.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- prose into Markdown --------------------------------------------------------------------- */

struct word {
  const char *ptr;
  size_t len;
};

static bool
is_word_byte(char c)
{
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* A word is a C name with "->", or a clause id with its hyphen; anything else is one byte. */
static struct word
next_word(const char *s)
{
  size_t len = 0;

  for (;;) {
    if (is_word_byte(s[len]))
      len++;
    else if (len > 0 && s[len] == '-' && s[len + 1] == '>' && is_word_byte(s[len + 2]))
      len += 2;
    else if (len > 0 && s[len] == '-' && s[len + 1] >= '0' && s[len + 1] <= '9')
      len++;
    else
      break;
  }
  return (struct word){ .ptr = s, .len = len > 0 ? len : 1 };
}

/* "ACK-11", if its front is the name of an area; then it must be a clause. */
static bool
looks_like_clause(struct word w, char *ret_id, size_t size)
{
  const char *hyphen = memchr(w.ptr, '-', w.len);
  size_t front = hyphen != NULL ? (size_t)(hyphen - w.ptr) : 0;

  if (front == 0 || w.len >= size)
    return false;
  memcpy(ret_id, w.ptr, front);
  ret_id[front] = '\0';
  if (dk_area_find(ret_id) == NULL)
    return false;
  memcpy(ret_id, w.ptr, w.len);
  ret_id[w.len] = '\0';
  return true;
}

/* "visible_at", "host->wait"; not "UPDATE", which is only SQL in a sentence. */
static bool
is_c_name(struct word w)
{
  return w.len > 1 && (memchr(w.ptr, '_', w.len) != NULL || memchr(w.ptr, '>', w.len) != NULL);
}

static void
put_lower(const char *s)
{
  for (; *s != '\0'; s++)
    putchar(*s >= 'A' && *s <= 'Z' ? *s - 'A' + 'a' : *s);
}

/* False: the text names a clause that does not exist. */
static bool
put_word(struct word w)
{
  char id[32];

  if (looks_like_clause(w, id, sizeof id)) {
    if (dk_clause_find(id) == NULL) {
      fprintf(stderr, "gen-contract: a text names clause %s, which is not in areas.def\n", id);
      return false;
    }
    printf("[%s](#", id);
    put_lower(id);
    putchar(')');
  } else if (is_c_name(w)) {
    printf("`%.*s`", (int)w.len, w.ptr);
  } else if (w.len == 1 && strchr("*_<\\[]|", w.ptr[0]) != NULL) {
    printf("\\%c", w.ptr[0]);
  } else {
    printf("%.*s", (int)w.len, w.ptr);
  }
  return true;
}

/* Prose in backticks goes out as it is. */
static bool
put_prose(const char *s)
{
  bool in_code = false;
  bool known = true;

  while (*s != '\0') {
    struct word w = next_word(s);
    if (*s == '`')
      in_code = !in_code;
    if (in_code || *s == '`')
      printf("%.*s", (int)w.len, w.ptr);
    else
      known = put_word(w) && known;
    s += w.len;
  }
  return known;
}

/* The anchor that GitHub gives to a heading: small letters, hyphens for blanks, nothing else. */
static void
put_anchor(const char *heading)
{
  for (; *heading != '\0'; heading++) {
    char c = *heading;
    if (c >= 'A' && c <= 'Z')
      c = (char)(c - 'A' + 'a');
    if (c == ' ')
      c = '-';
    if (c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      putchar(c);
  }
}

/* ---- the front of the page ------------------------------------------------------------------- */

struct decision {
  const char *topic;
  const char *text;
};

static const char intro[] =
    "A *provider* is a storage plugin on which a workflow engine keeps histories, queues and "
    "locks: one shared object that exports one function, written against one header "
    "([durakit/provider.h](../core/include/durakit/provider.h)). This page is what a provider "
    "has to promise, clause by clause. `durakit certify` proves it; `durakit explain "
    "CANCEL-5` shows one clause in the terminal.\n"
    "\n"
    "A provider is a dumb store. It keeps opaque bytes beside a small typed envelope, and it "
    "never looks inside a payload. Whatever the store needs to know (which instance a message is "
    "for, when it is visible, which activity a row stands for) crosses the interface as a field of "
    "its own.\n"
    "\n"
    "The central idea: **an activity is cancelled by deleting its row** from "
    "the worker queue, inside the transaction that commits the orchestration's turn. The "
    "worker's next renewal finds no row, its ack finds no row, and both fail for good.\n"
    "\n"
    "## How to read a clause\n"
    "\n"
    "Each clause has an id that is never given to another rule, and a level: **MUST** is "
    "needed for a certificate, **SHOULD** is reported and not needed. The first paragraph is "
    "the norm. *Why* states what a host may rely on, *What usually breaks it* what authors got "
    "wrong before you. The last line states what judges it:\n"
    "\n"
    "| judged by | meaning |\n"
    "|---|---|\n"
    "| check | one or more checks of the kit; `durakit list checks` names them |\n"
    "| host | the host enforces it before it calls, so no provider ever sees a breach: "
    "nothing to write |\n"
    "| loader | judged while the file is loaded, or by the engine at the end of every check, with "
    "memcheck's findings |\n"
    "| planned | the clause holds already; its check comes with the issue named |\n"
    "\n"
    "Words: a *turn* is one locked batch of an instance's messages with its history. A *work "
    "item* is one activity to run. To *commit* is `ack_orchestration_item`, to *ack* is "
    "`ack_work_item`. A *lease* is the time for which a fetch locks what it hands out; a "
    "*token* is the proof of it.\n";

static const struct decision decisions[] = {
  { "Precedence",
    "If one call breaks several rules, the answer is for the first of: dead token, form, "
    "size, state (ERR-5). A check breaks one rule per call." },
  { "Nothing changed",
    "A refused call leaves no difference that any caller can observe later, not even when a "
    "lease ends or an attempt is counted (ERR-3). It is proved by running the same operations "
    "twice in virtual time, with and without the refused call." },
  { "Tokens",
    "A token that is unknown, used up, expired, taken over, or whose row was deleted is "
    "DK_LOCK_LOST, on every operation that takes one, abandon included: always permanent, and "
    "nothing changes (TOKEN-2 to TOKEN-6). Expired is dead even if no other "
    "holder took over (TOKEN-4)." },
  { "Order",
    "Messages of one instance by effective visible time, then by arrival (QUEUE-2). Between "
    "instances, and between work items, there is no order, only no starvation (QUEUE-8, "
    "WORK-2)." },
  { "Time",
    "Milliseconds since the epoch. `now` is read once per operation, after its last wait "
    "(TIME-1). visible_at == now is visible (TIME-3); locked_until == now is free, and the "
    "token dead (TIME-4). Sums saturate (TIME-5)." },
  { "Nothing to do",
    "A fetch that runs alone answers DK_NOTHING only if nothing is eligible; N fetches and N "
    "ready instances: each gets one (TURN-10)." },
  { "Unknown instances",
    "A turn for an instance that the store does not know is handed out like any other. "
    "Dropping strays is the runtime's business (TURN-3), done by the empty commit (ACK-8)." },
  { "Duplicates",
    "Judged as the store stood before the operation: an event id not above the last, an "
    "activity or a message id that is stored (ACK-12, CANCEL-11, QUEUE-4). The whole "
    "operation is refused, row and lease are kept." },
  { "Abandon",
    "Touches the messages of its own turn and nothing else (TURN-8)." },
  { "A lost answer",
    "DK_OUTCOME_UNKNOWN, and a repeat with DK_REPEATED that never has a second effect "
    "(ACK-11, WORK-10)." },
  { "Birth",
    "0 while an instance is unknown, given by its first commit, another one for every life "
    "(TURN-11)." },
  { "Waiting",
    "Work committed while a call waits is returned by this call; after the time is up at most "
    "one more attempt (CALL-2, CALL-3)." },
  { "Ids",
    "Valid UTF-8 without NUL, 1 to max_id bytes, compared byte by byte; the host checks the "
    "form (ERR-6). Payloads are any bytes." },
};

static const struct decision classes[] = {
  { "0", "not an error: DK_OK, DK_NOTHING, DK_CALL_CANCELLED" },
  { "1", "try again: the store is busy or unreachable. A lock may be left that runs out, and one "
         "attempt counted" },
  { "2", "do not try again: refused, and nothing changed" },
  { "3", "unknown whether it happened: repeat only with DK_REPEATED" },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool
put_rows(const struct decision *rows, size_t n)
{
  bool known = true;

  for (size_t i = 0; i < n; i++) {
    printf("| %s | ", rows[i].topic);
    known = put_prose(rows[i].text) && known;
    puts(" |");
  }
  return known;
}

static bool
put_front(void)
{
  bool known;

  printf("<!-- Made by gen-contract from conformance/contract/areas: edit there. -->\n\n"
         "# The provider contract, version %s\n\n%s\n",
         DK_CONTRACT_VERSION, intro);
  puts("## Decisions that run through all areas\n\n| topic | decision |\n|---|---|");
  known = put_rows(decisions, COUNT(decisions));
  puts("\nThe hundreds digit of a status is its class; hosts act on it ([ERR-1](#err-1)):\n\n"
       "| class | meaning |\n|---|---|");
  known = put_rows(classes, COUNT(classes)) && known;
  putchar('\n');
  return known;
}

/* ---- contents and clauses -------------------------------------------------------------------- */

struct tally {
  size_t all, planned;
};

static struct tally
count_clauses(const char *area)
{
  struct tally tally = { 0 };
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);

  for (size_t i = 0; i < n; i++) {
    if (area != NULL && strcmp(clauses[i].area, area) != 0)
      continue;
    tally.all++;
    tally.planned += clauses[i].planned_issue != 0;
  }
  return tally;
}

static void
put_contents(void)
{
  size_t n;
  const struct dk_area *areas = dk_areas(&n);
  struct tally total = count_clauses(NULL);

  puts("## Contents\n\n| area | about | clauses | judged now | planned |\n|---|---|--:|--:|--:|");
  for (size_t i = 0; i < n; i++) {
    struct tally t = count_clauses(areas[i].id);
    printf("| [%s](#", areas[i].id);
    put_lower(areas[i].id);
    putchar('-');
    put_anchor(areas[i].title);
    printf(") | %s | %zu | %zu | %zu |\n", areas[i].title, t.all, t.all - t.planned, t.planned);
  }
  printf("| | all | %zu | %zu | %zu |\n\n", total.all, total.all - total.planned, total.planned);
}

static bool
put_clause(const struct dk_clause *c)
{
  bool known;

  printf("### %s\n\n**%s.** ", c->id, dk_clause_level_name(c->level));
  known = put_prose(c->text);
  printf("\n\n*Why:* ");
  known = put_prose(c->why) && known;
  printf("\n\n*What usually breaks it:* ");
  known = put_prose(c->breaks) && known;
  printf("\n\n<sub>since %s · judged by: %s", c->since, dk_clause_by_name(c->by));
  if (c->planned_issue != 0)
    printf(" · planned: issue %d", c->planned_issue);
  puts("</sub>\n");
  return known;
}

static bool
put_areas(void)
{
  bool known = true;
  size_t n_areas, n_clauses;
  const struct dk_area *areas = dk_areas(&n_areas);
  const struct dk_clause *clauses = dk_clauses(&n_clauses);

  for (size_t i = 0; i < n_areas; i++) {
    printf("## %s: %s\n\n", areas[i].id, areas[i].title);
    known = put_prose(areas[i].intro) && known;
    puts("\n");
    for (size_t k = 0; k < n_clauses; k++) {
      if (strcmp(clauses[k].area, areas[i].id) == 0)
        known = put_clause(&clauses[k]) && known;
    }
  }
  return known;
}

int
main(void)
{
  bool known = put_front();

  put_contents();
  known = put_areas() && known;
  printf("---\n\nContract %s, hash `%016" PRIx64 "` (over ids and texts), as `durakit --version` "
         "prints it: so two kits can be compared.\n",
         DK_CONTRACT_VERSION, dk_contract_hash());
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "gen-contract: cannot write to standard output\n");
    return 1;
  }
  return known ? 0 : 1;
}
