"""The official Python client over its REST transport, against a server of ours: every method that has a REST form.

usage: rest_client.py PORT      prints nothing and ends with status 0, or tells what differs
"""

import sys

from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1 import types
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports.rest import FirestoreRestTransport

DATABASE = "projects/p/databases/(default)"
ROOT = DATABASE + "/documents"
# The client's own path templates want a document here, not the root.
PARENT = ROOT + "/top/x"
Value = types.Value


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def fails(error, words, call):
    try:
        call()
    except error as caught:
        equal(all(word in caught.message for word in words), True)
        return
    raise AssertionError(f"{error.__name__} was not raised")


def query(**more):
    return types.StructuredQuery(from_=[{"collection_id": "c", "all_descendants": True}], **more)


def main(port):
    client = FirestoreClient(
        transport=FirestoreRestTransport(host=f"127.0.0.1:{port}", url_scheme="http", credentials=AnonymousCredentials()))

    fields = {
        "d": Value(double_value=float("inf")), "b": Value(bytes_value=b"\x00\xff"), "i": Value(integer_value=-(2**63)),
        "n": Value(null_value=0), "m": Value(map_value={"fields": {"é \"": Value(string_value="😀\n")}}),
        "a": Value(array_value={"values": [Value(boolean_value=True), Value(double_value=0.1)]}),
        "g": Value(geo_point_value={"latitude": 1.5, "longitude": -2}), "t": Value(timestamp_value="2020-01-01T00:00:00.123456Z"),
        "r": Value(reference_value=ROOT + "/c/d"),
    }
    request = {"parent": PARENT, "collection_id": "c", "document_id": "a b:é", "document": {"fields": fields}}
    created = client.create_document(request=request)
    equal(created.name, PARENT + "/c/a b:é")
    equal(dict(created.fields), fields)
    equal(dict(client.get_document(request={"name": created.name}).fields), fields)
    fails(exceptions.Conflict, ["Document already exists"], lambda: client.create_document(request=request))
    fails(exceptions.NotFound, ["none"], lambda: client.get_document(request={"name": ROOT + "/c/none"}))

    updated = client.update_document(request={
        "document": {"name": created.name, "fields": {"i": Value(integer_value=6)}}, "update_mask": {"field_paths": ["i", "d"]},
        "mask": {"field_paths": ["i", "d"]}, "current_document": {"update_time": created.update_time}})
    equal(dict(updated.fields), {"i": Value(integer_value=6)})

    equal([row.document.name for row in client.run_query(request={"parent": ROOT, "structured_query": query(limit=3)})], [created.name])
    nothing = list(client.run_query(request={"parent": ROOT, "structured_query": query(offset=5)}))
    equal([row.document.name for row in nothing], [""])
    fails(exceptions.BadRequest, ["offset"], lambda: list(client.run_query(
        request={"parent": ROOT, "structured_query": query(offset=-1)})))
    found = client.batch_get_documents(request={"database": DATABASE, "documents": [ROOT + "/c/zz", created.name]})
    equal([(row.found.name, row.missing) for row in found], [(created.name, ""), ("", ROOT + "/c/zz")])

    transaction = client.begin_transaction(request={"database": DATABASE}).transaction
    read = client.get_document(request={"name": created.name, "transaction": transaction})
    equal(read.fields["i"].integer_value, 6)
    client.rollback(request={"database": DATABASE, "transaction": transaction})

    committed = client.commit(request={"database": DATABASE, "writes": [{
        "update": {"name": ROOT + "/c/2", "fields": {}},
        "update_transforms": [{"field_path": "t", "set_to_server_value": 1}, {"field_path": "n", "increment": Value(integer_value=2)}]}]})
    results = committed.write_results[0].transform_results
    equal((results[0].timestamp_value == committed.commit_time, results[1].integer_value), (True, 2))

    totals = client.run_aggregation_query(request={"parent": ROOT, "structured_aggregation_query": {
        "structured_query": query(), "aggregations": [{"alias": "n", "count": {}}]}})
    equal([row.result.aggregate_fields["n"].integer_value for row in totals], [2])
    equal(list(client.list_collection_ids(request={"parent": ROOT})), ["c", "top"])
    names = [document.name for document in client.list_documents(request={"parent": PARENT, "collection_id": "c", "page_size": 1})]
    equal(names, [created.name])
    batch = client.batch_write(request={"database": DATABASE, "writes": [
        {"delete": ROOT + "/c/2"}, {"delete": ROOT + "/c/3", "current_document": {"exists": True}}]})
    equal([status.code for status in batch.status], [0, 5])
    ordered = query(order_by=[{"field": {"field_path": "__name__"}, "direction": 1}])
    equal(list(client.partition_query(request={"parent": ROOT, "partition_count": 3, "structured_query": ordered})), [])
    client.delete_document(request={"name": created.name})
    fails(exceptions.NotFound, [created.name], lambda: client.get_document(request={"name": created.name}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
