/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that loses its power: see test-disk.h.  Owns the images of the two files, and what was
 * written to them since they were synced. */
#include "providers/sqlite/test-disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "providers/sqlite/test-files.h"

struct pending {
  struct change change; /* its bytes are a copy */
  struct pending *next;
};

static struct image {
  const char *ending;
  char path[700];
  char *bytes;
  size_t size;
  struct pending *first, **last;
} images[] = {{.ending = ""}, {.ending = "-wal"}};

enum { IMAGES = 2 };

void
disk_begin(const char *path)
{
  for (int i = 0; i < IMAGES; i++) {
    struct image *image = &images[i];
    snprintf(image->path, sizeof image->path, "%s%s", path, image->ending);
    image->bytes = bytes_of(image->path, &image->size);
    image->first = NULL;
    image->last = &image->first;
  }
}

static struct image *
image_of(int fd)
{
  struct stat its, there;

  if (fstat(fd, &its) < 0)
    BAIL_OUT("a descriptor that is none");
  for (int i = 0; i < IMAGES; i++)
    if (stat(images[i].path, &there) == 0 && there.st_ino == its.st_ino)
      return &images[i];
  return NULL;
}

static void
resize(struct image *image, size_t size)
{
  char *bytes = realloc(image->bytes, size + 1);

  if (!bytes)
    BAIL_OUT("no memory");
  if (size > image->size)
    memset(bytes + image->size, 0, size - image->size);
  image->bytes = bytes;
  image->size = size;
}

static void
apply(struct image *image, const struct change *change)
{
  size_t offset = (size_t)change->offset;

  if (change->kind == CALL_CUT) {
    resize(image, offset);
    return;
  }
  if (image->size < offset + change->size)
    resize(image, offset + change->size);
  memcpy(image->bytes + offset, change->bytes, change->size);
}

static void
settle(struct image *image, bool is_lost)
{
  while (image->first) {
    struct pending *pending = image->first;
    image->first = pending->next;
    if (!is_lost)
      apply(image, &pending->change);
    free((void *)pending->change.bytes);
    free(pending);
  }
  image->last = &image->first;
}

static void
put_off(struct image *image, const struct change *change)
{
  struct pending *pending = malloc(sizeof *pending);
  void *bytes = malloc(change->size + 1);

  if (!pending || !bytes)
    BAIL_OUT("no memory");
  if (change->size > 0)
    memcpy(bytes, change->bytes, change->size);
  *pending = (struct pending){.change = *change};
  pending->change.bytes = bytes;
  *image->last = pending;
  image->last = &pending->next;
}

void
disk_watch(const struct change *change)
{
  struct image *image = image_of(change->fd);

  if (!image)
    return; /* -shm needs no disk */
  if (change->kind == CALL_SYNC)
    settle(image, change->has_failed);
  else
    put_off(image, change);
}

void
disk_cut(const char *to)
{
  char path[700];

  for (int i = 0; i < IMAGES; i++) {
    snprintf(path, sizeof path, "%s%s", to, images[i].ending);
    make_file(path, images[i].bytes, images[i].size);
  }
  snprintf(path, sizeof path, "%s-shm", to);
  remove(path);
}

void
disk_end(void)
{
  for (int i = 0; i < IMAGES; i++) {
    settle(&images[i], true);
    free(images[i].bytes);
    images[i].bytes = NULL;
    images[i].size = 0;
  }
}
