# SPDX-License-Identifier: Apache-2.0
# The reference plugins.  Each has a local.mk of its own beside its source, included here under its
# condition (WITH_SQLITE, WITH_PG) when its milestone brings it.
