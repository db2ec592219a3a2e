/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Valgrind's XML (protocol 4).  A file may be cut off where its process was killed: all that
 * comes before counts.  Owns what it has read. */
#include "runner/memory/findings.h"

#include <dirent.h>
#include <errno.h>
#include <expat.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/kit/engine.h"
#include "core/base/checksum.h"
#include "core/base/grow.h"
#include "runner/system/file.h"
#include "runner/system/remove.h"

enum { DEPTH = 16, TEXT = 1024, PIECE = 64 * 1024, MOST_XML = 64 << 20 };

/* The state of the parser. */
struct reader {
  struct findings *findings;
  bool own;                  /* the file of the check's own process */
  const char *path[DEPTH];   /* names of the open elements, as far as they are known */
  unsigned depth;
  char text[TEXT];           /* of the element that is open */
  size_t length;
  struct finding *error;     /* the open one; NULL: none, or it is left out */
  struct stack *stack;
  struct suppressed pair;
  unsigned cycle;            /* the current one */
  bool over;                 /* the child has had its last word: leaks are of no check */
};

/* The names that are compared below; a path is a list of these. */
static const char *const known[] = {
  "valgrindoutput", "error", "fatal_signal", "clientmsg", "suppcounts", "pair", "count", "name",
  "kind", "what", "xwhat", "text", "leakedbytes", "auxwhat", "xauxwhat", "stack",
  "frame", "ip", "obj", "fn", "dir", "file", "line", "signame", "event", "errorcounts"};

static const char *
known_name(const char *name)
{
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (strcmp(known[i], name) == 0)
      return known[i];
  }
  return "";
}

/* The n-th open element from the inside. */
static bool
inside(const struct reader *reader, unsigned n, const char *name)
{
  return reader->depth > n && reader->depth <= DEPTH
         && strcmp(reader->path[reader->depth - 1 - n], name) == 0;
}

static bool
is_within(const struct reader *reader, const char *name)
{
  for (unsigned i = 0; i < reader->depth && i < DEPTH; i++) {
    if (strcmp(reader->path[i], name) == 0)
      return true;
  }
  return false;
}

/* ---- elements that begin --------------------------------------------------------------------- */

/* Takes one more than are kept, until it is known whether it is hidden. */
static struct finding *
add_finding(struct findings *findings)
{
  struct finding *grown = dk_grown(findings->items, findings->n, &findings->room, sizeof(*grown));

  if (!grown) {
    findings->left_out++;
    return NULL;
  }
  findings->items = grown;
  struct finding *finding = &findings->items[findings->n++];
  *finding = (struct finding){.stack_hash = DK_FNV1A64_START};
  return finding;
}

static void
free_frames(struct finding *finding)
{
  for (unsigned i = 0; i < finding->n_stacks; i++)
    free(finding->stacks[i].frames);
}

/* The last one has been read. */
static void
end_finding(struct findings *findings, struct finding *finding)
{
  bool hidden;

  for (unsigned i = 0; i < finding->n_stacks; i++)
    finding->cut = finding->cut || finding->stacks[i].n >= FINDING_CALLERS;
  hidden = findings_hide(findings, finding);
  if (!hidden && findings->n <= FINDINGS_MOST)
    return;
  findings->left_out += hidden ? 0u : 1u;
  free_frames(finding);
  findings->n--;
}

static bool
add_frame(struct stack *stack)
{
  if (stack->n == FINDING_FRAMES)
    return false;
  struct frame *grown = dk_grown(stack->frames, stack->n, &stack->room, sizeof(*grown));
  if (!grown)
    return false;
  stack->frames = grown;
  stack->frames[stack->n++] = (struct frame){.line = 0};
  return true;
}

/* The first stack of an error has no text of its own; each other stack follows its auxwhat. */
static struct stack *
next_stack(struct finding *error)
{
  if (!error)
    return NULL;
  if (error->n_stacks >= FINDING_STACKS) {
    error->cut = true;
    return NULL;
  }
  return &error->stacks[error->n_stacks++];
}

