"""`hearth migrate` with the official emulator as the source, while documents are written and deleted there.

usage: migrating.py EMULATOR HEARTH --binary FILE [--documents N]
  EMULATOR, HEARTH   HOST:PORT of the official emulator and of Hearth
  --binary FILE      the program hearth
  --documents N      documents before the migration (default 1000)

Exits 1 if both sides differ in the end.
"""

import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import urllib.request

PROJECT = "migrate"
ROOT = f"projects/{PROJECT}/databases/(default)/documents"


def post(server, path, body):
    # The emulator takes this token for that of an administrator.
    headers = {"Content-Type": "application/json", "Authorization": "Bearer owner"}
    request = urllib.request.Request(f"http://{server}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.load(reply)


def update(path, number):
    fields = {
        "n": {"integerValue": str(number)},
        "d": {"doubleValue": number / 3},
        "r": {"referenceValue": f"{ROOT}/other/x"},
        "t": {"timestampValue": "2020-01-01T00:00:00.123456Z"},
        "m": {"mapValue": {"fields": {"z": {"nullValue": None}, "a": {"arrayValue": {"values": [{"stringValue": "é"}]}}}}},
        "b": {"bytesValue": "AAEC"},
        "g": {"geoPointValue": {"latitude": 1.5, "longitude": -2}},
    }
    return {"update": {"name": f"{ROOT}/{path}", "fields": fields}}


def commit(server, writes):
    for start in range(0, len(writes), 100):
        post(server, f"/v1/{ROOT}:commit", {"writes": writes[start : start + 100]})


def read(server):
    """All documents: {path: fields as JSON}."""
    query = {"from": [{"allDescendants": True}], "orderBy": [{"field": {"fieldPath": "__name__"}}]}
    rows = post(server, f"/v1/{ROOT}:runQuery", {"structuredQuery": query})
    documents = [row["document"] for row in rows if "document" in row]
    return {
        d["name"].split("/documents/", 1)[1]: json.dumps(normal(d.get("fields", {})), sort_keys=True)
        for d in documents}


def normal(value):
    """The same JSON with one form of each number: one side writes 2.0 and the other 2."""
    if isinstance(value, dict):
        return {key: normal(member) for key, member in value.items()}
    if isinstance(value, list):
        return [normal(element) for element in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("emulator")
    parser.add_argument("hearth")
    parser.add_argument("--binary", required=True)
    parser.add_argument("--documents", type=int, default=1000)
    options = parser.parse_args()
    seed = random.randrange(1 << 32)
    print(f"migrating: seed {seed}", flush=True)
    draw = random.Random(seed)

    paths = [f"books/b{n}" for n in range(options.documents)]
    # Some documents lie below others that do not exist; one id is a number of Datastore's.
    paths += [f"users/u{n % 17}/loans/l{n}" for n in range(options.documents)] + ["books/__id7__", "ü/x y"]
    commit(options.emulator, [update(path, n) for n, path in enumerate(paths)])
    commit(options.hearth, [update("old/o", 1), update("books/b1", -1)])

    with tempfile.TemporaryDirectory() as scratch:
        token = pathlib.Path(scratch, "token")
        token.write_text("owner\n")
        command = [
            options.binary, "migrate", "--from-firestore", PROJECT, "--endpoint", options.emulator, "--plain",
            "--token-file", str(token), "--to", options.hearth, "--state", f"{scratch}/state", "--yes", "--follow"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(300):
            path = draw.choice(paths)
            write = {"delete": f"{ROOT}/{path}"} if draw.random() < 0.3 else update(path, 10_000 + number)
            commit(options.emulator, [write])
        commit(options.emulator, [update("new/n", 1)])
        for line in process.stderr:
            print(f"migrating: {line}", end="", flush=True)
            if line.startswith("caught up"):
                break
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=300)
        print(output + errors, end="", flush=True)
        if process.returncode != 0:
            sys.exit(f"migrating: exit status {process.returncode}")

    expected, found = read(options.emulator), read(options.hearth)
    differences = [path for path in expected.keys() | found.keys() if expected.get(path) != found.get(path)]
    for path in sorted(differences)[:10]:
        print(f"{path}: {expected.get(path)} became {found.get(path)}")
    if differences or not expected:
        sys.exit(f"migrating: {len(differences)} of {len(expected)} documents differ")
    print(f"migrating: {len(expected)} documents are equal", flush=True)


main()
