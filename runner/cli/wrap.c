/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a terminal's width: see wrap.h.  A stream owns its descriptor and the line that has not
 * ended yet. */
#include "runner/cli/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/utf8.h"

enum { USUAL_WIDTH = 80, LEAST_WIDTH = 20 };

unsigned
wrap_width(int fd)
{
  struct winsize size = {0};

  if (!isatty(fd))
    return 0;
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return USUAL_WIDTH;
  return size.ws_col < LEAST_WIDTH ? LEAST_WIDTH : size.ws_col;
}

/* The bytes of one character, or of a sequence that changes the colour; `ret_columns`: 1 or 0. */
static size_t
take_character(const char *at, size_t size, unsigned *ret_columns)
{
  uint32_t character;
  size_t n = dk_utf8_next(at, size, &character);

  *ret_columns = 1;
  if (at[0] == '\033' && size > 1 && at[1] == '[') {
    *ret_columns = 0;
    for (n = 2; n < size && (at[n] < '@' || at[n] > '~'); n++)
      continue;
    return n < size ? n + 1 : size;
  }
  return n > 0 ? n : 1;
}

/* The bytes of the word, or of the blanks, that `at` begins with. */
static size_t
take_run(const char *at, size_t size, unsigned *ret_columns)
{
  bool blank = *at == ' ';
  size_t n = 0;

  *ret_columns = 0;
  while (n < size && (at[n] == ' ') == blank) {
    unsigned columns;
    n += take_character(at + n, size - n, &columns);
    *ret_columns += columns;
  }
  return n;
}

/* Whether each word fits behind the indent without being broken, if it fits in a line at all. */
static bool
fits_behind(const char *words, size_t size, unsigned indent, unsigned width)
{
  for (size_t i = 0; i < size;) {
    unsigned columns;
    bool blank = words[i] == ' ';
    i += take_run(words + i, size - i, &columns);
    if (!blank && columns <= width && indent + columns > width)
      return false;
  }
  return true;
}

/* For a line whose label leaves too little room for some word. */
static unsigned
small_indent(const char *line, size_t size, unsigned width)
{
  unsigned indent = 4;

  while (indent > 0 && !fits_behind(line, size, indent, width))
    indent -= 2;
  return indent;
}

/* Where the rest of a line begins. */
static unsigned
indent_of(const char *line, size_t size, unsigned width)
{
  unsigned indent = 0;
  unsigned column = 0;
  bool is_below = false, is_too_deep = false;

  for (size_t i = 0; i < size;) {
    unsigned columns;
    bool blank = line[i] == ' ';
    size_t n = take_run(line + i, size - i, &columns);
    column += columns;
    if (column > width * 2 / 3)
      break;
    bool is_gap = blank && (i == 0 || (columns > 1 && !strchr(".!?", line[i - 1])));
    i += n;
    if (!is_gap || i >= size)
      continue;
    is_too_deep = !fits_behind(line + i, size - i, column, width);
    is_below = is_below || !is_too_deep;
    indent = is_too_deep ? indent : column;
  }
  return is_too_deep && !is_below ? small_indent(line, size, width) : indent;
}

static void
wrap_line(struct dk_text *out, const char *line, size_t size, unsigned width)
{
  const unsigned indent = indent_of(line, size, width);
  unsigned column = 0;

  for (size_t i = 0; i < size;) {
    unsigned blanks = 0, columns = 0;
    size_t n_blanks = line[i] == ' ' ? take_run(line + i, size - i, &blanks) : 0;
    size_t n = i + n_blanks < size ? take_run(line + i + n_blanks, size - i - n_blanks, &columns)
                                   : 0;
    if (column + blanks > indent && column > 0 && column + blanks + columns > width) {
      dk_text_printf(out, "\n%*s", (int)indent, "");
      column = indent;
    } else {
      dk_text_add(out, line + i, n_blanks);
      column += blanks;
    }
    dk_text_add(out, line + i + n_blanks, n);
    column += columns;
    i += n_blanks + n;
  }
}

void
wrap_text(struct dk_text *out, const char *text, size_t size, unsigned width)
{
  if (width == 0) {
    dk_text_add(out, text, size);
    return;
  }
  for (size_t i = 0; i < size;) {
    const char *end = memchr(text + i, '\n', size - i);
    size_t n = end ? (size_t)(end - text) - i : size - i;
    wrap_line(out, text + i, n, width);
    if (end)
      dk_text_add(out, "\n", 1);
    i += n + (end ? 1 : 0);
  }
}

/* ---- a stream -------------------------------------------------------------------------------- */

struct wrapping {
  int fd;
  unsigned width;
  struct dk_text pending; /* a line whose end has not been written */
};

static bool
write_all(int fd, const char *bytes, size_t size)
{
  while (size > 0) {
    ssize_t n = write(fd, bytes, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return false;
    bytes += n;
    size -= (size_t)n;
  }
  return true;
}

/* Writes what is pending. */
static bool
write_pending(struct wrapping *w)
{
  struct dk_text lines = DK_TEXT_EMPTY;

  wrap_text(&lines, dk_text_str(&w->pending), w->pending.length, w->width);
  if (dk_text_failed(&lines) || dk_text_failed(&w->pending))
    errno = ENOMEM;
  bool done = !dk_text_failed(&lines) && !dk_text_failed(&w->pending)
              && write_all(w->fd, dk_text_str(&lines), lines.length);
  dk_text_done(&lines);
  dk_text_reset(&w->pending);
  return done;
}

static ssize_t
take_bytes(void *cookie, const char *bytes, size_t size)
{
  struct wrapping *w = cookie;
  const char *end = memrchr(bytes, '\n', size);
  size_t n = end ? (size_t)(end - bytes) + 1 : 0;

  dk_text_add(&w->pending, bytes, n);
  if (n > 0 && !write_pending(w))
    return 0;
  dk_text_add(&w->pending, bytes + n, size - n);
  if (dk_text_failed(&w->pending)) {
    errno = ENOMEM;
    return 0;
  }
  return (ssize_t)size;
}

static int
close_stream(void *cookie)
{
  struct wrapping *w = cookie;
  bool done = write_pending(w);

  done = close(w->fd) == 0 && done;
  dk_text_done(&w->pending);
  free(w);
  return done ? 0 : -1;
}

FILE *
wrap_stream(int fd, unsigned width)
{
  struct wrapping *w = malloc(sizeof(*w));

  if (!w)
    return NULL;
  *w = (struct wrapping){.fd = fd, .width = width, .pending = DK_TEXT_EMPTY};
  FILE *file = fopencookie(w, "w", (cookie_io_functions_t){.write = take_bytes,
                                                          .close = close_stream});
  if (!file)
    free(w);
  return file;
}