static void
begin_element(void *data, const char *name, const char **attributes)
{
  struct reader *reader = data;

  (void)attributes;
  if (reader->depth < DEPTH)
    reader->path[reader->depth] = known_name(name);
  reader->depth++;
  reader->length = 0;
  if (inside(reader, 0, "error")) {
    reader->error = add_finding(reader->findings);
    if (reader->error)
      *reader->error = (struct finding){.stack_hash = reader->error->stack_hash,
                                        .cycle = reader->cycle,
                                        .late = reader->over};
  } else if (inside(reader, 0, "stack")) {
    if (inside(reader, 1, "fatal_signal"))
      reader->stack = &reader->findings->stopped_at;
    else if (reader->error && reader->error->n_stacks > 0 && inside(reader, 1, "error")
             && reader->error->stacks[reader->error->n_stacks - 1].n == 0)
      reader->stack = &reader->error->stacks[reader->error->n_stacks - 1];
    else
      reader->stack = next_stack(reader->error);
  } else if (inside(reader, 0, "frame") && reader->stack) {
    if (!add_frame(reader->stack)) {
      reader->stack = NULL;
      if (reader->error)
        reader->error->cut = true;
    }
  }
}

static void
take_text(void *data, const char *text, int length)
{
  struct reader *reader = data;
  size_t room = sizeof(reader->text) - 1 - reader->length;
  size_t n = (size_t)length < room ? (size_t)length : room;

  memcpy(reader->text + reader->length, text, n);
  reader->length += n;
}

/* ---- elements that end ----------------------------------------------------------------------- */

#define COPY(array, text) snprintf((array), sizeof(array), "%.*s", (int)sizeof(array) - 1, (text))

static bool
begins_with(const char *text, const char *begin)
{
  return strncmp(text, begin, strlen(begin)) == 0;
}

/* Sources of a language's library, as the compilers and package managers name their folders. */
static bool
is_standard_folder(const char *folder)
{
  static const char *const parts[] = {"/rustlib/src/", "/.cargo/registry/", "/.cargo/git/",
                                      "/include/c++/"};

  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    if (strstr(folder, parts[i]))
      return true;
  }
  return begins_with(folder, "/rustc/") || begins_with(folder, "library/");
}

/* Go's runtime is known by its package. */
static void
take_function(struct frame *frame, const char *text)
{
  COPY(frame->function, text);
  frame->standard = begins_with(text, "runtime.");
}

static void
end_in_frame(struct reader *reader, const char *text)
{
  struct stack *stack = reader->stack;

  if (inside(reader, 0, "ip") && reader->error && reader->error->n_stacks == 1)
    reader->error->stack_hash = dk_fnv1a64(reader->error->stack_hash, text, strlen(text));
  if (!stack || stack->n == 0)
    return;
  struct frame *frame = &stack->frames[stack->n - 1];
  if (inside(reader, 0, "obj"))
    COPY(frame->object, text);
  else if (inside(reader, 0, "fn"))
    take_function(frame, text);
  else if (inside(reader, 0, "dir"))
    frame->standard = frame->standard || is_standard_folder(text);
  else if (inside(reader, 0, "file"))
    COPY(frame->file, text);
  else if (inside(reader, 0, "line"))
    frame->line = (unsigned)strtoul(text, NULL, 10);
}

/* "24 bytes in 1 blocks are definitely lost in loss record 3 of 7": drops the record, which means
 * nothing to a reader. */
static void
take_what(struct finding *error, const char *text)
{
  COPY(error->what, text);
  char *record = strstr(error->what, " in loss record");
  if (record)
    *record = '\0';
}

