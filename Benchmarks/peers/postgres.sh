#!/bin/sh
# PostgreSQL on loopback, under the same durability: COPY of documents into a jsonb table with its key, durable inserts, and
# serializable transfers between 1,000 accounts; or COPY of records into one with three expression indexes; or groups of
# texts, and searches for two words with a stored tsvector and its GIN index.
#
# usage: postgres.sh SCRATCH_DIR DOCS_TSV [SECONDS=5]
#        postgres.sh SCRATCH_DIR DOCS_TSV indexed
#        postgres.sh SCRATCH_DIR DOCS_TSV texts QUERIES
#   QUERIES      lines of two words
#   SCRATCH_DIR  a cluster is made there and removed at the end
#   DOCS_TSV     documents as `gen_docs COUNT csv` prints them; `gen_docs COUNT csv records` for `indexed`
# Run as root (the server runs as the user postgres). Prints lines of "name<TAB>value<TAB>unit".
set -eu
dir=$1 docs=$2 secs=${3:-5} port=54329
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as() { su postgres -c "$*"; }
sql() { echo "set client_min_messages=warning; $1" | as "psql -h $dir -p $port -qAtX -d postgres"; }

rm -rf "$dir/cluster"
mkdir -p "$dir"
chown postgres "$dir"
as "$bin/initdb -D $dir/cluster -A trust >/dev/null"
printf '%s\n' "port=$port" "listen_addresses='127.0.0.1'" "unix_socket_directories='$dir'" shared_buffers=1GB max_wal_size=8GB \
    checkpoint_timeout=30min >>"$dir/cluster/postgresql.conf"
as "$bin/pg_ctl -D $dir/cluster -l $dir/log -w start >/dev/null"
trap 'as "$bin/pg_ctl -D $dir/cluster -m immediate stop >/dev/null"; rm -rf "$dir/cluster"' EXIT

bench() { # bench NAME FILE CLIENTS
    for _ in 1 2 3; do
        as "pgbench -h $dir -p $port -n -M prepared -T $secs -f $2 -c $3 --max-tries=1000 postgres" 2>/dev/null | awk '/^tps/ {print $3}'
    done | sort -n | sed -n 2p | awk -v n="$1" '{printf "%s\t%.0f\t/s\n", n, $1}'
}

count=$(wc -l <"$docs")
sql "create table docs(id text primary key, doc jsonb)"
if [ "$secs" = gin ]; then
    secs=5
    sql "create index on docs using gin (doc jsonb_path_ops)"
    split -n l/2 "$docs" "$dir/half."
    chmod a+r "$dir"/half.*
    for half in "$dir"/half.*; do
        as "psql -h $dir -p $port -qAtX -d postgres -c '\\timing on' -c \"copy docs from '$half'\"" |
            awk -v n="$(wc -l <"$half")" -v name="copy-${half##*.}" '/Time/ {printf "%s\t%.0f\tdocuments/s\n", name, n / $2 * 1000}'
        rm "$half"
    done
    # A random id: the first document at or after six random characters.
    cat >"$dir/read.sql" <<'SQL'
select doc from docs where id >= (select string_agg(substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
    (random() * 61)::int + 1, 1), '') from generate_series(1, 6)) order by id limit 1;
SQL
    chown postgres "$dir/read.sql"
    sql "vacuum analyze docs; checkpoint"
    bench read-16 "$dir/read.sql" 16
    as "$bin/pg_ctl -D $dir/cluster -m fast -w stop >/dev/null"
    megabytes=$(du -sm "$dir/cluster/base" | cut -f1)
    sed -i "s/^shared_buffers=.*/shared_buffers=$((megabytes / 16 + 1))MB/" "$dir/cluster/postgresql.conf"
    quarter=$((megabytes / 4 > 256 ? megabytes / 4 : 256)) # the server does not start with much less
    if "$(dirname "$0")/within-memory" "$quarter" su postgres -c "$bin/pg_ctl -D $dir/cluster -l $dir/log -w start >/dev/null"; then
        bench read-16-quarter "$dir/read.sql" 16
    fi
    exit 0
