# The section `pipelines` of Tools/bench, which reads this file: groups, searches and the stages that queries have as well, over
# $documents texts of twenty words with one of 1,000 groups, beside PostgreSQL. Every field is indexed. Uses the functions and
# variables of Tools/bench.

texts=$scratch/texts
echo "== pipelines: PostgreSQL, $documents texts"
"$out/gen_docs" "$documents" queries >"$scratch/queries"
"$out/gen_docs" "$documents" csv texts >"$scratch/texts.tsv"
Benchmarks/peers/postgres.sh "$scratch/pg" "$scratch/texts.tsv" texts "$scratch/queries" | tee "$scratch/postgres-texts"
rm "$scratch/texts.tsv"
peer_of() { awk -v n="$1" '$1 == n {print $2}' "$scratch/postgres-texts"; }

echo "== pipelines: load of $documents texts"
"$out/gen_docs" "$documents" texts >"$scratch/texts.jsonl"
indexes=on serve "$texts"
"$hearth" load --address "127.0.0.1:$port" --project bench --collection texts --id-field id --quiet "$scratch/texts.jsonl"
rm "$scratch/texts.jsonl"
cat >"$scratch/text-index.json" <<'JSON'
{"indexes": [{"collectionGroup": "texts", "queryScope": "COLLECTION",
    "fields": [{"fieldPath": "text", "searchConfig": {"textSpec": {}}}], "searchIndexOptions": {"textLanguage": "en"}}]}
JSON
"$hearth" indexes apply "$scratch/text-index.json" --data "$texts" --project bench
built=$SECONDS
until "$hearth" indexes list --data "$texts" --project bench | grep -i text | grep -q READY; do sleep 1; done
figure "index for searches of $documents texts, built in" "$((SECONDS - built)) s"
echo "== pipelines"
"$bench" pipelines "127.0.0.1:$port" "$server" "$scratch/queries" "$runs" | tee "$scratch/figures"
stop
rm -rf "$texts"
of() { awk -F'\t' -v n="$1" '$1 == n {print $2}' "$scratch/figures"; }
ratio() { # ratio WHAT MEASURED BOUND GOAL UNIT: with two decimals
    figure "$1" "$(awk -v m="$2" -v b="$3" -v g="$4" -v u="$5" 'BEGIN {printf "%10.2f %10.2f  ratio %5.2f  goal %s  %s", m, b, m / b, g, u}')"
}
ratio "group-by, 1,000 groups (PostgreSQL, one process)" "$(of group-by)" "$(peer_of group-by-0-p50)" "<= 0.5" ms
ratio "group-by, processor time (PostgreSQL)" "$(of "group-by, processor")" "$(peer_of group-by-0-processor)" "<= 0.5" ms
ratio "group-by, 1,000 groups (PostgreSQL, parallel)" "$(of group-by)" "$(peer_of group-by-2-p50)" "-" ms
for quantile in p50 p90 p99; do
    ratio "search, two words, 20 results, $quantile (tsvector, GIN)" "$(of "search, $quantile")" "$(peer_of "search-$quantile")" \
        "$([ $quantile = p50 ] && echo "< 5 ms" || echo -)" ms
done
ratio "search, mean of the processor time (PostgreSQL)" "$(of "search, processor")" "$(peer_of search-processor)" "-" ms
for what in "page of 20" "range of 1,000" "two conditions" "count of a group"; do
    ratio "pipeline, $what, server time (RunQuery)" "$(of "$what, pipeline")" "$(of "$what, query")" "<= 1.1" us
done
