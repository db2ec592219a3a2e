#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The profile `runtime`, with all of its negative controls.

ALL_CONTROLS=1
export ALL_CONTROLS
exec "${SHELL:-sh}" "${top_srcdir:-$(dirname "$0")/..}/tests/runner-runtime.sh"
