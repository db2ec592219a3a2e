/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the contract's data to its form: ids in order, checks and mutants beside their clause,
 * nothing empty, no text twice, and no clause that would let a provider look inside a payload. */
#include "conformance/contract/contract.h"
#include "conformance/tap/tap.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { SHORTEST_TEXT = 25, LONGEST_TEXT = 700 };

/* The three texts of a clause, so that a test can say which one is wrong. */
static const char *
text_of(const struct dk_clause *c, unsigned which)
{
  const char *const texts[] = { c->text, c->why, c->breaks };

  return texts[which];
}

static const char *
name_of_text(unsigned which)
{
  static const char *const names[] = { "text", "why", "breaks" };

  return names[which];
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void
areas_are_known_and_unique(void)
{
  size_t n;
  const struct dk_area *areas = dk_areas(&n);
  unsigned wrong = 0;

  cmp_ok(n, ">", 0, "there are areas");
  for (size_t i = 0; i < n; i++) {
    if (dk_area_find(areas[i].id) != &areas[i] || strlen(areas[i].title) == 0 ||
        strlen(areas[i].intro) < SHORTEST_TEXT) {
      diag("area %s is there twice, or has no title or intro", areas[i].id);
      wrong++;
    }
  }
  cmp_ok(wrong, "==", 0, "each area is there once, with title and intro");
}

/* The i-th clause has the number that follows its predecessor's, or begins the next area with 1. */
static void
ids_follow_one_another(void)
{
  size_t n_areas, n, area = 0;
  const struct dk_area *areas = dk_areas(&n_areas);
  const struct dk_clause *clauses = dk_clauses(&n);
  unsigned number = 0, wrong = 0;

  for (size_t i = 0; i < n; i++) {
    char expected[64];
    if (strcmp(clauses[i].area, areas[area].id) != 0 && area + 1 < n_areas) {
      area++;
      number = 0;
    }
    snprintf(expected, sizeof expected, "%s-%u", areas[area].id, ++number);
    if (strcmp(clauses[i].id, expected) != 0 || strcmp(clauses[i].area, areas[area].id) != 0) {
      diag("clause %s of area %s is in the place of %s", clauses[i].id, clauses[i].area, expected);
      wrong++;
    }
  }
  cmp_ok(wrong, "==", 0, "ids are in the order of the areas, numbered from 1 without a gap");
  cmp_ok(area + 1, "==", n_areas, "no area is without a clause");
}

static void
each_id_finds_its_clause(void)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  unsigned wrong = 0;

  for (size_t i = 0; i < n; i++)
    wrong += dk_clause_find(clauses[i].id) != &clauses[i];
  cmp_ok(wrong, "==", 0, "ids are unique: each finds its own clause");
  ok(dk_clause_find("CANCEL-5") != NULL, "CANCEL-5 is found");
  ok(dk_clause_find("CANCEL-0") == NULL && dk_clause_find("cancel-5") == NULL &&
         dk_clause_find("CANCEL-5 ") == NULL && dk_clause_find("") == NULL &&
         dk_clause_find(NULL) == NULL,
     "an invalid id finds nothing");
  ok(dk_area_find("UTF") == NULL && dk_area_find(NULL) == NULL, "an invalid area finds nothing");
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct entry {
  enum { A_CLAUSE, A_CHECK, A_MUTANT } kind;
  const char *id, *of; /* the clauses that a check is for, the one that a mutant breaks */
};

static const struct entry entries[] = {
#define CLAUSE(id_, area, level, by, since, planned, text, why, breaks) {A_CLAUSE, id_, id_},
#define CHECK(area, function, name, clauses, needs, flags, processes, says)                        \
  {A_CHECK, #area "/" name, clauses},
#define MUTANT(name, id_, clause, check, text) {A_MUTANT, id_, clause},
#include "conformance/contract/areas.def"
};

/* How many are not in the block of their (first) clause: clause, checks, mutants. */
static unsigned
strangers(const struct entry *list, size_t n)
{
  const struct entry *clause = NULL;
  unsigned wrong = 0;

  for (size_t i = 0; i < n; i++) {
    const struct entry *e = &list[i];
    if (e->kind == A_CLAUSE)
      clause = e;
    else if (clause && strcspn(e->of, " ") == strlen(clause->id) &&
             strncmp(e->of, clause->id, strlen(clause->id)) == 0 && list[i - 1].kind <= e->kind)
      continue;
    else {
      diag("%s, of %s, is not in its place in that block", e->id, e->of);
      wrong++;
    }
  }
  return wrong;
}

static void
blocks_are_whole(void)
{
  static const struct entry bad[] = {
    {A_CHECK, "a/before", "A-1"}, {A_CLAUSE, "A-1", "A-1"},   {A_MUTANT, "a/good", "A-1"},
    {A_CHECK, "a/late", "A-1"},   {A_CHECK, "a/b", "A-2 A-1"}, {A_CHECK, "a/c", "A-11"},
  };

  cmp_ok(strangers(entries, sizeof entries / sizeof entries[0]), "==", 0,
         "each check and each mutant is beside its clause");
  cmp_ok(strangers(bad, 1), "==", 1, "one before all clauses is noticed");
  cmp_ok(strangers(bad + 1, 2), "==", 0, "one in its place is not");
  cmp_ok(strangers(bad + 1, 3), "==", 1, "a check behind a mutant is noticed");
  cmp_ok(strangers(bad + 1, 5), "==", 3, "as are two beside another clause");
}

/* ---- the other fields ------------------------------------------------------------------------ */

static bool
fields_are_valid(const struct dk_clause *c)
{
  bool level = c->level == DK_MUST || c->level == DK_SHOULD;
  bool by = c->by == DK_BY_CHECK || c->by == DK_BY_HOST || c->by == DK_BY_LOADER;
  bool planned = c->planned_issue == 0 || (c->planned_issue > 0 && c->by == DK_BY_CHECK);

  return level && by && planned && dk_area_find(c->area) != NULL && strlen(c->since) > 0;
}

static void
levels_and_judges_are_valid(void)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  unsigned wrong = 0;

  for (size_t i = 0; i < n; i++) {
    if (!fields_are_valid(&clauses[i])) {
      diag("%s: level, judge, since or planned issue is wrong (only a check can be planned)",
           clauses[i].id);
      wrong++;
    }
  }
  cmp_ok(wrong, "==", 0, "level, judge, since and planned issue are valid");
  is(dk_clause_level_name(DK_SHOULD), "SHOULD", "a level has its name");
  is(dk_clause_by_name(DK_BY_HOST), "host", "a judge has its name");
}

/* A sentence: of a bearable length, in one line, in ASCII, with its full stop. */
static bool
is_well_formed(const char *s)
{
  size_t len = strlen(s);

  if (len < SHORTEST_TEXT || len > LONGEST_TEXT || s[len - 1] != '.' || s[0] == ' ')
    return false;
  for (size_t i = 0; i < len; i++) {
    if (!isascii((unsigned char)s[i]) || iscntrl((unsigned char)s[i]))
      return false;
  }
  return strstr(s, "  ") == NULL;
}

static void
texts_are_well_formed(void)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  unsigned wrong = 0;

  for (size_t i = 0; i < n; i++) {
    for (unsigned which = 0; which < 3; which++) {
      const char *s = text_of(&clauses[i], which);
      if (!is_well_formed(s)) {
        diag("%s: %s is empty, too long (%zu of %d), or ill-formed: %s", clauses[i].id,
             name_of_text(which), strlen(s), LONGEST_TEXT, s);
        wrong++;
      }
    }
  }
  cmp_ok(wrong, "==", 0, "every text, why and breaks is a sentence or several");
}

