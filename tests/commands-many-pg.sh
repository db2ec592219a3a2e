#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/commands-many.sh, on PostgreSQL.

top_srcdir=${top_srcdir:-$(dirname "$0")/..}
exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$top_srcdir/tests/commands-pg.sh" \
  commands-many.sh
