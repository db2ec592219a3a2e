/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts of schema.h: texts from schema/ with a schema's name put in. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/pg/schema.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* Writes the name as an identifier.  A quote could end a literal around it, and a dollar the body
 * of a function: a name with one of them is written with their character numbers. */
static void
put_identifier(FILE *out, const char *name)
{
  const char *special = "'\\$\"";

  fputs(strpbrk(name, special) ? "U&\"" : "\"", out);
  for (const char *c = name; *c; c++)
    if (strchr(special, *c))
      fprintf(out, "\\%04x", (unsigned)*c);
    else
      fputc(*c, out);
  fputc('"', out);
}

/* Inside of a literal E'...'. */
static void
put_in_literal(FILE *out, const char *name, bool is_identifier)
{
  for (const char *c = name; *c; c++) {
    if (strchr("'\\$", *c))
      fprintf(out, "\\x%02x", (unsigned)*c);
    else
      fputc(*c, out);
    if (*c == '"' && is_identifier)
      fputc(*c, out);
  }
}

static void
put_literal(FILE *out, const char *name)
{
  fputs("E'", out);
  put_in_literal(out, name, false);
  fputc('\'', out);
}

/* As the beginning of a literal that the server reads as an identifier: '@schema@.x'::regclass. */
static void
put_identifier_in_literal(FILE *out, const char *name)
{
  fputs("E'\"", out);
  put_in_literal(out, name, true);
  fputc('"', out);
}

/* What an @ in a text begins: where it ends, or NULL if it is no name. */
static const char *
put_name(FILE *out, const char *at, const char *schema)
{
  static const struct {
    const char *mark;
    void (*put)(FILE *out, const char *name);
  } names[] = {
    {"@schema@", put_identifier},
    {"'@schema@", put_identifier_in_literal},
    {"@schema_literal@", put_literal},
  };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t n = strlen(names[i].mark);
    if (strncmp(at, names[i].mark, n) == 0) {
      names[i].put(out, schema);
      return at + n;
    }
  }
  return NULL;
}

/* ---- scripts --------------------------------------------------------------------------------- */

void
script_begin(struct script *s, const char *schema)
{
  *s = (struct script){.schema = schema};
  s->file = open_memstream(&s->text, &s->size);
}

void
script_add(struct script *s, const char *text)
{
  while (s->file && *text) {
    size_t plain = strcspn(text, "@'");
    fwrite(text, 1, plain, s->file);
    text += plain;
    const char *end = put_name(s->file, text, s->schema);
    if (!end && *text)
      fputc(*text++, s->file);
    else if (end)
      text = end;
  }
}

void
script_add_number(struct script *s, int64_t number)
{
  if (s->file)
    fprintf(s->file, "%" PRId64, number);
}

/* The isolation first, before there is a snapshot: a script that has waited for the lock must see
 * what the script before it has made.  The search_path before anything is looked up, because a
 * session that a pooler lends out has the role's. */
void
script_add_head(struct script *s, int64_t lock_ms)
{
  script_add(s, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;\n"
                "SET LOCAL search_path = pg_catalog, pg_temp;\n"
                "DO $head$ BEGIN\n"
                "PERFORM pg_catalog.set_config('lock_timeout', '");
  script_add_number(s, lock_ms);
  script_add(s, "', true),\n"
                "  pg_catalog.set_config('client_min_messages', 'error', true),\n"
                "  pg_catalog.set_config('check_function_bodies', 'off', true),\n"
                "  pg_catalog.set_config('standard_conforming_strings', 'on', true),\n"
                "  pg_catalog.set_config('statement_timeout', '0', true),\n"
                "  pg_catalog.set_config('row_security', 'off', true),\n"
                "  pg_catalog.set_config('default_tablespace', '', true),\n"
                "  pg_catalog.set_config('default_table_access_method', 'heap', true),\n"
                "  pg_catalog.set_config('synchronous_commit',\n"
                "    CASE WHEN pg_catalog.current_setting('synchronous_commit')\n"
                "      IN ('off', 'local') THEN 'on'\n"
                "      ELSE pg_catalog.current_setting('synchronous_commit') END, true);\n"
                "PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended("
                "'durakit ' || @schema_literal@, 0));\n"
                "END $head$;\n");
}

dk_status
script_run(struct script *s, struct connection *c, struct dk_call *call, const char *what,
           struct why *why)
{
  bool is_whole = s->file && !ferror(s->file);

  if (s->file && fclose(s->file) != 0)
    is_whole = false;
  dk_status status = is_whole ? connection_script(c, call, what, s->text, why)
                              : why_set(why, DK_NO_MEMORY, "%s: out of memory", what);
  free(s->text);
  return status;
}