static void
nothing_is_said_twice(void)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  unsigned wrong = 0;

  for (size_t i = 0; i < 3 * n; i++) {
    for (size_t k = i + 1; k < 3 * n; k++) {
      const char *a = text_of(&clauses[i / 3], (unsigned)(i % 3));
      if (strcmp(a, text_of(&clauses[k / 3], (unsigned)(k % 3))) == 0) {
        diag("%s and %s say the same: %s", clauses[i / 3].id, clauses[k / 3].id, a);
        wrong++;
      }
    }
  }
  cmp_ok(wrong, "==", 0, "no two texts are equal");
}

/* ---- what a clause may say ------------------------------------------------------------------- */

static bool
mentions(const char *text, const char *word)
{
  size_t len = strlen(word);

  for (; *text != '\0'; text++) {
    if (strncasecmp(text, word, len) == 0)
      return true;
  }
  return false;
}

/* Only `breaks` may mention a provider that looks inside: it lists mistakes. */
static bool
opens_a_payload(const char *text)
{
  static const char *const words[] = { "decod", "deseriali", "unmarshal", "parse", "json" };

  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (mentions(text, words[i]))
      return true;
  }
  return false;
}

static void
payloads_stay_closed(void)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  unsigned wrong = 0;

  for (size_t i = 0; i < n; i++) {
    if (opens_a_payload(clauses[i].text) || opens_a_payload(clauses[i].why)) {
      diag("%s mentions decoding, but payloads are opaque", clauses[i].id);
      wrong++;
    }
  }
  cmp_ok(wrong, "==", 0, "no clause mentions that a payload is decoded");
  ok(opens_a_payload("The start message is Decoded to find its name."), "such a text is noticed");
}