static void
end_in_error(struct reader *reader, const char *text)
{
  struct finding *error = reader->error;

  if (inside(reader, 0, "kind")) {
    COPY(error->kind, text);
  } else if (inside(reader, 0, "what")
             || (inside(reader, 0, "text") && inside(reader, 1, "xwhat"))) {
    take_what(error, text);
  } else if (inside(reader, 0, "leakedbytes")) {
    error->bytes = strtoull(text, NULL, 10);
  } else if (inside(reader, 0, "auxwhat")
             || (inside(reader, 0, "text") && inside(reader, 1, "xauxwhat"))) {
    struct stack *stack = next_stack(error);
    if (stack)
      COPY(stack->what, text);
  }
}

/* The kit writes its last word once.  If it comes twice, the plugin has got hold of the seal and
 * wrote the first: leaks between the two are not late. */
static void
take_last_word(struct reader *reader)
{
  struct findings *findings = reader->findings;

  for (size_t i = 0; i < findings->n; i++)
    findings->items[i].late = false;
  reader->over = true;
  findings->judged = true;
}

/* "0123456789abcdef cycle 2".  A plugin can print the same, but without the seal. */
static void
take_sealed(struct reader *reader, const char *said)
{
  const struct seals *seals = &reader->findings->seals;
  char *word;
  uint64_t seal = strtoull(said, &word, 16);

  if (word - said != KIT_SEAL_DIGITS || *word++ != ' ' || !reader->own)
    return;
  if (begins_with(word, KIT_MEMORY_JUDGED) && seals_match(seals, KIT_SEAL_MEMORY, seal)) {
    take_last_word(reader);
  } else if (begins_with(word, KIT_MEMORY_CYCLE)) {
    unsigned long cycle = strtoul(word + strlen(KIT_MEMORY_CYCLE), NULL, 10);
    if (cycle >= 1 && cycle <= KIT_MEMORY_CYCLES + 1
        && seals_match(seals, KIT_SEAL_CYCLE + (int)cycle - 1, seal))
      reader->cycle = (unsigned)cycle + 1;
  }
}

static void
take_message(struct reader *reader, const char *text)
{
  static const char begin[] = KIT_MEMORY_SAID;
  const char *said = strstr(text, begin);

  if (!said)
    return;
  said += strlen(begin);
  if (begins_with(said, KIT_MEMORY_MAPPED))
    reader->findings->mapped = true;
  else
    take_sealed(reader, said);
}

bool
findings_add_suppressed(struct suppressed **list, size_t *n, const struct suppressed *more)
{
  for (size_t i = 0; i < *n; i++) {
    struct suppressed *same = &(*list)[i];
    if (same->author == more->author && strcmp(same->name, more->name) == 0) {
      same->count += more->count;
      same->provider += more->provider;
      same->nobody += more->nobody;
      return true;
    }
  }
  struct suppressed *grown = reallocarray(*list, *n + 1, sizeof(*grown));
  if (!grown)
    return false;
  *list = grown;
  grown[(*n)++] = *more;
  return true;
}

static void
end_in_pair(struct reader *reader, const char *text)
{
  if (inside(reader, 0, "count"))
    reader->pair.count = (unsigned)strtoul(text, NULL, 10);
  else if (inside(reader, 0, "name"))
    COPY(reader->pair.name, text);
  else if (inside(reader, 0, "pair"))
    findings_add_suppressed(&reader->findings->suppressed, &reader->findings->n_suppressed,
                            &reader->pair);
}

static void
end_in_signal(struct reader *reader, const char *text)
{
  struct findings *findings = reader->findings;
  size_t used = strlen(findings->stopped);

  if (inside(reader, 0, "signame") || inside(reader, 0, "event"))
    snprintf(findings->stopped + used, sizeof(findings->stopped) - used, "%s%.60s",
             used ? ": " : "", text);
}

