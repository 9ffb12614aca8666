"""The official Python client against a server, for Tests/OfficialClientTests: what the client's own suite does not reach.

usage: official_client.py HOST:PORT SCENARIO [ARGUMENTS]

Each scenario is a function below; an assertion that fails ends the program with its traceback and status 1.
"""

import asyncio
import datetime
import math
import os
import sys
import threading
import time

from google.api_core import exceptions
from google.api_core.retry import Retry
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1 import transforms
from google.cloud.firestore_v1.base_query import FieldFilter, Or
from google.cloud.firestore_v1.vector import Vector

from assertions import refused

NO_RETRY = Retry(predicate=lambda error: False)


def client(project="interop", **options):
    return firestore.Client(project=project, credentials=AnonymousCredentials(), **options)


# Values


def same(left, right):
    """Equality that tells integers from doubles, and zeros by their sign; NaN equals itself."""
    if isinstance(left, (bool, int, float)) and type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (left == right and math.copysign(1, left) == math.copysign(1, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, firestore.GeoPoint):
        return same(left.latitude, right.latitude) and same(left.longitude, right.longitude)
    if isinstance(left, Vector):
        return same(list(left), list(right))
    return left == right


def values():
    """Every type is written, read, updated one field at a time, and comes back as it was given."""
    db = client()
    utc = datetime.timezone.utc
    given = {
        "null": None,
        "booleans": [True, False],
        "integers": [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
        "doubles": [0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan],
        "time": datetime.datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=utc),
        "early": datetime.datetime(1, 1, 1, tzinfo=utc),
        "late": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=utc),
        "text": "a\0b \u00e9 e\u0301 \u65e5\u672c \U0001f600 \uffff",
        "empty": {"text": "", "bytes": b"", "list": [], "map": {}},
        "bytes": bytes(range(256)),
        "reference": db.document("a", "b", "c", "\u00e9"),
        "point": firestore.GeoPoint(-90.0, 180.0),
        "vector": Vector([1.0, -0.5, 1e-9]),
        "map": {"deep": {"er": [{"est": 1}]}, "`": 1, "a.b": 2, "\u00e9": 3},
    }
    document = db.collection("values").document("all")
    document.set(given)
    assert same(document.get().to_dict(), given), document.get().to_dict()
    # One field after the other becomes each of the values, by an update.
    other = db.collection("values").document("one")
    other.create({"x": "nothing yet", "kept": 1})
    before = other.get().update_time
    for name, value in given.items():
        other.update({"x": value})
        snapshot = other.get()
        assert same(snapshot.to_dict(), {"x": value, "kept": 1}), (name, snapshot.to_dict())
        assert snapshot.update_time > before
        before = snapshot.update_time
    other.update({"x": transforms.DELETE_FIELD, "map.`a.b`.c": given["map"]})
    assert same(other.get().to_dict(), {"kept": 1, "map": {"a.b": {"c": given["map"]}}})
    # Transforms, each seeing the one before.
    other.set({"n": 2**63 - 2, "list": [1, "a"], "d": 1})
    other.update({"n": firestore.Increment(5), "list": firestore.ArrayUnion([1.0, "b", None]), "d": firestore.Increment(0.5)})
    assert same(other.get().to_dict(), {"n": 2**63 - 1, "list": [1, "a", "b", None], "d": 1.5})
    other.update({"n": firestore.Minimum(3), "d": firestore.Maximum(2), "list": firestore.ArrayRemove([1, None])})
    assert same(other.get().to_dict(), {"n": 3, "list": ["a", "b"], "d": 2})
    # Found by each value again.
    for value in (None, True, 2**63 - 1, 0.1, given["time"], given["text"], given["bytes"], given["reference"], given["point"]):
        other.set({"x": value})
        found = db.collection("values").where(filter=FieldFilter("x", "==", value)).get()
        assert [snapshot.id for snapshot in found] == ["one"], value


# Limits


