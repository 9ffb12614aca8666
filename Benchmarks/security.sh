# The sections `rules` and `tls` of Tools/bench, which reads this file: GetDocument over gRPC on one server core, with and without
# security. Uses the functions and variables of Tools/bench.

secure=$scratch/security
mkdir -p "$secure/keys"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
    -keyout "$secure/key.pem" -out "$secure/cert.pem" 2>/dev/null
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$secure/issuer.pem" 2>/dev/null
openssl pkey -in "$secure/issuer.pem" -pubout -out "$secure/keys/issuer.pem"
issuer=https://securetoken.google.com/bench
token=$("$hearth" token mint --uid ada --key "$secure/issuer.pem" --issuer $issuer)
# A rule about the caller alone, and one that reads another document, which is among those that are loaded.
other=$(sed -n '1s/.*"id":"\([^"]*\)".*/\1/p' "$scratch/books.jsonl")
for rule in "request.auth != null" "get(/databases/\$(d)/documents/books/$other).data.title != request.auth.uid"; do
    echo "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents {
        match /books/{id} { allow get: if $rule; } } }" >"$secure/$([ "$rule" = "request.auth != null" ] && echo auth || echo get).rules"
done
id=$(sed -n "$((documents / 2))s/.*\"id\":\"\([^\"]*\)\".*/\1/p" "$scratch/books.jsonl")
name="projects/bench/databases/(default)/documents/books/$id"
request() { # request NAME: a GetDocumentRequest with gRPC's prefix
    printf "\\0\\0\\0\\0\\x$(printf %02x $((${#1} + 2)))\\x0a\\x$(printf %02x ${#1})"; printf %s "$1"
}
request "$name" >"$secure/get.bin"

# gets LABEL URL: the median of the runs in $median, in requests a second; 16 connections of 16 streams.
gets() {
    local rates=() before line n=$((seconds * 100000))
    for _ in $(seq "$runs"); do
        before=$(awk '{print $14 + $15}' "/proc/$server/stat")
        taskset -c 1 h2load -n $n -c 16 -m 16 -d "$secure/get.bin" -H 'content-type: application/grpc' -H 'te: trailers' \
            -H "authorization: Bearer $token" "$2/google.firestore.v1.Firestore/GetDocument" >"$secure/h2load"
        line=$(awk -v ticks=$(($(awk '{print $14 + $15}' "/proc/$server/stat") - before)) -v n=$n '/^finished/ {rate = $4}
            /^status/ {ok = $3} END {printf "%.0f %d %.2f", rate, ok, ticks * 1e4 / n}' "$secure/h2load")
        read -r rate ok used <<<"$line"
        [ "$ok" = $n ] || { echo "bench: $1 answered $ok of $n" >&2; exit 1; }
        # A refused call has status 200 in HTTP too, and sends no data.
        bytes=$(sed -n 's/^traffic.*(\([0-9]*\)) data$/\1/p' "$secure/h2load")
        [ "$bytes" -gt $((n * 200)) ] || { echo "bench: $1 refused calls: $bytes bytes in $n answers" >&2; exit 1; }
        echo "$1: $rate req/s, server cpu $used us/req"
        rates+=("$rate")
    done
    median=$(printf '%s\n' "${rates[@]}" | sort -n | sed -n "$(((runs + 1) / 2))p")
}
# A denied call has status 200 in HTTP too: one call shows that the document is sent.
answers() { # answers URL: fails unless the reply has more bytes than a refusal
    curl -sk --http2-prior-knowledge -H 'content-type: application/grpc' -H 'te: trailers' -H "authorization: Bearer $token" \
        --data-binary "@$secure/get.bin" "$1/google.firestore.v1.Firestore/GetDocument" | wc -c | awk '{exit !($1 > 200)}' ||
        { echo "bench: $1 does not send the document" >&2; exit 1; }
}
# One user sends all calls: limits are counted, and not reached.
tokens=(--token-issuer "$issuer" --token-keys "$secure/keys" --user-requests 100000000 --user-rule-work 100000000)

echo "== gets without rules: one server core"
cores=0 serve "$scratch/books" --loops 1
answers "http://127.0.0.1:$port"
gets "no rules" "http://127.0.0.1:$port"; open_rate=$median
stop
if wants rules; then
    for rules in auth:"rules about the caller alone":0.9 get:"rules with one get()":0.6; do
        IFS=: read -r file label goal <<<"$rules"
        cores=0 serve "$scratch/books" --loops 1 --rules "$secure/$file.rules" "${tokens[@]}"
        answers "http://127.0.0.1:$port"
        gets "$label" "http://127.0.0.1:$port"
        stop
        row "gets, $label (no rules)" "$median" "$open_rate" ">= $goal" /s
    done

    echo "== a single reader beside a caller whose rules do as much as one judgement may: one server core"
    # Texts of a and b; patterns whose search takes as many steps for each byte as their programs have instructions.
    awk -v one='(a|b)*a(a|b){10}x' -v two='.*a.{900}x' 'BEGIN {
        srand(1)
        for (i = 0; i < 100; i++) {
            part = ""
            for (j = 0; j < 1000; j++) part = part (rand() < 0.5 ? "a" : "b")
            text = text part
        }
        printf "{\"id\":\"pattern\",\"text\":\"%s\",\"pattern\":\"%s\"}\n", text, one
        printf "{\"id\":\"program\",\"text\":\"%s\",\"pattern\":\"%s\"}\n", substr(text, 1, 2000), two
        print "{\"id\":\"documents\"}\n{\"id\":\"expressions\"}"
        for (i = 0; i < 10; i++) printf "{\"id\":\"big%d\",\"text\":\"%s%s%s%s%s%s%s%s%s%s\"}\n", i, text, text, text, text, text, text, text, text, text, text
    }' >"$secure/limits.jsonl"
    limits=/databases/'$(d)'/documents/limits
    compared=true
    for i in 0 2 4 6 8; do compared+=" && get($limits/big$i).data.text == get($limits/big$((i + 1))).data.text"; done
    echo "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents {
        match /books/{id} { allow get; }
        match /limits/documents { allow get: if $compared; }
        match /limits/expressions { allow get: if [$(seq -s, 950)].size() == 950; }
        match /limits/{id} { allow get: if !resource.data.text.matches(resource.data.pattern); } } }" >"$secure/limits.rules"
    cores=0 serve "$scratch/books" --loops 1
    "$hearth" load --address "127.0.0.1:$port" --project bench --collection limits --id-field id --quiet "$secure/limits.jsonl"
    stop
    for shape in pattern program documents expressions; do
        cores=0 serve "$scratch/books" --loops 1 --rules "$secure/limits.rules" "${tokens[@]}"
        name="projects/bench/databases/(default)/documents/limits/$shape"
        request "$name" >"$secure/limit.bin"
        taskset -c 1 h2load -D $((seconds * 4 + 2)) -c 1 -m 1 -d "$secure/limit.bin" -H 'content-type: application/grpc' -H 'te: trailers' \
            -H "authorization: Bearer $token" "http://127.0.0.1:$port/google.firestore.v1.Firestore/GetDocument" >"$secure/h2load" & heavy=$!
        sleep 1
        beside=$(taskset -c 1 "$out/frame_load" "$port" 1 1 get "$documents" "$((seconds * 3))" 1 "$server")
        wait $heavy
        stop
        echo "$shape: $(sed -n 's/^finished in.*, \(.* req\/s\),.*/\1/p' "$secure/h2load"); beside it $beside"
        figure "p99 of single reads beside rules at their limits, $shape" \
            "$(sed -n 's/.*p99 *\([0-9.]*\) us .*/\1/p' <<<"$beside" | awk '{printf "%.1f ms", $1 / 1000}') (goal < 20)"
    done
