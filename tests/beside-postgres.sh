#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/with-postgres: what its command finds, what becomes of its exit code, and that neither a
# process nor a file of the server is left, however it ends.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
with=$top_srcdir/tests/with-postgres
chmod 711 "$scratch" # the server may belong to another user
TMPDIR=$scratch
export TMPDIR
unset DURAKIT_PG WITH_POSTGRES_DURABLE WITH_POSTGRES_VERSION
"$with" -q --tap true > "$scratch/probe" 2>&1 || { cat "$scratch/probe"; exit 99; }
grep -q SKIP "$scratch/probe" && skip_all 'postgres is not installed (Debian: postgresql)'

# Servers that were started here.
servers() { pgrep -f "postgres.* -D $scratch/durakit-pg" || :; }
folders() { find "$scratch" -maxdepth 1 -name 'durakit-pg.*'; }

# eventually COMMAND...: at the latest after a minute.
eventually() {
  tries=600
  until "$@"; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return 1
    sleep 0.1
  done
}
nothing_is_left() { [ -z "$(servers)" ] && [ -z "$(folders)" ]; }
gone() { ! kill -0 "$1" 2> /dev/null; }

# ---- what the command finds ----------------------------------------------------------------------

cat > "$scratch/look" <<'END'
psql -Atc "SELECT current_user, rolsuper, rolcreatedb, rolcreaterole, rolbypassrls FROM pg_roles
  WHERE rolname = current_user"
psql -qAtc 'CREATE SCHEMA a; CREATE TABLE a.b(); SELECT 1'
psql -Atc 'CREATE TABLE public.b()'
psql -Atc "SELECT current_setting('fsync'), current_setting('listen_addresses') = '',
  current_setting('work_mem'), current_setting('server_encoding')"
psql -d "$DURAKIT_PG" -Atc 'SELECT current_user'
psql -d "$DURAKIT_PG_SUPER" -Atc 'SELECT rolsuper FROM pg_roles WHERE rolname = current_user'
psql -d "$DURAKIT_PG_READER" -Atc 'SELECT count(*) FROM a.b'
ps -o user= -p "$(sed -n 1p "$(dirname "$DURAKIT_PG_LOG")/data/postmaster.pid")"
ls -ld "$(dirname "$DURAKIT_PG_LOG")" | cut -c 1-10
[ -r "$DURAKIT_PG_LOG" ] && echo log
exit 7
END
"$with" -c work_mem=5MB sh "$scratch/look" > "$scratch/out" 2> "$scratch/err"
is $? 7 'the exit code is that of the command'
is "$(sed -n 1p "$scratch/out")" 'durakit|f|f|f|f' 'the role is a plain one'
is "$(sed -n 2p "$scratch/out")" 1 'it may make a schema' || diag "$(cat "$scratch/out")"
like "$(cat "$scratch/err")" 'permission denied for schema public' 'but nothing in another'
is "$(sed -n 3p "$scratch/out")" 'off|t|5MB|UTF8' 'settings: fast, no address, and those of -c'
is "$(sed -n 4p "$scratch/out")" durakit 'DURAKIT_PG'
is "$(sed -n 5p "$scratch/out")" t 'DURAKIT_PG_SUPER is a superuser'
like "$(cat "$scratch/err")" 'permission denied for schema a' 'DURAKIT_PG_READER may do nothing'
[ "$(sed -n 6p "$scratch/out")" != root ]
ok $? 'the server is not root'
is "$(sed -n 7p "$scratch/out")" 'drwx------' 'its folder is for its owner only'
is "$(sed -n 8p "$scratch/out")" log 'the log can be read'
like "$(cat "$scratch/err")" 'fsync=off' 'what is unsafe is reported'
nothing_is_left
ok $? 'afterwards nothing is left' || diag "$(servers)" "$(folders)"

WITH_POSTGRES_DURABLE=1 "$with" -q psql -Atc \
  "SELECT current_setting('fsync'), current_setting('full_page_writes')" > "$scratch/out" \
  2> "$scratch/err"
is "$(cat "$scratch/out" "$scratch/err")" 'on|on' \
  'WITH_POSTGRES_DURABLE=1: it syncs, and -q is quiet'
for off in 0 no ''; do
  is "$(WITH_POSTGRES_DURABLE=$off "$with" -q psql -Atc "SELECT current_setting('fsync')" 2>&1)" \
    off "WITH_POSTGRES_DURABLE=$off: it does not sync"
done
is "$(echo text | "$with" -q cat)" text 'the command has the standard input'
is "$(DURAKIT_PG='host=nowhere' "$with" sh -c 'echo "$DURAKIT_PG${PGHOST-}"' 2>&1)" 'host=nowhere' \
  'with DURAKIT_PG nothing is started'

# ---- durakit as README has it: in a tree that was built, whatever is installed -------------------

tree=$scratch/tree
mkdir -p "$tree/tests" "$tree/bin"
cp "$with" "$tree/tests/"
# A PATH without any durakit of the machine's.
for name in bash sh env dirname basename id sed; do
  ln -s "$(command -v $name)" "$tree/bin/$name"