fi
if [ "$secs" = indexed ]; then
    sql "create index on docs(((doc->>'random')::bigint)); create index on docs((doc->>'title'));
         create index on docs(((doc->>'price')::float8))"
fi
as "psql -h $dir -p $port -qAtX -d postgres -c '\\timing on' -c \"copy docs from '$docs'\"" |
    awk -v n="$count" '/Time/ {printf "copy\t%.0f\tdocuments/s\n", n / $2 * 1000}'
[ "$secs" != indexed ] || exit 0
if [ "$secs" = texts ]; then
    queries=$4
    sql "alter table docs add column words tsvector generated always as (to_tsvector('english', doc->>'text')) stored;
         create index on docs using gin (words)"
    sql "vacuum analyze docs; checkpoint"
    # The processor time of the session's process, in hundredths of a second.
    printf '%s\n' '#!/bin/sh' "awk '{print \"ticks\", \$14 + \$15}' /proc/\$PROCESS/stat" >"$dir/ticks"
    chmod a+rx "$dir/ticks"
    # measured NAME WORKERS: the times of the statements that are read, and the mean of their processor times; before
    # them they are run once, to fill caches.
    measured() {
        cat >"$dir/statements.sql"
        { echo "set max_parallel_workers_per_gather = $2;"
            printf '%s\n' '\o /dev/null'; cat "$dir/statements.sql"
            printf '%s\n' '\o' 'select pg_backend_pid() as process \gset' '\setenv PROCESS :process' "\\! $dir/ticks" '\o /dev/null' '\timing on'
            cat "$dir/statements.sql"
            printf '%s\n' '\timing off' "\\! $dir/ticks"; } >"$dir/measured.sql"
        chown postgres "$dir/measured.sql"
        as "psql -h $dir -p $port -qtX -d postgres -f $dir/measured.sql" >"$dir/measured"
        awk '/^Time:/ {print $2}' "$dir/measured" | sort -n | awk -v n="$1" '{t[NR] = $1} END {
            printf "%s-p50\t%.2f\tms\n%s-p90\t%.2f\tms\n%s-p99\t%.2f\tms\n", n, t[int(NR / 2) + 1], n, t[int(NR * 0.9) + 1], n, t[int(NR * 0.99) + 1]}'
        awk -v n="$1" '/^Time:/ {c++} $1 == "ticks" {t[++k] = $2} END {printf "%s-processor\t%.2f\tms\n", n, (t[2] - t[1]) * 10 / c}' "$dir/measured"
    }
    for workers in 0 2; do
        for _ in 1 2 3; do
            echo "select doc->>'group', count(*), sum((doc->>'number')::bigint), avg((doc->>'price')::float8) from docs group by 1;"
        done | measured group-by-$workers $workers
    done
    awk '{printf "select id, doc, ts_rank(words, q) from docs, to_tsquery(\047english\047, \047%s & %s\047) q where words @@ q " \
        "order by 3 desc, id limit 20;\n", $1, $2}' "$queries" | measured search 0
    exit 0
fi

sql "create table inserted(id text primary key, doc jsonb); create table accounts(id int primary key, balance int);
     insert into accounts select i, 1000 from generate_series(0, 999) i; vacuum analyze accounts"
# pgbench would take ":00" of a time for a variable, so the colons of the time are dropped.
doc=$(head -1 "$docs" | cut -f2 | sed 's/:00:00Z/0000Z/')
echo "insert into inserted values (md5(random()::text || clock_timestamp()::text), '$doc');" >"$dir/insert.sql"
cat >"$dir/transfer.sql" <<'SQL'
\set a random(0, 999)
\set b random(0, 999)
begin isolation level serializable;
select balance from accounts where id = :a;
select balance from accounts where id = :b;
update accounts set balance = balance - 1 where id = :a;
update accounts set balance = balance + 1 where id = :b;
commit;
SQL
chown postgres "$dir"/*.sql
bench insert-1 "$dir/insert.sql" 1
bench insert-16 "$dir/insert.sql" 16
bench transfer-16 "$dir/transfer.sql" 16