def limits():
    """What is too large, too deep or too much is refused with the right code, and the connection goes on."""
    db = client()
    documents = db.collection("limits")
    full = documents.document("full")
    full.set({"b": b"x" * 1_048_400})
    refused(exceptions.InvalidArgument, lambda: full.set({"b": b"x" * 1_048_488}))
    refused(exceptions.InvalidArgument, lambda: full.set({"a": "x" * 1_000_000, "b": "y" * 100_000}))
    nested = 1
    for _ in range(21):
        nested = {"n": nested}
    # The document itself is no level: twenty maps within it.
    full.set(nested)
    refused(exceptions.InvalidArgument, lambda: full.set({"n": nested}))
    refused(exceptions.InvalidArgument, lambda: full.set({"x" * 1501: 1}))
    refused(exceptions.InvalidArgument, lambda: full.set({"__reserved__": 1}))
    refused(exceptions.InvalidArgument, lambda: full.set({"a": [[1]]}))
    refused(exceptions.InvalidArgument, lambda: documents.document("__reserved__").set({}))
    refused(exceptions.InvalidArgument, lambda: documents.document("x" * 1501).set({}))
    refused(exceptions.InvalidArgument, lambda: full.update({f"f{number}": firestore.Increment(1) for number in range(501)}))
    # A request beyond 10 MiB, however it is made up.
    batch = db.batch()
    for number in range(11):
        batch.set(documents.document(f"big{number}"), {"b": b"x" * 1_000_000})
    refused(exceptions.ResourceExhausted, lambda: batch.commit(retry=NO_RETRY))
    assert not documents.document("big0").get().exists
    # No limit on the number of writes.
    batch = db.batch()
    for number in range(2_000):
        batch.set(documents.document(f"many{number}"), {"n": number})
    assert len(batch.commit()) == 2_000
    many = [FieldFilter("n", "==", number) for number in range(31)]
    assert len(documents.where(filter=Or(many[:30])).get()) == 30
    refused(exceptions.InvalidArgument, lambda: documents.where(filter=Or(many)).get(retry=NO_RETRY))
    refused(exceptions.InvalidArgument, lambda: documents.where(filter=FieldFilter("n", "not-in", list(range(11)))).get())
    refused(exceptions.NotFound, lambda: documents.document("none").update({"a": 1}), "No document to update: ")
    refused(exceptions.AlreadyExists, lambda: full.create({}), "Document already exists: ")
    assert full.get().exists


def databases():
    """Projects and databases come into being when they are named, and know nothing of each other."""
    places = [
        client(project=project, database=database)
        for project in ("one", "two")
        for database in (None, "second", "third-database")
    ]
    for number, db in enumerate(places):
        assert list(db.collections()) == []
        db.document("c/x").set({"n": number})
        db.document(f"only/in{number}").set({})
    for number, db in enumerate(places):
        assert db.document("c/x").get().to_dict() == {"n": number}
        assert [document.id for document in db.collection("only").list_documents()] == [f"in{number}"]
        assert [snapshot.get("n") for snapshot in db.collection_group("c").stream()] == [number]
        foreign = places[number - 1].document("c/x")
        refused(exceptions.InvalidArgument, lambda: list(db.get_all([foreign])))


# Streams; collection "many" has been loaded with ARGUMENT documents


def deadlines(count):
    """A deadline that passes ends the call there and then; cancelled streams leave nothing behind."""
    db = client()
    many = db.collection("many")
    refused(exceptions.DeadlineExceeded, lambda: list(many.order_by("text").stream(timeout=0.02, retry=NO_RETRY)))
    for taken in range(50):
        stream = db._firestore_api.run_query(
            request={"parent": many._parent_info()[0], "structured_query": many._query()._to_protobuf()}, metadata=db._rpc_metadata
        )
        for _, response in zip(range(1 + taken), stream):
            assert response.read_time is not None
        stream.cancel()
    assert many.limit(3).get()[0].exists
    assert many.count().get()[0][0].value == int(count)


def streams(count):
    """A thousand streams at once, all begun before any goes on."""
    asyncio.run(_streams(int(count)))


async def _streams(count):
    db = firestore.AsyncClient(project="interop", credentials=AnonymousCredentials())
    first = db.collection("many").order_by("n").limit(10)
    begun = asyncio.Event()
    waiting = 0

    async def read():
        nonlocal waiting
        numbers = []
        async for snapshot in first.stream():
            numbers.append(snapshot.get("n"))
            if len(numbers) == 1:
                waiting += 1
                if waiting == count:
                    begun.set()
                await begun.wait()
        assert numbers == list(range(10)), numbers

    await asyncio.gather(*(read() for _ in range(count)))


