#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/operating.md, what it shows of SQLite: typed from its top; and what it promises of backups is
# tried on a store that is at work.  The part of PostgreSQL is in operating-pg.sh.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -f "${SQLITE_PLUGIN:-}" ] || skip_all 'the sqlite plugin was left out'
command -v sqlite3 > /dev/null || skip_all 'the shell of SQLite is not installed (Debian: sqlite3)'
scratch
. "$top_srcdir/tests/typed.sh"
page=$top_srcdir/docs/operating.md
cd "$scratch" || exit 99
also() { sed -e 's|/[^ ]*/later\.db|FOLDER/later.db|'; }

# ---- what is shown -------------------------------------------------------------------------------

follow_document "$page" '|Operating a store|Which plugin|SQLite|'
[ "$followed" -ge 30 ]
ok $? 'the page shows commands'
cat step.*.out > said
like "$(cat said)" '^completed|1$' 'instances are counted by status'
like "$(cat said)" '^1|4|{"v":1,"kind":"completed".*Hello, world!' 'the history is text'
like "$(cat said)" '^ok$' 'the copy is sound'
is "$(stat -c %a store store/orders.db | paste -sd ' ' -)" '2770 660' 'modes are as they were set'
is "$(sqlite3 -readonly aside/orders.db 'SELECT count(*) FROM meta')" 1 \
  'the old store was put aside'
[ "$(sqlite3 -readonly aside/orders.db 'SELECT store FROM meta')" != \
  "$(sqlite3 -readonly store/orders.db 'SELECT store FROM meta')" ]
ok $? 'the restored one has another number'
is "$(tail -n 1 "$(grep -l 'hi/hello sqlite store=store' step.*.text | tail -n 1 |
      sed 's/text$/out/')")" 'hello-world is completed: Hello, world!' 'and continues'

# The parts are all: what is below other headings shows no command.
follow_document "$page" '|Back to an older state|'
is $followed 0 'no command is shown where none is typed'
is "$(grep '^## ' "$page" | paste -sd '|' -)" \
  '## Which plugin|## SQLite|## PostgreSQL|## Back to an older state' 'and there is no other part'

# A page that lies is found, by each of its steps.
mkdir lies
cd lies || exit 99
printf '%s\n' '# Lies' '    false' '' 'Text.' '' '<!-- exit: 3 -->' '    (exit 3)' '' \
  '<!-- output: echo one -->' '```' 'two' '```' '<!-- sql: sqlite3 lies.db -->' '```sql' \
  'SELECT * FROM nothing' '```' '```' 'who reads this?' '```' '## Not followed' '    false' \
  > lies.md
(tap_count=0; follow_document lies.md '|Lies|') | grep -v '^#' > found
is "$(sed 's/ - .*//' found | paste -sd ',' -)" \
  'not ok 1,ok 2,not ok 3,not ok 4,not ok 5' 'a page that lies is found, step by step'
cd .. || exit 99

# ---- restored by root, a store of others ---------------------------------------------------------

# works_as USER: one of the store's group, without a lock file that another user has made before.
works_as() {
  (cd given && setpriv --reuid="$1" --regid=54322 --clear-groups \
    hi/hello sqlite store=store/orders.db "u$1" 2>&1 | tail -n 1)
}
whose() { stat -c '%u:%g %a' given/store/orders.db*; }
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv > /dev/null ||
     ! setpriv --reuid=54321 --regid=54322 --clear-groups ls "$top_builddir/.libs" > libraries; then
  skip 'restored by root: the store of a group is theirs' 'this process cannot become another user'
else
  mkdir given given/store given/backup
  ln -s ../hi given/hi
  chmod 711 . given
  chown 54321:54322 given/store
  chmod 2770 given/store
  is "$(works_as 54321)" 'hello-u54321 is completed: Hello, u54321!' 'the store of a group'
  chmod 660 given/store/orders.db*
  whose > before
  is "$(works_as 54323)" 'hello-u54323 is completed: Hello, u54323!' 'another of them works on it'
  (umask 077; sqlite3 given/store/orders.db ".backup 'given/backup/rested.db'")
  sed -e '/^## PostgreSQL/,$d' "$page" | sed -n '/^### Restoring/,/^### When/s/^    //p' > restore
  [ "$(wc -l < restore)" -ge 5 ]
  ok $? 'the page restores'
  while IFS= read -r command; do
    (cd given && umask 027 && eval "$command") > out 2>&1 < /dev/null
    is $? 0 "root: $command" || diag "$(cat out)"
  done < restore
  is "$(whose | sort -u)" "$(sort -u before)" 'it is whose it was before: owner, group and mode'
  is "$(works_as 54321)" 'hello-u54321 is completed: Hello, u54321!' 'the owner works on it'
  is "$(works_as 54324)" 'hello-u54324 is completed: Hello, u54324!' 'and another of the group'
fi

# ---- a backup of a store that is at work ---------------------------------------------------------

examples=$top_srcdir/examples/runtime
# shellcheck disable=SC2046,SC2086
run_ok 'a program that works on a store' ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror \
  ${SANITIZER_CFLAGS-} -pthread '-DPLUGIN_DIR="/nowhere"' -I"$top_srcdir" \
  $(pkg-config --cflags durakit) -o load "$top_srcdir/tests/operating-load.c" \
  "$examples/example.c" $(libraries) || done_testing

mkdir live live/store live/backup
mkfifo live/end
# works NAME BYTES: begins to, until the descriptor 9 is closed; what has ended is in live/done.
works() {
  : > live/done
  ./load sqlite store=live/store/orders.db "$1" "$2" < live/end >> live/done 2> live/err &
  worker=$!
  exec 9> live/end
}
# until_done N: or it has ended; at most two minutes.
until_done() {
  tries=0
  while [ "$(wc -l < live/done)" -lt "$1" ] && kill -0 $worker && [ $tries -lt 1200 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  [ "$(wc -l < live/done)" -ge "$1" ]
}
# missing FILE: of those of live/before, what the store does not have as completed; or why.
missing() {
  sqlite3 "$1" 'SELECT instance FROM instance WHERE status = 2' 2>&1 | sort > has
  sort live/before | comm -23 - has
}

works worked 20000
until_done 50
ok $? 'it works' || diag "$(cat live/err)"
command=$(grep -m 1 "^    sqlite3 .*VACUUM INTO 'backup" "$page")
cp live/done live/before
(cd live && eval "$command") > out 2>&1
is $? 0 'the command of the page, beside it' || diag "$(cat out)"
kill -0 $worker
ok $? 'it still works'
cp live/store/orders.db wrong.db
cp live/done live/after
is "$(missing live/backup/orders.db)" '' 'the backup has all that was acknowledged before'
is "$(sqlite3 live/backup/orders.db 'PRAGMA integrity_check')" ok 'and is whole'
cp live/after live/before
[ -n "$(missing wrong.db)" ]
ok $? 'a cp of the database alone has not'

# After a kill the log holds commits: they are in a copy of all files, and not in one of the first.
until_done $(($(wc -l < live/done) + 20))
kill -9 $worker
wait $worker 2> /dev/null
exec 9>&-
cp live/done live/before
[ -s live/store/orders.db-wal ]
ok $? 'a process that was killed leaves a log'
command=$(grep -m 1 '^    cp -p store' "$page")
mkdir live/cold
(cd live && eval "$command") > out 2>&1
is $? 0 'the files are copied as the page says'
cp live/store/orders.db wrong.db
is "$(missing live/cold/orders.db)" '' 'such a copy has all that was acknowledged'
[ -n "$(missing wrong.db)" ]
ok $? 'and the database alone has not'

done_testing
