# The section `cluster` of Tools/bench, which reads this file: a leader and a follower over one PostgreSQL, beside a C server that
# appends the same commits of as many clients to it, beside a C program that appends as many bytes without clients, and beside the same
# documents as rows of it. Everything shares the machine's cores. Uses the functions and
# variables of Tools/bench, and $lag: seconds of load during which the lag of the follower is observed.

bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as() { su postgres -c "$*"; }
for program in pg_append pg_serve; do
    cc -O2 -Wall -Wextra -I"$(pg_config --includedir)" -o "$out/$program" "Benchmarks/Bounds/$program.c" -lpq -lm
done
database=$scratch/database database_port=54331
connection="postgresql://postgres@127.0.0.1:$database_port/postgres"
mkdir -p "$database"
chown postgres "$database"
as "$bin/initdb -D $database/cluster -A trust >/dev/null"
printf '%s\n' "port=$database_port" "listen_addresses='127.0.0.1'" "unix_socket_directories='$database'" shared_buffers=1GB max_wal_size=8GB \
    checkpoint_timeout=30min >>"$database/cluster/postgresql.conf"
as "$bin/pg_ctl -D $database/cluster -l $database/log -w start >/dev/null"
members=()
end_cluster() {
    for member in "${members[@]}"; do kill -TERM "$member" 2>/dev/null || true; wait "$member" 2>/dev/null || true; done
    members=()
    as "$bin/pg_ctl -D $database/cluster -m immediate stop >/dev/null" || true
}
trap 'end_cluster; stop; rm -rf "$scratch"' EXIT

# With one event loop, as the C server has one thread: five busy programs share the cores, and the client handles replies
# while the loop still writes others.
member() { # member NAME PORT: starts a server of the cluster, whose process is in $member
    mkfifo "$scratch/ready"
    HEARTH_CLUSTER=$connection "$hearth" serve --data "$scratch/$1" --port "$2" --advertise "127.0.0.1:$2" --automatic-indexes "${indexes:-off}" --loops 1 \
        >"$scratch/ready" 2>>"$scratch/$1.log" &
    member=$!
    members+=("$member")
    read -r _ <"$scratch/ready" || { tail "$scratch/$1.log" >&2; exit 1; }
    rm "$scratch/ready"
}
metric_at() { curl -s "http://127.0.0.1:$1/metrics" | awk -v n="$2" '$1 == n {print $2}'; }
leader_port=18981 follower_port=18982 bound_port=18983
member leader $leader_port; leader=$member
until [ "$(metric_at $leader_port hearth_cluster_leads)" = 1 ]; do sleep 0.1; done
member follower $follower_port; follower=$member

echo "== cluster: commits of 64 clients, a C server of as many, and a C program that appends the same bytes"
written=400000000
commits_at() { # commits_at NAME PORT PID SECONDS: a line, and its rate added to a file
    local line=$("$out/frame_load" "$2" 64 1 commit $written "$4" 1 "$3")
    written=$((written + 10000000))
    echo "$1: $line"
    rate "$line" >>"$scratch/rate_$1"
    sed -n 's/.*server cpu *\([0-9.]*\) us.*/\1/p' <<<"$line" >>"$scratch/cpu_$1"
}
served_at() { # served_at NAME HOLD_US: the same of the C server, which waits for clients up to a time
    mkfifo "$scratch/ready"
    "$out/pg_serve" "$connection" $bound_port "$bytes" "$2" >"$scratch/ready" & local bound_server=$!
    exec 9<"$scratch/ready"
    read -r _ <&9
    commits_at "$1" $bound_port $bound_server "$seconds"
    kill $bound_server
    read -r line <&9 && echo "$1: $line"
    wait $bound_server || true
    exec 9<&-
    rm "$scratch/ready"
}
# The bytes of a record, from what is appended for so many commits.
before=$(metric_at $leader_port hearth_cluster_appended_bytes_total)
documents_before=$(metric_at $leader_port hearth_documents_written_total)
commits_at warm $leader_port "$leader" "$seconds"
after=$(metric_at $leader_port hearth_cluster_appended_bytes_total)
bytes=$(awk -v a="$after" -v b="$before" -v d="$(metric_at $leader_port hearth_documents_written_total)" -v e="$documents_before" \
    'BEGIN {printf "%d", (a - b) / (d - e)}')
figure "bytes of a commit of one document in the log" "$bytes"
echo "insert into docs values (md5(random()::text || clock_timestamp()::text), '$("$out/gen_docs" 1 csv | cut -f2 | sed 's/:00:00Z/0000Z/')');" \
    >"$database/insert.sql"