fi
if wants tls; then
    cores=0 serve "$scratch/books" --loops 1 --insecure --tls-cert "$secure/cert.pem" --tls-key "$secure/key.pem"
    gets "TLS" "https://127.0.0.1:$port"
    row "gets over TLS on kept connections (plain text)" "$median" "$open_rate" ">= 0.75" /s
    own=$median
    handshakes=$(taskset -c 1 openssl s_time -connect "127.0.0.1:$port" -new -time "$((seconds * 2))" 2>/dev/null | awk '/connections in .*real/ {printf "%.0f", $1 / $4}')
    stop
    # Beside it: the same server in plain text, with nginx in front, both on the core of the server.
    cores=0 serve "$scratch/books" --loops 1 --insecure
    cat >"$secure/nginx.conf" <<EOF
worker_processes 1; pid $secure/nginx.pid; error_log $secure/nginx.log; daemon off; user root;
events { worker_connections 1024; }
http {
    access_log off; client_body_temp_path $secure/body; proxy_temp_path $secure/proxy; fastcgi_temp_path $secure/f;
    uwsgi_temp_path $secure/u; scgi_temp_path $secure/s; keepalive_requests 100000000;
    upstream hearth { server 127.0.0.1:$port; keepalive 64; keepalive_requests 100000000; }
    server {
        listen 127.0.0.1:18996 ssl http2; http2_max_concurrent_streams 256;
        ssl_certificate $secure/cert.pem; ssl_certificate_key $secure/key.pem;
        location / { grpc_pass grpc://hearth; }
    }
}
EOF
    taskset -c 0 nginx -c "$secure/nginx.conf" 2>/dev/null & proxy=$!; sleep 1
    gets "nginx in front" "https://127.0.0.1:18996"
    row "gets over TLS (nginx in front of plain text)" "$own" "$median" ">= 1" /s
    floor=$(taskset -c 1 openssl s_time -connect 127.0.0.1:18996 -new -time "$((seconds * 2))" 2>/dev/null | awk '/connections in .*real/ {printf "%.0f", $1 / $4}')
    row "new TLS connections (nginx)" "$handshakes" "$floor" "-" /s
    kill $proxy; wait $proxy 2>/dev/null || true
    proxy=
    stop
fi
