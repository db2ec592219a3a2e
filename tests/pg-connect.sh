#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ways not to get a connection to PostgreSQL, each tried for real: what class of error it is, what
# is said and what to do next; and the password is in none of it.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" '{kit}'
fi
[ -n "${DURAKIT_PG_LOG:-}" ] ||
  skip_all 'the server of DURAKIT_PG is not one of tests/with-postgres'
scratch
plugin=${PG_PLUGIN:-$top_builddir/providers/pg/.libs/pg.so}
folder=$(dirname "$DURAKIT_PG_LOG")
super="host=$PGHOST port=$PGPORT user=postgres"
secret=hunter2-is-nowhere
unset DURAKIT_PG PGUSER PGDATABASE PGPASSWORD PGPASSFILE PGSERVICE PGSERVICEFILE

as_super() { psql -X -q -v ON_ERROR_STOP=1 "$super dbname=durakit" "$@"; }

patience=60s
# try CONNINFO [OPTION...]: what the command says of a store there.
try() {
  conninfo=$1
  shift
  "$DURAKIT" probe "$plugin" --set "conninfo=$conninfo" --set "connect_timeout=$patience" "$@" \
    > "$scratch/out" 2>&1
}

# refused NAME CLASS WORDS CONNINFO [OPTION...]
refused() {
  name=$1
  class=$2
  words=$3
  shift 3
  try "$@"
  code=$?
  found=$(grep '^  found ' "$scratch/out")
  { [ $code -eq 4 ] || [ "$code $class" = '2 DK_INVALID' ]; } &&
    printf '%s\n' "$found" | grep -q -e "^  found  *$class: .*$words"
  ok $? "$name: $class" || diag "exit $code, expected: $class: ...$words; $found"
  ! grep -q -F "$secret" "$scratch/out" && ! grep -q 'report it' "$scratch/out"
  ok $? "$name: no password is printed, and no advice to report it" ||
    diag "$(cat "$scratch/out")"
}

# ---- the server --------------------------------------------------------------------------------

as_super <<SQL || { ok 1 'the roles are made'; done_testing; exit; }
CREATE ROLE guarded LOGIN PASSWORD '$secret';
CREATE ROLE expired LOGIN PASSWORD '$secret' VALID UNTIL '2000-01-01';
CREATE ROLE sleeper NOLOGIN;
CREATE ROLE crowded LOGIN CONNECTION LIMIT 0;
CREATE ROLE rejected LOGIN;
CREATE ROLE stranger LOGIN;
CREATE DATABASE closed TEMPLATE template0;
REVOKE CONNECT ON DATABASE closed FROM PUBLIC;
CREATE DATABASE shut TEMPLATE template0 ALLOW_CONNECTIONS false;
CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C';
GRANT CREATE ON DATABASE durakit TO guarded;
SQL
{ printf 'local all guarded,expired scram-sha-256\nlocal all rejected reject\n'
  cat "$folder/data/pg_hba.conf"; } > "$scratch/hba"
cat "$scratch/hba" > "$folder/data/pg_hba.conf"
as_super -c 'SELECT pg_reload_conf()' > /dev/null
# The server reads it when it gets to it.
tries=0
until [ $tries -ge 600 ] || ! psql -X -q "host=$PGHOST port=$PGPORT user=rejected dbname=durakit" \
  -c '' > /dev/null 2>&1; do
  tries=$((tries + 1))
  sleep 0.1
done

at="host=$PGHOST port=$PGPORT dbname=durakit"

# ---- no way to a server ------------------------------------------------------------------------

refused 'no such socket' DK_UNAVAILABLE 'No such file.*tests/with-postgres' \
  "host=$scratch/nowhere user=me password=$secret dbname=durakit"
refused 'no server at the port' DK_UNAVAILABLE 'Connection refused.*start the server' \
  "hostaddr=127.0.0.1 port=1 user=me password=$secret dbname=durakit"
refused 'no address' DK_UNAVAILABLE 'could not parse network address' \
  "hostaddr=nowhere user=me password=$secret dbname=durakit"
refused 'no service file' DK_UNAVAILABLE 'definition of service "work" not found' \
  "service=work password=$secret"
refused 'conninfo that cannot be read' DK_INVALID 'cannot be read' "$at user='me password=$secret"
refused 'an address with a password that is not encoded' DK_INVALID 'percent-encoded' \
  "postgresql://me:a/$secret@db.example/work"

# ---- TLS ---------------------------------------------------------------------------------------

