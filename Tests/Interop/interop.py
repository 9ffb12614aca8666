"""The Python side of DocumentCodingTests/Interop/PythonInteropTests.swift: the official message classes of google-cloud-firestore.

usage: interop.py make SEED COUNT    writes COUNT random documents to stdout
       interop.py echo               reads documents from stdin; writes each back as the classes serialize it

A document on a pipe is its length (four bytes, big-endian) and its bytes, `google.firestore.v1.Document` with fields alone.
`make` writes two for each: the serialized document, and a description of its fields as JSON in the notation of describe().
`echo` writes two for each: the document serialized again with sorted maps, and its description.
"""

import json
import math
import random
import struct
import sys

from google.cloud.firestore_v1.types import document as types

Document = types.Document.pb()
Value = types.Value.pb()


def describe(value):
    """A value as JSON that keeps every bit: [type, content]."""
    kind = value.WhichOneof("value_type")
    if kind == "null_value":
        return ["null", None]
    if kind == "boolean_value":
        return ["boolean", value.boolean_value]
    if kind == "integer_value":
        return ["integer", str(value.integer_value)]
    if kind == "double_value":
        if math.isnan(value.double_value):
            return ["double", "nan"]
        return ["double", struct.pack(">d", value.double_value).hex()]
    if kind == "timestamp_value":
        return ["timestamp", [str(value.timestamp_value.seconds), str(value.timestamp_value.nanos)]]
    if kind == "string_value":
        return ["string", value.string_value.encode().hex()]
    if kind == "bytes_value":
        return ["bytes", value.bytes_value.hex()]
    if kind == "reference_value":
        return ["reference", value.reference_value.encode().hex()]
    if kind == "geo_point_value":
        point = value.geo_point_value
        return ["geo", [struct.pack(">d", point.latitude).hex(), struct.pack(">d", point.longitude).hex()]]
    if kind == "array_value":
        return ["array", [describe(element) for element in value.array_value.values]]
    if kind == "map_value":
        return ["map", describe_fields(value.map_value.fields)]
    return ["unset", None]


def describe_fields(fields):
    return sorted([key.encode().hex(), describe(value)] for key, value in fields.items())


TEXTS = ["", "a", "title", "é", "e\u0301", "日本", "😀", "\0", "a\0b", "\u007f", "x" * 127, "y" * 128, "z" * 20000]
INTEGERS = [0, 1, -1, 127, 128, 300, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, 1.0, -1.5, 0.1, 1e300, 5e-324, math.inf, -math.inf, math.nan]


def fill(value, rng, depth, in_array=False):
    kind = rng.randrange(12 if depth > 0 else 9)
    if kind == 0:
        value.null_value = 0
    elif kind == 1:
        value.boolean_value = rng.random() < 0.5
    elif kind == 2:
        value.integer_value = rng.choice(INTEGERS + [rng.randrange(-(2**63), 2**63)])
    elif kind == 3:
        value.double_value = rng.choice(DOUBLES + [rng.uniform(-1e6, 1e6)])
    elif kind == 4:
        value.timestamp_value.seconds = rng.choice([0, -1, 1, -62135596800, 253402300799, rng.randrange(-(10**9), 10**9)])
        value.timestamp_value.nanos = rng.choice([0, 1000, 999999000, rng.randrange(10**6) * 1000])
    elif kind == 5:
        value.string_value = rng.choice(TEXTS)
    elif kind == 6:
        value.bytes_value = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 5, 200])))
    elif kind == 7:
        value.reference_value = "projects/p/databases/(default)/documents/c%d/é" % rng.randrange(10)
    elif kind == 8:
        value.geo_point_value.latitude = rng.choice([0.0, -0.0, 90.0, rng.uniform(-90, 90)])
        value.geo_point_value.longitude = rng.choice([0.0, -0.0, -180.0, rng.uniform(-180, 180)])
    elif kind == 9 and not in_array:
        value.array_value.SetInParent()
        for _ in range(rng.randrange(5)):
            fill(value.array_value.values.add(), rng, depth - 1, in_array=True)
    else:
        value.map_value.SetInParent()
        fill_fields(value.map_value.fields, rng, depth - 1)


def fill_fields(fields, rng, depth):
    for _ in range(rng.randrange(7)):
        name = rng.choice([text for text in TEXTS if 0 < len(text.encode()) <= 1500] + ["k%d" % rng.randrange(100)])
        fill(fields[name], rng, depth)


def write(data):
    sys.stdout.buffer.write(struct.pack(">I", len(data)) + data)


def describe_document(document):
    return json.dumps(describe_fields(document.fields)).encode()


def make(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        document = Document()
        fill_fields(document.fields, rng, 4)
        write(document.SerializeToString())
        write(describe_document(document))


def echo():
    stream = sys.stdin.buffer
    while header := stream.read(4):
        document = Document.FromString(stream.read(struct.unpack(">I", header)[0]))
        write(document.SerializeToString(deterministic=True))
        write(describe_document(document))


if sys.argv[1] == "make":
    make(int(sys.argv[2]), int(sys.argv[3]))
else:
    echo()