done
in_tree() {
  PATH=$tree/bin DURAKIT_PG='host=nowhere' "$tree/tests/with-postgres" "$@"
}
in_tree durakit certify > "$scratch/out" 2>&1
is $? 127 'durakit is not built'
like "$(cat "$scratch/out")" 'make it: ./bootstrap && make -C build' 'and how to make it'
mkdir -p "$tree/build/runner"
printf '#!/bin/sh\necho "built $*"\n' > "$tree/build/runner/durakit"
chmod +x "$tree/build/runner/durakit"
is "$(in_tree durakit certify pg '{kit}' 2>&1)" \
  'built certify pg --set-env conninfo=DURAKIT_PG' 'the one of ./build'
printf '#!/bin/sh\necho installed\n' > "$tree/bin/durakit"
chmod +x "$tree/bin/durakit"
is "$(in_tree durakit 2>&1)" installed 'one that is installed comes first, as it was'

# ---- which version -------------------------------------------------------------------------------

# One of another version comes first in PATH: making its server fails, and the reason is reported.
mkdir "$scratch/old"
for name in initdb pg_ctl psql; do
  printf '#!/bin/sh\necho "the old %s"\nexit 1\n' $name > "$scratch/old/$name"
done
printf '#!/bin/sh\necho "postgres (PostgreSQL) 7.4.30 (Debian 1)"\n' > "$scratch/old/postgres"
chmod +x "$scratch"/old/*
path=$PATH
number=$("$with" -q psql -Atc 'SHOW server_version' | sed 's/ .*//')
major=${number%%[!0-9]*}
ask_version() { "$with" "$@" sh -c 'PATH=$1; psql -Atc "SHOW server_version"' sh "$path" 2>&1; }
PATH=$scratch/old:$PATH
like "$(ask_version -q)" 'the old initdb' 'what is first in PATH is taken'
like "$(ask_version -q -v "$major")" "^$major" "-v $major: that version is found behind it"
like "$(ask_version -q -v "$number")" "^$number" "-v $number: to the minor one"
WITH_POSTGRES_VERSION=$major
export WITH_POSTGRES_VERSION
like "$(ask_version -q)" "^$major" 'WITH_POSTGRES_VERSION says the same'
like "$(ask_version -q -v 7.4)" 'the old initdb' '-v comes before it'
unset WITH_POSTGRES_VERSION
for version in 7.3 7.40 74 7.4.3 "${major}0" '*'; do
  "$with" -q --tap -v "$version" true > "$scratch/out" 2>&1
  is $? 4 "-v $version: refused"
  like "$(cat "$scratch/out")" "there is no PostgreSQL .*; found: 7.4.30 in $scratch/old, " \
    "-v $version: the existing ones are named"
done
# Another psql comes first in PATH, beside a durakit: the server's own psql is run, and the durakit
# of PATH.
mkdir "$scratch/foreign"
for name in psql pg_dump durakit; do
  printf '#!/bin/sh\necho "the foreign %s"\n' $name > "$scratch/foreign/$name"
