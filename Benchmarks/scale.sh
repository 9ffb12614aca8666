# The section `scale` of Tools/bench, which reads this file: what stays the same when a store grows. All documents have automatic
# indexes, 16 entries each. Uses the functions and variables of Tools/bench, and $many: the number of documents.

within=Benchmarks/peers/within-memory
load_books() { "$hearth" load --address "127.0.0.1:$port" "${load_flags[@]}" --quiet "$1" | load_rate; }
metric() { curl -s "http://127.0.0.1:$port/metrics" | awk -v n="$1" '$1 == n {printf "%.0f", $2}'; }
# Waits until merges have ended: there are no bytes to merge, and the files are the same for five seconds.
settle() {
    local before= after i
    for i in $(seq 120); do
        after=$(ls "$1"/runs; metric hearth_merge_pending_bytes)
        [ "$before" != "$after" ] || [ "${after##*$'\n'}" != 0 ] || return 0
        before=$after
        sleep 5
    done
}
# Keeps the runs of a directory in memory: the kernel of a virtual machine may give the pages of files back to its host.
lock_pages() {
    mkfifo "$scratch/locked"
    "$out/lock_pages" "$1"/runs/????????????????.* >"$scratch/locked" & locker=$!
    read -r line <"$scratch/locked" && echo "$line" || echo "not all pages are in memory"
    rm "$scratch/locked"
}
unlock_pages() { kill $locker 2>/dev/null || true; wait $locker 2>/dev/null || true; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
run_megabytes() { du -smc "$1"/runs/????????????????.* | awk 'END {print $1}'; }

few=$((many < 1000000 ? many : 1000000))
echo "== scale: the same entries in RocksDB, $few documents"
cc -O2 -Wall -Wextra -o "$out/rocksdb_load" Benchmarks/Bounds/rocksdb_load.c -lrocksdb -lpthread
"$out/gen_docs" "$few" >"$scratch/few.jsonl"
indexes=on serve "$scratch/few"
few_rate=$(load_books "$scratch/few.jsonl")
stop
"$bench" entries "$scratch/few" "$scratch/entries" | tee "$scratch/entry-count"
held=$(awk -v n="$few" '/bytes/ {print $1 / n}' "$scratch/entry-count") # bytes of keys and values a document
rm -rf "$scratch/few" "$scratch/few.jsonl"
for form in level universal threads ingest; do
    line=$("$out/rocksdb_load" "$scratch/rocksdb" "$scratch/entries" "$few" $form)
    echo "$line"
    rate=$(sed 's/.*: \([0-9]*\) documents.*/\1/' <<<"$line")
    row "indexed load of $few (the same entries in RocksDB, $form)" "$few_rate" "$rate" ">= 0.7" documents/s
    rm -rf "$scratch/rocksdb"
done
rm "$scratch/entries"

echo "== scale: load of $many documents"
"$out/gen_docs" "$many" >"$scratch/many.jsonl"
indexes=on serve "$scratch/many"
(
    while sleep 0.5; do echo "$(milliseconds) $(metric hearth_documents_written_total)"; done >"$scratch/progress"
) & sampler=$!
many_rate=$(load_books "$scratch/many.jsonl")
sleep 1
kill $sampler; wait $sampler 2>/dev/null || true
rm "$scratch/many.jsonl"
between() { # between FROM TO: documents/s between two counts of documents
    awk -v from="$1" -v to="$2" 'function at(n, i) {
            for (i = 2; i < NR; i++) if (count[i] >= n) break
            return time[i - 1] + (time[i] - time[i - 1]) * (n - count[i - 1]) / (count[i] - count[i - 1])
        }
        NF == 2 && $2 != count[k] {k++; time[k] = $1; count[k] = $2}
        END {NR = k + 1; printf "%.0f", (to - from) * 1000 / (at(to) - at(from))}' "$scratch/progress"
}
row "indexed load of $many" "$many_rate" 0 ">= 40,000" documents/s
row "indexed load, last tenth (second tenth)" "$(between $((many * 9 / 10)) "$many")" "$(between $((many / 10)) $((many * 2 / 10)))" ">= 0.7" documents/s
written=$(awk '/^write_bytes/ {printf "%.0f", $2}' "/proc/$server/io")
figure "bytes written for each byte of keys and values" "$(awk -v w="$written" -v h="$held" -v n="$many" 'BEGIN {printf "%.1f  goal <= 12", w / h / n}')"
figure "anonymous memory after the load" "$(awk '/RssAnon/ {printf "%d MB  goal <= 400", $2 / 1024}' "/proc/$server/status")"
figure "times that commits waited" "$(metric hearth_writer_stalls_total)"

