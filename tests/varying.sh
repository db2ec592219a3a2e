# SPDX-License-Identifier: Apache-2.0
# For the tests that show what the examples of the runtime print.  Source it.

# What differs from run to run: times, processes, and how far something has come when the rest of it
# is cancelled.
without_varying() {
  sed -e 's/"\(time\|fire_at\)":[0-9]*/"\1":T/g' \
      -e 's/after [0-9]* ms/after T ms/' -e 's/ [0-9]* ms after/ T ms after/' \
      -e 's/its \(process\|program\) [0-9]* /its \1 PID /' \
      -e 's/for [0-9]* from supplier [0-9]*/for N from supplier N/' \
      -e 's/refusals [0-9]* + dropped [0-9]*/refusals N + dropped N/' \
      -e 's/^ *[0-9]* \(ran\|were\|never\) /N \1 /'
}