/* The length of the clause id at `s` ("ACK-11"), whose front is an area; 0: none is there. */
static size_t
reference_at(const char *s, char *ret_id, size_t size)
{
  size_t front = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  size_t len;

  if (front == 0 || front + 8 > size || s[front] != '-')
    return 0;
  memcpy(ret_id, s, front);
  ret_id[front] = '\0';
  len = front + 1 + strspn(s + front + 1, "0123456789");
  if (dk_area_find(ret_id) == NULL || len >= size)
    return 0;
  memcpy(ret_id, s, len);
  ret_id[len] = '\0';
  return len;
}

static unsigned
dangling_references(const char *text)
{
  unsigned wrong = 0;
  char id[32];

  for (; *text != '\0'; text++) {
    size_t len = reference_at(text, id, sizeof id);
    if (len != 0 && dk_clause_find(id) == NULL) {
      diag("%s is not a clause: %s", id, text);
      wrong++;
    }
    if (len != 0)
      text += len - 1;
  }
  return wrong;
}

static void
references_lead_somewhere(void)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  unsigned wrong = 0;
  char id[32];

  for (size_t i = 0; i < n; i++) {
    for (unsigned which = 0; which < 3; which++)
      wrong += dangling_references(text_of(&clauses[i], which));
  }
  cmp_ok(wrong, "==", 0, "each clause that a text names exists");
  ok(reference_at("CANCEL-99 and more", id, sizeof id) == 9 && dk_clause_find(id) == NULL,
     "one that does not is noticed");
}

/* The hash as the header defines it, computed once more: ids and texts, each with its NUL. */
static void
hash_is_over_ids_and_texts(void)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  uint64_t hash = UINT64_C(14695981039346656037);

  for (size_t i = 0; i < 2 * n; i++) {
    const char *s = i % 2 == 0 ? clauses[i / 2].id : clauses[i / 2].text;
    for (size_t k = 0; k <= strlen(s); k++)
      hash = (hash ^ (unsigned char)s[k]) * UINT64_C(1099511628211);
  }
  cmp_ok(dk_contract_hash(), "==", hash, "the hash is FNV-1a over ids and texts");
}

int
main(void)
{
  areas_are_known_and_unique();
  ids_follow_one_another();
  each_id_finds_its_clause();
  blocks_are_whole();
  levels_and_judges_are_valid();
  texts_are_well_formed();
  nothing_is_said_twice();
  payloads_stay_closed();
  references_lead_somewhere();
  hash_is_over_ids_and_texts();
  return done_testing();
}