chown postgres "$database/insert.sql"
as "psql -h $database -p $database_port -qAtX -d postgres -c 'create table docs(id text primary key, doc jsonb)'"
as "psql -h $database -p $database_port -qAtX -d postgres -c 'create index on docs using gin (doc jsonb_path_ops)'"
# In turn, so that a change of the machine's load meets all.
for _ in $(seq "$runs"); do
    line=$("$out/pg_append" "$connection" "$bytes" 64 "$seconds" 1)
    echo "bound: $line"; rate "$line" >>"$scratch/rate_bound"
    served_at served 0
    served_at held 1000
    commits_at leader $leader_port "$leader" "$seconds"
    commits_at through $follower_port "$follower" "$seconds"
    as "pgbench -h $database -p $database_port -n -M prepared -T $seconds -f $database/insert.sql -c 64 postgres" 2>/dev/null |
        awk '/^tps/ {printf "%.0f\n", $3}' | tee -a "$scratch/rate_rows"
done
bound=$(median <"$scratch/rate_bound")
groups=$(metric_at $leader_port hearth_cluster_groups_appended_total)
figure "commits of a group, at the leader" \
    "$(awk -v d="$(metric_at $leader_port hearth_documents_written_total)" -v g="$groups" 'BEGIN {printf "%.0f", d / g}')"
for name in served held; do figure "commits of a C server, 64 clients, $name" "$(median <"$scratch/rate_$name")"; done
served=$(for name in served held; do median <"$scratch/rate_$name"; done | sort -n | tail -1)
row "commits, 64 clients of the leader (C server, 64 clients)" "$(median <"$scratch/rate_leader")" "$served" ">= 0.7" /s
row "commits, 64 clients of a follower (C server, 64 clients)" "$(median <"$scratch/rate_through")" "$served" ">= 0.7" /s
row "commits, 64 clients of the leader (C program, no clients)" "$(median <"$scratch/rate_leader")" "$bound" "-" /s
row "the same (jsonb rows with a GIN index, 64 clients)" "$(median <"$scratch/rate_leader")" "$(median <"$scratch/rate_rows")" "-" documents/s
figure "processor time of a commit at its server: leader, follower" \
    "$(median <"$scratch/cpu_leader") us, $(median <"$scratch/cpu_through") us"

echo "== cluster: from a commit to a snapshot at another server"
lone=$("$out/pg_append" "$connection" "$bytes" 1 "$seconds" 1)
echo "$lone"
listened=$("$out/listen_load" "$follower_port,$leader_port" native 1 1 collection "$((seconds * 3))" "$follower")
echo "$listened"
quantile_of() { sed -n "s|.*  $2 \([0-9.]*\) us.*|\1|p" <<<"$1"; }
figure "commit to snapshot at a follower" "p50 $(quantile_of "$listened" p50) us, p99 $(quantile_of "$listened" p99) us"
figure "the database's own commit" "p50 $(quantile_of "$lone" p50) us, p99 $(quantile_of "$lone" p99) us"
figure "beyond it, at the 99th percentile; goal < 30 ms" \
    "$(awk -v a="$(quantile_of "$listened" p99)" -v b="$(quantile_of "$lone" p99)" 'BEGIN {printf "%.1f ms", (a - b) / 1000}')"

echo "== cluster: lag of a follower at the full load of its leader, $lag s"
("$out/frame_load" $leader_port 64 1 commit $written "$lag" 1 "$leader" >"$scratch/full") & load=$!
while kill -0 $load 2>/dev/null; do metric_at $follower_port hearth_replica_lag_seconds; sleep 1; done >"$scratch/lags"
cat "$scratch/full"
awk '{v[NR] = $1} END {h = int(NR / 2); for (i = 1; i <= NR; i++) if (i <= h) a += v[i] / h; else b += v[i] / (NR - h)
    printf "%.3f s in the first half, %.3f s in the second", a, b}' "$scratch/lags" >"$scratch/lag"
figure "mean lag; goal: it does not grow" "$(<"$scratch/lag")"

echo "== cluster: strict reads at a follower, and reads of a server alone"
few=$((documents < 100000 ? documents : 100000))
head -n "$few" "$scratch/books.jsonl" >"$scratch/few.jsonl"
"$hearth" load --address "127.0.0.1:$leader_port" "${load_flags[@]}" --quiet "$scratch/few.jsonl"
"$hearth" query --address "127.0.0.1:$follower_port" --project bench books --limit 1 >/dev/null
cores=0,1 serve "$scratch/alone" --loops 1
"$hearth" load --address "127.0.0.1:$port" "${load_flags[@]}" --quiet "$scratch/few.jsonl"
for _ in $(seq "$runs"); do
    for depth in 1 16; do
        for name in alone strict; do
            place=$port process=$server; [ $name = alone ] || { place=$follower_port process=$follower; }
            line=$("$out/frame_load" "$place" 64 $depth get "$few" "$seconds" 1 "$process")
            echo "$name: $line"
            rate "$line" >>"$scratch/rate_$name$depth"
        done
    done
done
stop
for depth in 1 16; do
    row "strict reads at a follower, 64 connections, depth $depth (alone)" "$(median <"$scratch/rate_strict$depth")" \
        "$(median <"$scratch/rate_alone$depth")" ">= 0.8" /s
done
end_cluster
trap 'stop; rm -rf "$scratch"' EXIT