# What listens for TCP before the server's socket, where the server speaks no TLS.
cat > "$scratch/tcp.py" <<'PY'
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[2], "w") as out: out.write(str(listener.getsockname()[1]) + "\n")
def carry(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    except OSError: pass
    for s in a, b:
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
while True:
    client, _ = listener.accept()
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    for pair in (client, server), (server, client):
        threading.Thread(target=carry, args=pair, daemon=True).start()
PY
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2> /dev/null; then
  python3 "$scratch/tcp.py" "$DURAKIT_PG_SOCKET" "$scratch/port" &
  tcp=$!
  trap 'kill $tcp 2> /dev/null; rm -rf "$scratch"' EXIT
  tries=0
  until [ -s "$scratch/port" ] || [ $tries -ge 600 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  over="hostaddr=127.0.0.1 port=$(cat "$scratch/port") dbname=durakit gssencmode=disable"
  refused 'TLS is requested, and the server has none' DK_UNAVAILABLE 'does not support SSL' \
    "$over user=guarded password=$secret sslmode=require"
  try "$over user=guarded password=$secret sslmode=disable"
  ok $? 'over TCP with the password it is let in' || diag "$(cat "$scratch/out")"
fi

# ---- roles that are refused --------------------------------------------------------------------

refused 'no such database' DK_REFUSED '3D000.*CREATE DATABASE' \
  "host=$PGHOST port=$PGPORT user=durakit password=$secret dbname=nowhere"
refused 'no such role' DK_REFUSED '28000.*check the user' "$at user=absent"
refused 'a role that does not log in' DK_REFUSED '28000.*check the user' "$at user=sleeper"
refused 'rejected by pg_hba.conf' DK_REFUSED '28000.*pg_hba.conf' "$at user=rejected"
refused 'a wrong password' DK_REFUSED '28P01.*password' "$at user=guarded password=wrong-$secret"
refused 'a wrong password, as a setting' DK_REFUSED '28P01.*password' "$at user=guarded" \
  --set "password=wrong-$secret"
refused 'an expired password' DK_REFUSED '28P01.*password' "$at user=expired password=$secret"
refused 'no password' DK_REFUSED 'give the setting password, or a passfile' "$at user=guarded"
refused 'no right to connect' DK_REFUSED '42501.*GRANT CONNECT' \
  "host=$PGHOST port=$PGPORT user=stranger dbname=closed"
refused 'a database that takes no connections' DK_REFUSED '55000.*ALLOW_CONNECTIONS' \
  "host=$PGHOST port=$PGPORT user=durakit dbname=shut"
refused 'a database in another encoding' DK_REFUSED "expected UTF8" \
  "host=$PGHOST port=$PGPORT user=durakit dbname=ascii"
refused 'no connection left' DK_UNAVAILABLE '53300.*lower the setting pool' "$at user=crowded"
refused 'an option that the server does not know' DK_REFUSED '42704.*parameters in conninfo' \
  "$at user=durakit options='-c nonsense=1'"
refused 'a role that may make no store' DK_REFUSED 'GRANT CREATE ON DATABASE' "$at user=stranger"

# ---- the passfile ------------------------------------------------------------------------------

printf '*:*:*:guarded:%s\n' "$secret" > "$scratch/pass"
chmod 644 "$scratch/pass"
refused 'a passfile that others may read' DK_REFUSED 'give the setting password, or a passfile' \
  "$at user=guarded passfile=$scratch/pass"
chmod 600 "$scratch/pass"
try "$at user=guarded passfile=$scratch/pass"
ok $? 'a passfile of its own' || diag "$(cat "$scratch/out")"
printf '[work]\nhost=%s\nport=%s\ndbname=durakit\nuser=guarded\n' "$PGHOST" "$PGPORT" \
  > "$scratch/services"
PGSERVICEFILE=$scratch/services try "service=work passfile=$scratch/pass"
ok $? 'a service file' || diag "$(cat "$scratch/out")"

# ---- a server that is not ready ----------------------------------------------------------------

sh -c "$DURAKIT_PG_PAUSE"
patience=300ms
refused 'a server that says nothing' DK_UNAVAILABLE 'no answer within 300ms' "$at user=durakit"
patience=60s
sh -c "$DURAKIT_PG_RESUME"

# While a session is connected, the server refuses all others.
mkfifo "$scratch/hold"
psql -X -q -A -t "$super dbname=durakit" < "$scratch/hold" > "$scratch/held" 2>&1 &
exec 3> "$scratch/hold"
echo 'SELECT 1;' >&3
tries=0
until [ -s "$scratch/held" ] || [ $tries -ge 600 ]; do
  tries=$((tries + 1))
  sleep 0.1
done
kill -TERM "$(sed -n 1p "$folder/data/postmaster.pid")"
tries=0
while [ $tries -lt 600 ] && psql -X -q "$super dbname=durakit" -c '' > /dev/null 2>&1; do
  tries=$((tries + 1))
  sleep 0.1
done
refused 'a server that shuts down' DK_UNAVAILABLE '57P03.*starting or stopping' "$at user=durakit"
exec 3>&-
wait $!
tries=0
while [ $tries -lt 600 ] && [ -e "$folder/data/postmaster.pid" ]; do
  tries=$((tries + 1))
  sleep 0.1
done
refused 'a server that is down' DK_UNAVAILABLE 'start the server' \
  "$at user=durakit password=$secret"
sh -c "$DURAKIT_PG_START"
try "$at user=durakit"
ok $? 'started again, it serves' || diag "$(cat "$scratch/out")"

done_testing