static void
end_element(void *data, const char *name)
{
  struct reader *reader = data;
  const char *text = reader->text;

  (void)name;
  reader->text[reader->length] = '\0';
  text += strspn(text, " \n");
  if (inside(reader, 1, "frame"))
    end_in_frame(reader, text);
  else if (is_within(reader, "fatal_signal"))
    end_in_signal(reader, text);
  else if (reader->error)
    end_in_error(reader, text);
  else if (inside(reader, 0, "text") && inside(reader, 1, "clientmsg"))
    take_message(reader, text);
  else if (is_within(reader, "suppcounts"))
    end_in_pair(reader, text);
  if (inside(reader, 0, "stack")) {
    reader->stack = NULL;
  } else if (inside(reader, 0, "error")) {
    if (reader->error)
      end_finding(reader->findings, reader->error);
    reader->error = NULL;
  }
  if (reader->depth == 1 && reader->own)
    reader->findings->whole = true;
  reader->depth--;
  reader->length = 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

bool
findings_parse(struct findings *findings, const char *xml, size_t size, bool own)
{
  struct reader *reader = calloc(1, sizeof(*reader));
  XML_Parser parser = XML_ParserCreate(NULL);
  bool well = reader && parser;

  if (well) {
    *reader = (struct reader){.findings = findings, .own = own};
    XML_SetUserData(parser, reader);
    XML_SetElementHandler(parser, begin_element, end_element);
    XML_SetCharacterDataHandler(parser, take_text);
    /* Does not end the document: a file that is cut off is no error. */
    for (size_t at = 0; well && at < size; at += PIECE) {
      size_t n = size - at < PIECE ? size - at : PIECE;
      well = XML_Parse(parser, xml + at, (int)n, 0) == XML_STATUS_OK;
    }
    if (reader->error) {
      reader->error->cut = true;
      end_finding(findings, reader->error);
    }
  }
  if (parser)
    XML_ParserFree(parser);
  free(reader);
  return well;
}

/* Its contents, or the beginning of them; false: it does not exist, or is no file. */
static bool
read_xml(int folder, const char *name, struct dk_text *ret)
{
  bool read = file_read(folder, name, MOST_XML, ret) == 0 || errno == EFBIG;

  return read && ret->length > 0;
}

void
findings_add_file(struct findings *findings, int folder, const char *name)
{
  struct dk_text xml = DK_TEXT_EMPTY;

  if (read_xml(folder, name, &xml))
    findings_parse(findings, xml.bytes, xml.length, false);
  dk_text_done(&xml);
}

static void
add_own(struct findings *findings, int folder, const char *name)
{
  struct dk_text xml = DK_TEXT_EMPTY;

  if (!read_xml(folder, name, &xml)) {
    dk_text_done(&xml);
    return;
  }
  findings->there = true;
  if (!findings_parse(findings, xml.bytes, xml.length, true))
    findings->whole = false;
  findings->xml = xml.bytes;
  findings->xml_size = xml.length < FINDINGS_XML ? xml.length : FINDINGS_XML;
}

/* Opens the folder again, so that the caller's descriptor keeps its position; NULL with errno. */
static DIR *
list_folder(int folder)
{
  int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

  if (fd >= 0 && !dir)
    close(fd);
  return dir;
}

struct findings *
findings_read(const struct parties *parties, const struct seals *seals, int folder, pid_t child,
              const pid_t zygotes[2])
{
  struct findings *findings = calloc(1, sizeof(*findings));
  DIR *dir = list_folder(folder);
  struct dirent *entry;

  if (findings) {
    findings->parties = *parties;
    findings->seals = *seals;
  }
  while (findings && dir && (entry = readdir(dir)) != NULL) {
    char *end;
    long pid = strtol(entry->d_name, &end, 10);
    if (strcmp(end, ".xml") != 0 || pid == zygotes[0] || pid == zygotes[1])
      continue;
    if (pid == (long)child)
      add_own(findings, folder, entry->d_name);
    else
      findings_add_file(findings, folder, entry->d_name);
    remove_entry(folder, entry->d_name, NULL);
  }
  if (dir)
    closedir(dir);
  return findings;
}

void
findings_free(struct findings *findings)
{
  if (!findings)
    return;
  for (size_t i = 0; i < findings->n; i++)
    free_frames(&findings->items[i]);
  free(findings->stopped_at.frames);
  free(findings->items);
  free(findings->suppressed);
  free(findings->xml);
  free(findings);
}