def slow(count, process):
    """A query of many documents, read a few at a time with pauses: the server produces it as it is read."""

    def memory():
        # Without the pages of mapped files, which the kernel takes back when it needs them.
        with open(f"/proc/{process}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) // 1024

    db = client()
    list(db.collection("many").limit(1_000).stream())
    before = memory()
    stream = db.collection("many").stream()
    highest = before
    seen = 0
    for snapshot in stream:
        seen += 1
        if seen in (1, 10, 100, 1_000):
            time.sleep(0.5)
            highest = max(highest, memory())
    assert seen == int(count), seen
    highest = max(highest, memory())
    # The whole answer has some 60 MB; two windows and a page of it may be under way.
    assert highest - before < 32, f"{before} MB before, {highest} MB at most"
    print(f"{seen} documents, memory {before} MB, at most {highest} MB")


# Reflection


def reflection():
    """A program that knows nothing of Firestore finds its services by reflection, and calls them by what it is told."""
    import grpc
    from google.protobuf import descriptor_pool, json_format, message_factory
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    with grpc.insecure_channel(os.environ["FIRESTORE_EMULATOR_HOST"]) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert sorted(database.get_services()) == [
            "google.firestore.v1.Firestore",
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        ]
        pool = descriptor_pool.DescriptorPool(database)
        service = pool.FindServiceByName("google.firestore.v1.Firestore")
        assert {"GetDocument", "RunQuery", "Listen"} <= {method.name for method in service.methods}
        value = pool.FindMessageTypeByName("google.firestore.v1.Value")
        assert value.fields_by_name["geo_point_value"].message_type.full_name == "google.type.LatLng"
        assert value.fields_by_name["map_value"].containing_oneof.name == "value_type"
        for name in database.get_services():
            # Every type that a method speaks can be resolved, with all that it imports.
            for method in pool.FindServiceByName(name).methods:
                assert method.input_type.file.package and method.output_type.full_name

        def call(service_name, method_name, **fields):
            method = pool.FindServiceByName(service_name).methods_by_name[method_name]
            request = message_factory.GetMessageClass(method.input_type)()
            json_format.ParseDict(fields, request)
            reply = message_factory.GetMessageClass(method.output_type)
            path = f"/{service_name}/{method_name}"
            if method.server_streaming:
                invoke = channel.unary_stream(path, type(request).SerializeToString, reply.FromString)
                return [json_format.MessageToDict(message) for message in invoke(request)]
            return json_format.MessageToDict(channel.unary_unary(path, type(request).SerializeToString, reply.FromString)(request))

        root = "projects/reflection/databases/(default)/documents"
        firestore_service = "google.firestore.v1.Firestore"
        fields = {"n": {"integerValue": "7"}, "place": {"geoPointValue": {"latitude": 52.5, "longitude": 13.4}}}
        created = call(firestore_service, "CreateDocument", parent=root, collectionId="c", documentId="x", document={"fields": fields})
        assert created["name"] == f"{root}/c/x" and created["fields"] == fields
        assert call(firestore_service, "GetDocument", name=f"{root}/c/x") == created
        rows = call(firestore_service, "RunQuery", parent=root, structuredQuery={"from": [{"collectionId": "c"}]})
        assert [row["document"] for row in rows if "document" in row] == [created]
        assert call("grpc.health.v1.Health", "Check") == {"status": "SERVING"}
        try:
            database.FindFileContainingSymbol("nobody.knows.This")
            raise AssertionError("an unknown symbol was found")
        except KeyError:
            pass


# Contention


def contention(processes, each):
    """Processes that change one document in transactions all finish within their attempts, and the sum is exact."""
    children = []
    for number in range(int(processes)):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _increment(number, int(each))
                status = 0
            except BaseException as error:
                print(f"process {number}: {error!r}", file=sys.stderr, flush=True)
            os._exit(status)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    assert not failed, f"{len(failed)} of {processes} processes failed"
    db = client()
    expected = int(processes) * int(each)
    assert db.document("contention/counter").get().get("n") == expected
    accounts = [snapshot.get("n") for snapshot in db.collection("accounts").stream()]
    assert sum(accounts) == expected, accounts


def _increment(number, each):
    db = client()
    counter = db.document("contention/counter")
    account = db.document(f"accounts/a{number % 4}")

    @firestore.transactional
    def run(transaction):
        seen = counter.get(transaction=transaction)
        balance = account.get(transaction=transaction)
        transaction.set(counter, {"n": (seen.get("n") if seen.exists else 0) + 1})
        transaction.set(account, {"n": (balance.get("n") if balance.exists else 0) + 1})

    for _ in range(each):
        run(db.transaction())


def main():
    address, scenario, *arguments = sys.argv[1:]
    os.environ["FIRESTORE_EMULATOR_HOST"] = address
    if scenario != "contention":
        # A call that never comes back would hold the tests up for ever. (No threads where processes are forked.)
        watchdog = threading.Timer(300, lambda: os._exit(3))
        watchdog.daemon = True
        watchdog.start()
    globals()[scenario](*arguments)


if __name__ == "__main__":
    main()