settle "$scratch/many"
megabytes=$(run_megabytes "$scratch/many")
figure "directory for each byte of keys and values" "$(awk -v m="$megabytes" -v h="$held" -v n="$many" 'BEGIN {printf "%.2f  goal <= 1.3", m * 1048576 / h / n}')"

echo "== scale: reads of $many documents"
lock_pages "$scratch/many"
for call in get query; do
    "$out/frame_load" "$port" 16 16 $call "$many" 15 1 >/dev/null # maps the pages
    line=$("$out/frame_load" "$port" 16 16 $call "$many" "$seconds" "$runs" "$server")
    echo "$call $line"
    figure "$call, 16 connections, depth 16" "$(sed -n 's/.*: *\([0-9]*\) req.*cpu *\([0-9.]*\) us.*/\1 \/s, \2 us of processor time each/p' <<<"$line")"
done
stop
unlock_pages

echo "== scale: reads with memory for a quarter of the directory, $((megabytes / 4)) MB"
if [ "$(id -u)" = 0 ]; then
    launcher=("$within" $((megabytes / 4)))
    indexes=on serve "$scratch/many"
    launcher=()
    "$out/frame_load" "$port" 16 1 get "$many" 10 1 >/dev/null
    for call in get query; do
        line=$("$out/frame_load" "$port" 16 1 $call "$many" "$((seconds * 2))" 3 "$server")
        echo "$call $line"
        figure "$call, 16 connections, a quarter in memory" "$(rate "$line") /s"
    done
    stop
fi

indexes=on serve "$scratch/many"
burst=$((many >= 10000000 ? 300 : 20))
echo "== scale: 64 clients that wait, $burst seconds"
line=$("$out/frame_load" "$port" 64 1 insert 1000000000 $burst 1 "$server")
echo "$line"
row "inserts of 64 clients into $many" "$(rate "$line")" 0 ">= 20,000" documents/s
figure "inserts of 64 clients, p99.9" "$(sed -n 's/.*p99.9 *\([0-9.]*\) us.*/\1 us  goal < 100,000/p' <<<"$line")"

echo "== scale: kill -9 during a merge"
"$out/frame_load" "$port" 64 1 insert 2000000000 120 1 "$server" >/dev/null 2>&1 & writers=$!
for _ in $(seq 200); do
    sleep 0.1
    [ "$(metric hearth_merge_pending_bytes)" -eq 0 ] || [ "$(metric hearth_memtable_bytes)" -lt 50000000 ] || break
done
kill -9 "$server"; wait "$server" 2>/dev/null || true; wait $writers 2>/dev/null || true
began=$(milliseconds)
indexes=on serve "$scratch/many"
figure "opening after kill -9 in a merge" "$(($(milliseconds) - began)) ms  goal < 1,000"
stop
rm -rf "$scratch/many"

halves=$((many < 2000000 ? many : 2000000))
echo "== scale: PostgreSQL, $halves documents with a GIN index"
"$out/gen_docs" "$halves" csv >"$scratch/halves.tsv"
Benchmarks/peers/postgres.sh "$scratch/pg" "$scratch/halves.tsv" gin | tee "$scratch/gin"
rm "$scratch/halves.tsv"
gin() { awk -v n="$1" '$1 == n {print $2}' "$scratch/gin"; }
row "indexed load, second half of $halves (COPY with GIN)" "$(between $((halves / 2)) "$halves")" "$(gin copy-ab)" ">= 1.5" documents/s
figure "PostgreSQL, reads of 16 clients" "$(gin read-16) /s, with a quarter in memory $(gin read-16-quarter) /s"
