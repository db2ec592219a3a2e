#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A primary that freezes, its standby that is promoted, and the old primary that thaws, for one
# handle that stays open all the time: providers/pg/test-takeover.

TEST_STANDBY=test-takeover
. "${top_srcdir:-$(dirname "$0")/..}/tests/pg-standby.sh"
