#!/usr/bin/env bash
# Measures bases of a cluster in tables of PostgreSQL and in a directory: time and bytes of making one, and the start of an
# empty server from it. Everything is on one disk and one machine.
#
# usage: Benchmarks/cluster_bases.sh [DOCUMENTS]      1,000,000 without a number; hearth must be built with -c release
set -euo pipefail
cd "$(dirname "$0")/.."
documents=${1:-1000000}
hearth=$PWD/.build/release/hearth
mkdir -p .build/bounds
cc -O2 -o .build/bounds/gen_docs Benchmarks/Bounds/gen_docs.c -lm
# On the disk that holds the clone: /tmp may be memory.
scratch=$(mktemp -d "$PWD/.build/bases.XXXXXX")
chmod 755 "$scratch"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as() { su postgres -c "$*"; }
database=$scratch/database port=$((20000 + RANDOM % 10000))
sql() { as "psql -h $database -p $port -qAtX -d postgres -c \"$1\""; }
mkdir "$database"
chown postgres "$database"
as "$bin/initdb -D $database/cluster -A trust >/dev/null"
printf '%s\n' "port=$port" "listen_addresses='127.0.0.1'" "unix_socket_directories='$database'" shared_buffers=512MB max_wal_size=8GB \
    checkpoint_timeout=30min >>"$database/cluster/postgresql.conf"
as "$bin/pg_ctl -D $database/cluster -l $database/log -w start >/dev/null"
export HEARTH_CLUSTER=postgresql://postgres@127.0.0.1:$port/postgres
servers=()
end() {
    for server in "${servers[@]}"; do kill -TERM "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; done
    servers=()
}
trap 'end; as "$bin/pg_ctl -D $database/cluster -m immediate stop >/dev/null" || true; rm -rf "$scratch"' EXIT

start() { # start NAME FLAGS: the process is in $server, its port in $address
    local own=$((30000 + RANDOM % 20000))
    mkfifo "$scratch/ready"
    "$hearth" serve --data "$scratch/$1" --port $own --advertise 127.0.0.1:$own --automatic-indexes off "${@:2}" \
        >"$scratch/ready" 2>>"$scratch/$1.log" &
    server=$! address=127.0.0.1:$own
    servers+=("$server")
    read -r _ <"$scratch/ready" || { tail "$scratch/$1.log" >&2; exit 1; }
    rm "$scratch/ready"
}
processor() { awk '{printf "%.1f", ($14 + $15) / 100}' "/proc/$1/stat"; }
written() { awk '$1 == "write_bytes:" {printf "%.0f", $2 / 1000000}' "/proc/$1/io"; }
wal() { sql "select pg_current_wal_lsn() - '0/0'::pg_lsn"; }
millions() { awk -v b="$1" 'BEGIN {printf "%.0f MB", b / 1000000}'; }

.build/bounds/gen_docs "$documents" >"$scratch/books.jsonl"
start leader --cluster-base 1TiB
"$hearth" load "$scratch/books.jsonl" --address "$address" --project bench --collection books --id-field id --quiet
end
echo "$documents documents, log of $(millions "$(sql "select sum(pg_total_relation_size(relid)) from pg_stat_user_tables where relname like 'log_main%'")")"

for place in tables directory tables directory; do
    sql "delete from hearth.bases" && sql "do 'declare t text; begin for t in select tablename from pg_tables where tablename like ''base\\_main%'' loop execute ''drop table hearth.'' || t; end loop; end'"
    sql checkpoint
    rm -rf "$scratch/shared"
    mkdir "$scratch/shared"
    flags=(--cluster-base 1MiB)
    [ $place = tables ] || flags+=(--cluster-bases "$scratch/shared")
    : >"$scratch/leader.log"
    before=$(wal)
    start leader "${flags[@]}"
    until grep -q event=base_made "$scratch/leader.log"; do sleep 0.2; done
    after=$(wal)
    sql checkpoint
    grep event=base_made "$scratch/leader.log" | head -1
    echo "$place: made; processor time of the server $(processor "$server") s, written by it $(written "$server") MB, log of the database" \
        "$(millions $((after - before))), tables $(millions "$(sql "select coalesce(sum(pg_total_relation_size(relid)), 0) from pg_stat_user_tables where relname like 'base\\_main%'")")," \
        "directory $(du -sm "$scratch/shared" | cut -f1) MB"
    rm -rf "$scratch/empty" "$scratch/empty.log"
    sync
    begun=$(date +%s%N)
    start empty "${flags[@]}"
    echo "$place: an empty server is ready after $((($(date +%s%N) - begun) / 1000000)) ms, processor time $(processor "$server") s"
    grep -e event=base_fetching -e event=base_fetched "$scratch/empty.log"
    end
done