done
chmod +x "$scratch"/foreign/*
PATH=$scratch/foreign:$path
is "$("$with" -q psql -Atc 'SELECT 1' 2>&1)" 1 "the server's own psql comes before that of PATH"
like "$("$with" -q pg_dump --version 2>&1)" " $major" 'and so do its other programs'
is "$("$with" -q durakit 2>&1)" 'the foreign durakit' 'durakit is the one of PATH, all the same'
DURAKIT_STORE=absent
export DURAKIT_STORE
like "$("$with" -q sh -c 'eval "$DURAKIT_PG_DENY"; psql -Atc "SELECT 2"' 2>&1)" \
  'schema "absent" does not exist' 'what the kit is given uses it, too'
unset DURAKIT_STORE

# Programs without a psql beside them, behind links in PATH: any psql will do.
programs=$("$with" -q sh -c 'dirname "$(readlink -f "$(command -v initdb)")"')
mkdir "$scratch/bare" "$scratch/links" "$scratch/other"
cp -r "$programs/." "$scratch/bare"
rm -f "$scratch/bare/psql"
ln -s "$scratch"/bare/initdb "$scratch/links/"
ln -s "$programs/psql" "$scratch/other/"
PATH=$scratch/links:$scratch/other:$path
like "$("$with" sh -c 'readlink -f "$(command -v pg_ctl)"; readlink -f "$(command -v psql)"' \
  2>&1 | tr '\n' ' ')" "$scratch/bare/pg_ctl $programs/psql" \
  'without a psql of its own the server has that of PATH'

PATH=$path
DURAKIT_PG=host=nowhere "$with" -v "$major" true > "$scratch/out" 2>&1
is $? 4 'a version of the server of DURAKIT_PG cannot be chosen'
is "$(DURAKIT_PG=host=nowhere WITH_POSTGRES_VERSION=7.4 "$with" echo used 2>&1)" used \
  'where WITH_POSTGRES_VERSION does no harm'
nothing_is_left
ok $? 'nothing is left of those' || diag "$(servers)" "$(folders)"

# ---- crash, start, pause, resume -----------------------------------------------------------------

cat > "$scratch/hurt" <<'END'
psql -qAtc 'CREATE SCHEMA a; CREATE TABLE a.b AS SELECT 7 AS seven'
psql -qAtc 'SELECT pg_sleep(60)' 2> "$1/asleep" &
sh -c "$DURAKIT_PG_CRASH" && echo crashed
wait $! || echo lost
psql -qAtc 'SELECT 1' 2>&1 | grep -c 'No such file or directory'
sh -c "$DURAKIT_PG_CRASH" && echo 'crashed is crashed'
sh -c "$DURAKIT_PG_START" && psql -qAtc 'SELECT seven FROM a.b'
sh -c "$DURAKIT_PG_START" && echo 'started is started'
sh -c "$DURAKIT_PG_PAUSE"
psql -qAtc "SELECT 'answered'" > "$1/paused" &
ps -o stat= --ppid "$(sed -n 1p "$PGHOST/data/postmaster.pid")" | grep -vc '^T'
[ -s "$1/paused" ] || echo silent
sh -c "$DURAKIT_PG_RESUME"
wait
cat "$1/paused"
sh -c "$DURAKIT_PG_PAUSE"
END
"$with" -q sh "$scratch/hurt" "$scratch" > "$scratch/out" 2> "$scratch/err"
is "$(tr '\n' ',' < "$scratch/out")" \
  'crashed,lost,1,crashed is crashed,7,started is started,0,silent,answered,' \
  'the server crashes, starts, is stopped and goes on' || diag "$(cat "$scratch/err")"
nothing_is_left
ok $? 'also a stopped server is removed' || diag "$(servers)" "$(folders)"

# ---- how it may end ------------------------------------------------------------------------------

# begin: in the background, in a process group of its own, until its command runs.  A job of the
# background ignores SIGINT, one below nohup SIGHUP, and so would all that it starts.
begin() {
  rm -f "$scratch/runs"
  env --default-signal=HUP,INT setsid "$with" -q sh -c \
    'echo $$ > "$1/runs-t"; mv "$1/runs-t" "$1/runs"; exec sleep 600' sh "$scratch" \
    > "$scratch/out" 2>&1 &
  pid=$!
  eventually test -s "$scratch/runs"
}

begin
[ -n "$(servers)" ] && [ -n "$(folders)" ]
ok $? 'what is left could be seen' || diag "$(servers)" "$(folders)"
kill $pid
wait $pid

for signal in TERM HUP INT; do
  begin
  kill -$signal $pid
  wait $pid
  code=$?
  case $signal in TERM) want=143 ;; HUP) want=129 ;; INT) want=130 ;; esac
  is $code $want "SIG$signal: the exit code shows it"
  eventually gone "$(cat "$scratch/runs")"
  ok $? "SIG$signal: the command has ended"
  nothing_is_left
  ok $? "SIG$signal: nothing is left" || diag "$(servers)" "$(folders)"
done

begin
kill -KILL $pid
wait $pid 2> /dev/null
eventually nothing_is_left
ok $? 'killed: the server has ended and its folder is removed' || diag "$(servers)" "$(folders)"
kill "$(cat "$scratch/runs")"
begin
kill -KILL -$pid
wait $pid 2> /dev/null
eventually nothing_is_left
ok $? 'killed with its whole process group: the same' || diag "$(servers)" "$(folders)"

for moment in 0 0.2 0.8; do
  setsid "$with" -q true > "$scratch/out" 2>&1 &
  pid=$!
  sleep $moment
  kill -KILL -$pid 2> /dev/null
  wait $pid 2> /dev/null
  eventually nothing_is_left
  ok $? "killed after $moment s, while the server was made: nothing is left" ||
    diag "$(servers)" "$(folders)"
done

# ---- several at once, and none -------------------------------------------------------------------

for i in 1 2; do
  "$with" -q psql -Atc "SELECT $i" > "$scratch/out-$i" 2>&1 &
done
wait
is "$(cat "$scratch"/out-[12] | tr '\n' ' ')" '1 2 ' 'several at once do not meet'
is "$(printf '%s' "$("$with" 2>&1; echo $?)" | tail -n 1)" 4 'no command: refused'
"$with" -q "$scratch/no-such-command" > "$scratch/out" 2>&1
is $? 127 'a command that does not exist'
nothing_is_left
ok $? 'nothing is left of those' || diag "$(servers)" "$(folders)"
"$with" -q -c no_such_setting=1 true > "$scratch/out" 2>&1
is $? 4 'a setting that the server does not know'
like "$(cat "$scratch/out")" 'unrecognized configuration parameter "no_such_setting"' \
  'the server'\''s own words are shown'
nothing_is_left
ok $? 'nothing is left of that' || diag "$(servers)" "$(folders)"

done_testing
