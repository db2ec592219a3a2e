/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit instances`: lists the selected instances one by one, and keeps only the last id. */
#include <inttypes.h>

#include "runner/cli/message.h"
#include "runner/cli/printer.h"
#include "runner/cli/status-words.h"
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/show.h"
#include "runner/operate/targets.h"

enum { NAME_WIDTH = 20 };

struct listing {
  struct host host;
  struct printer printer;
  struct dk_text last;   /* the id of the last that was printed */
  uint64_t limit, n;     /* 0: no limit */
  bool more;             /* there are more than the limit */
};

/* The id comes last, since it can have any length. */
static void
show_row(struct dk_text *out, const struct dk_instance_info *info)
{
  struct dk_text name = DK_TEXT_EMPTY;

  dk_text_printf(out, "%-11s  ", status_words(info->status));
  show_time(out, info->created_at);
  show_text(&name, info->name);
  dk_text_puts(&name, info->version.ptr ? " " : "");
  show_text(&name, info->version);
  dk_text_puts(out, "  ");
  dk_text_add_text(out, &name);
  dk_text_printf(out, "%*s  ", name.length < NAME_WIDTH ? NAME_WIDTH - (int)name.length : 0, "");
  show_text(out, info->instance);
  dk_text_puts(out, "\n");
  dk_text_done(&name);
}

static int32_t
take_instance(void *context, const struct dk_instance_info *info)
{
  struct listing *l = context;
  struct dk_text row = DK_TEXT_EMPTY;

  if (l->limit > 0 && l->n == l->limit) {
    l->more = true;
    return 1;
  }
  if (l->n++ == 0)
    printer_line(&l->printer, "%-11s  %-24s  %-20s  %s", "STATUS", "CREATED", "NAME", "ID");
  show_row(&row, info);
  printer_text(&l->printer, &row);
  if (!printer_is_text(&l->printer))
    printer_item(&l->printer, show_json_instance(info));
  dk_text_reset(&l->last);
  dk_text_add(&l->last, info->instance.ptr, info->instance.len);
  return printer_broken(&l->printer) || host_interrupted(&l->host);
}

static void
print_end_of_list(struct listing *l, int code)
{
  struct dk_text line = DK_TEXT_EMPTY;
  dk_str last = {dk_text_str(&l->last), l->last.length};
  json_t *rest = json_object();

  dk_text_printf(&line, "%" PRIu64 " instance%s%s", l->n, l->n == 1 ? "" : "s",
                 code != EXIT_PASSED ? ", incomplete" : "");
  if (dk_text_failed(&l->last))
    dk_text_fail(&line);
  if (l->more) {
    dk_text_puts(&line, "; there are more: --after ");
    show_text(&line, last);
  }
  dk_text_puts(&line, "\n");
  printer_text(&l->printer, &line);
  show_json_number(rest, "count", l->n);
  show_json_text(rest, "next", l->more ? last : (dk_str){NULL, 0});
  show_json_bool(rest, "complete", code == EXIT_PASSED);
  printer_end(&l->printer, rest);
}

static int
list(struct listing *l)
{
  const struct operating *operating = &l->host.options->operating;
  const struct dk_instance_filter filter = targets_filter(&operating->chosen);

  l->limit = operating->limit;
  dk_status status = dk_client_list(l->host.client, &filter, dk_str_of(operating->after),
                                    l->limit > 0 ? l->limit + 1 : 0, !printer_is_text(&l->printer),
                                    take_instance, l);
  if (status == DK_OK || l->more)
    return EXIT_PASSED;
  if (status == DK_CALL_CANCELLED && printer_broken(&l->printer))
    return EXIT_INCOMPLETE;
  return host_failed(&l->host, NULL, status);
}

int
operate_instances(const struct options *options)
{
  struct listing l = {.printer = printer_of(options, "durakit.instances/1", "instances"),
                      .last = DK_TEXT_EMPTY};
  int code = host_load(&l.host, options, "instances");

  if (code == EXIT_PASSED)
    code = host_open(&l.host, DK_OPEN_READ_ONLY);
  if (code == EXIT_PASSED) {
    code = list(&l);
    print_end_of_list(&l, code);
  }
  host_close(&l.host);
  dk_text_done(&l.last);
  return printer_done(&l.printer, code);
}
