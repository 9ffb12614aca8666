"""Managed exports in both directions: the official emulator, Hearth, and Google's own messages as a third reader.

usage: run.py EMULATOR HEARTH --binary FILE [--seed N] [--documents N]
  EMULATOR, HEARTH   HOST:PORT of the official emulator and of Hearth
  --binary FILE      the program hearth
  --seed N           the seed of the random documents; drawn and printed without
  --documents N      so many random documents after the chosen ones (default 300)

Needs protobuf and appengine-python-standard. Exits 1 at the first difference.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import entities
import logs
from google.appengine.datastore import entity_bytes_pb2

ROOT = "projects/{}/databases/(default)/documents"


def post(server, path, body):
    request = urllib.request.Request(
        f"http://{server}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        sys.exit(f"{path}: {error.code} {error.read().decode()}")


def write(server, project, documents):
    names = list(documents)
    for start in range(0, len(names), 100):
        writes = [
            {"update": {"name": f"{ROOT.format(project)}/{path}", "fields": documents[path]}}
            for path in names[start : start + 100]]
        post(server, f"/v1/{ROOT.format(project)}:commit", {"writes": writes})


def read(server, project):
    """All documents of a database: {path: {field: normal value}}."""
    found = {}
    for collection in ["c", "s", "a b"]:
        query = {"from": [{"collectionId": collection, "allDescendants": True}]}
        for row in post(server, f"/v1/{ROOT.format(project)}:runQuery", {"structuredQuery": query}):
            if "document" in row:
                path = row["document"]["name"].split("/documents/", 1)[1]
                found[path] = normal(row["document"].get("fields", {}))
    return found


def normal(fields):
    return {name: entities.normal(value) for name, value in fields.items()}


def compare(title, expected, found):
    for path in sorted(expected.keys() | found.keys()):
        if expected.get(path) != found.get(path):
            sys.exit(f"{title}: {path}\n  expected {expected.get(path)}\n  found    {found.get(path)}")
    print(f"{title}: {len(found)} documents")


# Documents


def random_value(rng, depth=3, in_array=False):
    kinds = ["null", "boolean", "integer", "double", "string", "bytes", "timestamp", "reference", "point"]
    if depth:
        kinds += ["map", "map"] + ([] if in_array else ["array", "array", "vector"])
    kind = rng.choice(kinds)
    if kind == "null":
        return {"nullValue": None}
    if kind == "boolean":
        return {"booleanValue": rng.random() < 0.5}
    if kind == "integer":
        return {"integerValue": str(rng.choice([0, -1, 2**63 - 1, -(2**63), rng.randrange(1000)]))}
    if kind == "double":
        return {"doubleValue": rng.choice([0.5, -1e300, 5e-324, "NaN", "Infinity", "-Infinity", rng.random()])}
    if kind == "string":
        return {"stringValue": rng.choice(["", "a", "é", "😀", "x" * rng.randrange(3000), "a\x00b"])}
    if kind == "bytes":
        return {"bytesValue": rng.choice(["", "AAEC", "/////w=="])}
    if kind == "timestamp":
        return {"timestampValue": rng.choice([
            "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999Z", "2026-01-31T12:00:00.000001Z"])}
    if kind == "reference":
        project = rng.choice(["other-p", "source"])
        path = rng.choice(["c/x", "c/__id7__", "c/missing/s/__id-7__"])
        return {"referenceValue": f"{ROOT.format(project)}/{path}"}
    if kind == "point":
        return {"geoPointValue": {"latitude": rng.choice([0, -90, 47.5]), "longitude": rng.choice([180, -8.25])}}
    if kind == "map":
        return {"mapValue": {"fields": random_fields(rng, depth - 1)}}
    if kind == "vector":
        values = [{"doubleValue": rng.random()} for _ in range(1 + rng.randrange(4))]
        vector = {"__type__": {"stringValue": "__vector__"}, "value": {"arrayValue": {"values": values}}}
        return {"mapValue": {"fields": vector}}
    return {"arrayValue": {"values": [random_value(rng, depth - 1, True) for _ in range(rng.randrange(4))]}}


def random_fields(rng, depth=3):
    names = ["a", "a.b", "a b", "b", "é", "__", "value", "x" * 200]
    return {rng.choice(names): random_value(rng, depth) for _ in range(rng.randrange(6))}


def sample(rng, count):
    documents = {
        "c/empty": {}, "c/__id7__": {"n": {"integerValue": "7"}}, "c/__id-7__/s/k": {"n": {"nullValue": None}},
        "c/missing/s/deep": {}, "c/é 😀/a b/x": {"s": {"stringValue": "y"}},
        # A record of several fragments.
        "c/long": {"s": {"stringValue": "x" * 70_000}, "b": {"bytesValue": "AAEC" * 20_000}},
        "c/many": {"a": {"arrayValue": {"values": [{"integerValue": str(n)} for n in range(2000)]}}},
    }
    for number in range(count):
        documents[f"c/r{number}" if number % 3 else f"c/r{number}/s/x"] = random_fields(rng)
    return documents


# Exports


def emulator_export(emulator, project, folder, name):
    body = {
        "database": ROOT.format(project).removesuffix("/documents"), "export_directory": str(folder),
        "export_name": name}
    post(emulator, f"/emulator/v1/projects/{project}:export", body)
    return folder / name


def emulator_import(emulator, project, metadata):
    body = {"database": ROOT.format(project).removesuffix("/documents"), "export_directory": str(metadata)}
    post(emulator, f"/emulator/v1/projects/{project}:import", body)


def data_records(folder):
    for path in sorted(folder.rglob("output-*")):
        yield from logs.records(path.read_bytes())


def hearth(binary, address, *words):
    outcome = subprocess.run(
        [binary, *map(str, words), "--address", address, "--quiet"], capture_output=True, text=True)
    if outcome.returncode:
        sys.exit(f"hearth {' '.join(map(str, words))}: {outcome.stderr}")
    return outcome.stdout


def look_alike(folder, rng):
    """An export as one of the cloud may look, from Google's own messages: documents and Datastore's types."""
    expected = {}

    def one(path, add, fields):
        expected[path] = normal(fields)
        return entities.entity("cloud-p", path, add)

    def old_types(message):
        for name, meaning in [("link", 2), ("email", 8), ("text", 15), ("key", 17)]:
            property = message.property.add(name=name, multiple=False, meaning=meaning)
            property.value.stringValue = name.encode()
        message.property.add(name="rating", multiple=False, meaning=13).value.int64Value = 5
        message.raw_property.add(name="short", multiple=False, meaning=16).value.stringValue = b"\xff"
        user = message.property.add(name="user", multiple=False).value.uservalue
        user.email, user.auth_domain, user.gaiaid = "ada@example.com", "example.com", 0

    old_fields = {name: {"stringValue": name} for name in ["link", "email", "text", "key"]}
    old_fields |= {
        "rating": {"integerValue": "5"}, "short": {"bytesValue": "/w=="}, "user": {"stringValue": "ada@example.com"}}

    def indexed(number):
        def add(message):
            for element in [number, number + 1]:
                message.property.add(name="list", multiple=True).value.int64Value = element
            message.property.add(name="at", multiple=False, meaning=7).value.int64Value = number
            message.raw_property.add(name="long", multiple=False).value.stringValue = b"x" * 2000

        return add

    def indexed_fields(number):
        values = [{"integerValue": str(element)} for element in [number, number + 1]]
        return {
            "list": {"arrayValue": {"values": values}}, "long": {"stringValue": "x" * 2000},
            "at": {"timestampValue": f"1970-01-01T00:00:00.{number:06}Z"}}

    collections = {"c": [one("c/old", old_types, old_fields)], "s": []}
    for number in range(500):
        kind, path = rng.choice([("c", f"c/n{number}"), ("s", f"c/m/s/__id{number + 1}__")])
        collections[kind].append(one(path, indexed(number), indexed_fields(number)))
    parts = []
    for kind, found in collections.items():
        part = folder / "all_namespaces" / f"kind_{kind}"
        part.mkdir(parents=True)
        metadata = part / f"all_namespaces_kind_{kind}.export_metadata"
        # The first message of the emulator's file, then each data file.
        text = bytes([0x0A, 6, 0x0A, 4]) + b"2026"
        for number in range(3):
            name = f"output-{number}".encode()
            (part / name.decode()).write_bytes(logs.log(found[number::3]))
            text += bytes([0x12, 2 + 2 + len(name), 0x0A, 0, 0x12, len(name)]) + name
        metadata.write_bytes(text)
        path = str(metadata.relative_to(folder)).encode()
        inner = bytes([0x12, len(path)]) + path + b"\x18" + varint(len(found))
        parts.append(b"\x0A" + varint(len(inner)) + inner)
    (folder / "2026.overall_export_metadata").write_bytes(logs.log([b"3", b"".join(parts)]))
    return expected


def varint(number):
    output = bytearray()
    while number >= 0x80:
        output.append(number & 0x7F | 0x80)
        number >>= 7
    output.append(number)
    return bytes(output)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("emulator")
    parser.add_argument("hearth")
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--documents", type=int, default=300)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    documents = sample(rng, arguments.documents)
    address = arguments.hearth
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(arguments.emulator, "source", documents)
        write(address, "source", documents)
        expected = read(arguments.emulator, "source")
        compare("the same writes", expected, read(address, "source"))

        theirs = emulator_export(arguments.emulator, "source", folder, "theirs")
        hearth(arguments.binary, address, "import", theirs, "--project", "imported")
        compare("the emulator's export in Hearth", expected, read(address, "imported"))

        ours = folder / "ours"
        hearth(arguments.binary, address, "export", "--format", "managed", "--project", "source", "--output", ours)
        records = list(data_records(ours))
        found = {path: normal(fields) for path, fields in entities.documents(records).items()}
        compare("Hearth's export, read with Google's messages", expected, found)
        metadata = ours / "firestore_export" / "firestore_export.overall_export_metadata"
        emulator_import(arguments.emulator, "back", metadata)
        compare("Hearth's export in the emulator", expected, read(arguments.emulator, "back"))

        # The emulator's bytes and ours are those of the same messages.
        messages = [
            {path_bytes(record): message_parts(record) for record in source}
            for source in [data_records(theirs), records]]
        if messages[0] != messages[1]:
            wrong = [path for path in messages[0] if messages[0][path] != messages[1].get(path)]
            print(f"different messages for equal documents: {wrong[:3]}")
            sys.exit(1)
        print(f"the same messages: {len(records)} entities")

        cloud = folder / "cloud"
        expected = look_alike(cloud, rng)
        report = hearth(arguments.binary, address, "import", cloud, "--project", "cloud")
        compare("a look-alike of a cloud export in Hearth", expected, read(address, "cloud"))
        if "converted: 1 ratings became integers" not in report:
            sys.exit(f"the conversions are not reported: {report}")


def path_bytes(record):
    return entity_bytes_pb2.EntityProto.FromString(record).key.SerializeToString()


def message_parts(record):
    """The properties of an entity in an order that does not matter; those of maps too. A negative zero is a zero."""
    message = entity_bytes_pb2.EntityProto.FromString(record)
    return sorted((name, property_parts(property)) for name, property in (
        [("indexed", property) for property in message.property]
        + [("raw", property) for property in message.raw_property]))


def property_parts(property):
    if entities.meaning(property) != 19:
        return repr(property.SerializeToString(deterministic=True))
    return repr((property.name, property.multiple, message_parts(property.value.stringValue)))


if __name__ == "__main__":
    main()
