"""Lists the documents of a data directory with Python's lmdb package and the official protobuf classes.

usage: lmdb_documents.py DIRECTORY
Prints a line for each document: its name, a tab, and its fields as JSON. docs/storage.md explains the steps.
"""

import json
import os
import struct
import sys

import lmdb
from google.cloud.firestore_v1.types import Document


def files(runs):
    """The LMDB files of a manifest, the newest run first, with the key from which on each is used."""
    with open(os.path.join(runs, "MANIFEST"), "rb") as file:
        manifest = file.read()
    run_count, place = struct.unpack_from("<Q", manifest, 40)[0], 56
    for _ in range(run_count):
        _, _, _, part_count, bound_bytes = struct.unpack_from("<5Q", manifest, place)
        bound, place = manifest[place + 40 : place + 40 + bound_bytes], place + 40 + bound_bytes
        for _ in range(part_count):
            number, _, _, kind = struct.unpack_from("<4Q", manifest, place)
            place += 32
            if kind == 1:
                yield os.path.join(runs, f"{number:016x}.mdb"), bound
            bound = b""


def newest(runs):
    """The newest value of each key that has one. Starts over if a merge removes a file meanwhile."""
    while True:
        found = {}
        try:
            for path, bound in files(runs):
                with lmdb.open(path, readonly=True, lock=False, subdir=False) as environment:
                    with environment.begin() as transaction:
                        for key, value in transaction.cursor():
                            version, is_value = struct.unpack_from("<QB", value, 4)
                            # Documents have their version in the key too.
                            name = key[:-8] if key[0] == 0x10 else key
                            if name >= bound and version > found.get(name, (0, None))[0]:
                                found[name] = (version, value[13:] if is_value else None)
            return {name: value for name, (_, value) in found.items() if value is not None}
        except (FileNotFoundError, lmdb.Error):
            continue


def segments(key):
    """The ids of a collection path and of the document, from the bytes after the database."""
    place, ids = 0, []
    while place < len(key):
        kind, place = key[place], place + 1
        if kind == 2:
            ids.append(f"__id{struct.unpack_from('>Q', key, place)[0] - (1 << 63)}__")
            place += 8
        elif kind == 3:
            end = key.index(0, place)
            ids.append(key[place:end].replace(b"\1\1", b"\0").replace(b"\1\2", b"\1").decode())
            place = end + 1
    return ids


def varint(data, place):
    number, shift = 0, 0
    while True:
        number |= (data[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 0x80:
            return number, place


def documents(directory):
    values = newest(os.path.join(directory, "runs"))
    databases = {value[:4]: value[4:].decode() for key, value in values.items() if key[:2] == b"\1d"}
    for key, record in sorted(values.items()):
        if key[0] != 0x10:
            continue
        place = 9 if record[0] & 1 else 1
        path = "/".join(segments(key[5:])) if not record[0] & 2 else None
        if path is None:
            length, place = varint(record, place)
            path, place = record[place : place + length].decode(), place + length
        database = databases[struct.pack("<I", struct.unpack_from(">I", key, 1)[0])]
        yield f"{database}/documents/{path}", Document.deserialize(record[place:])


def line(name, document):
    fields = Document.to_dict(document)["fields"]
    return f"{name!r}\t{json.dumps(fields, sort_keys=True, default=str)}"


if __name__ == "__main__":
    for found in sorted(line(*found) for found in documents(sys.argv[1])):
        print(found)
