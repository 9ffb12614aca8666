"""One server of `google.firestore.v1` over raw gRPC, and its answers in a form that can be compared.

Requests are the official message classes of google-cloud-firestore, so that a request may break every rule that a
client library would keep. An answer holds what a client can rely on: results without times and tokens, or the error's
code and text.
"""

import dataclasses
import re
import urllib.request

import grpc
from google.cloud.firestore_v1.types import common, document, firestore, query, write
from google.protobuf import text_format

Document, Value, MapValue = document.Document.pb(), document.Value.pb(), document.MapValue.pb()
StructuredQuery = query.StructuredQuery.pb()
StructuredAggregationQuery = query.StructuredAggregationQuery.pb()
Cursor = query.Cursor.pb()
Target = firestore.Target.pb()
Write, DocumentTransform = write.Write.pb(), write.DocumentTransform.pb()
Precondition, DocumentMask = common.Precondition.pb(), common.DocumentMask.pb()

STREAMING = {"BatchGetDocuments", "RunQuery", "RunAggregationQuery"}
REQUESTS = {
    name: getattr(firestore, name + "Request").pb()
    for name in (
        "BatchGetDocuments",
        "BatchWrite",
        "BeginTransaction",
        "Commit",
        "CreateDocument",
        "DeleteDocument",
        "GetDocument",
        "ListCollectionIds",
        "ListDocuments",
        "PartitionQuery",
        "RunAggregationQuery",
        "RunQuery",
        "UpdateDocument",
        "Write",
    )
}
RESPONSES = {
    name: getattr(firestore, name + "Response").pb()
    for name in (
        "BatchGetDocuments",
        "BatchWrite",
        "Commit",
        "ListCollectionIds",
        "ListDocuments",
        "PartitionQuery",
        "RunAggregationQuery",
        "RunQuery",
        "Write",
    )
}
RESPONSES.update(CreateDocument=Document, GetDocument=Document, UpdateDocument=Document)


def parsed(kind, text, server):
    """A message of a class from its text, for a server."""
    message = kind()
    # Quotes keep the placeholders from meeting anything else.
    text_format.Parse(text.replace('"ROOT', f'"{server.root}').replace('"DB"', f'"{server.database}"'), message)
    return message


@dataclasses.dataclass(frozen=True)
class Answer:
    """What one call came to: a code's name, an error's text, and the results as readable values."""

    code: str
    text: str = ""
    results: object = None

    def __str__(self):
        results = "" if self.results is None else f" {self.results}"
        return self.code + (f" {self.text}" if self.text else "") + results


class Server:
    """A server under comparison: makes calls in the database of one project and returns answers."""

    def __init__(self, address, project):
        self.address = address
        self.database = f"projects/{project}/databases/(default)"
        self.root = self.database + "/documents"
        # The emulator finds a stream's database in its metadata.
        self.metadata = [("authorization", "Bearer owner"), ("google-cloud-resource-prefix", self.database)]
        # Of the last ListDocuments.
        self.next_page_token = ""
        self.channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", 64 << 20)])

    def name(self, path):
        """The full name of a document or collection; the root for an empty path."""
        return f"{self.root}/{path}" if path else self.root

    def call(self, method, request, timeout=60):
        """Makes one unary or server-streaming call."""
        answered = RESPONSES.get(method)
        parse = answered.FromString if answered else lambda data: None
        kind = self.channel.unary_stream if method in STREAMING else self.channel.unary_unary
        function = kind(f"/google.firestore.v1.Firestore/{method}", request.SerializeToString, parse)
        try:
            reply = function(request, timeout=timeout, metadata=self.metadata)
            messages = list(reply) if method in STREAMING else [reply]
        except grpc.RpcError as error:
            return Answer(error.code().name, self.relative(error.details() or ""))
        return Answer("OK", results=self.describe(method, messages))

    def list_pages(self, request):
        """Makes ListDocuments for one page after the other, and returns the documents of all pages."""
        found = []
        while True:
            answer = self.call("ListDocuments", request)
            if answer.code == "UNKNOWN" and request.page_token:
                # The emulator cannot continue a listing in an order: it is asked for all documents at once.
                request.page_token, request.page_size = "", 0
                return self.call("ListDocuments", request)
            if answer.code != "OK":
                return answer
            found += answer.results
            request.page_token = self.next_page_token
            if not request.page_token:
                return Answer("OK", results=found)

    def write_stream(self, *requests, timeout=20):
        """Sends the messages of a Write stream, ends it, and returns the results of each reply."""
        results = []
        function = self.channel.stream_stream(
            "/google.firestore.v1.Firestore/Write", REQUESTS["Write"].SerializeToString, RESPONSES["Write"].FromString
        )
        try:
            for reply in function(iter(requests), timeout=timeout, metadata=self.metadata):
                results.append([self.write_result(result) for result in reply.write_results])
        except grpc.RpcError as error:
            return Answer(error.code().name, self.relative(error.details() or ""), results)
        return Answer("OK", results=results)

    def transact(self, path, commit):
        """Reads a document in a transaction and commits the writes of a Commit request with it."""
        begin = self.channel.unary_unary(
            "/google.firestore.v1.Firestore/BeginTransaction",
            REQUESTS["BeginTransaction"].SerializeToString,
            firestore.BeginTransactionResponse.pb().FromString,
        )
        request = REQUESTS["BeginTransaction"](database=self.database)
        commit.transaction = begin(request, timeout=60, metadata=self.metadata).transaction
        reading = REQUESTS["BatchGetDocuments"](
            database=self.database, documents=[self.name(path)], transaction=commit.transaction
        )
        read = self.call("BatchGetDocuments", reading)
        return read if read.code != "OK" else self.call("Commit", commit)

    def clear(self):
        """Deletes all documents, by the call that the emulator has for it."""
        url = f"http://{self.address}/emulator/v1/{self.database}/documents"
        with urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=60) as answer:
            return Answer("OK" if answer.status == 200 else str(answer.status))

    def close(self):
        self.channel.close()

    def relative(self, text):
        """A text without what differs from run to run: the name of the database, and versions."""
        return re.sub(r"version \(\d{12,}\)", "version (NUMBER)", text.replace(self.database, "DATABASE"))

    def describe(self, method, messages):
        """The replies of a call without their times and tokens."""
        if method == "RunQuery":
            return [self.document(reply.document) for reply in messages if reply.document.name]
        if method == "RunAggregationQuery":
            return [totals(reply.result.aggregate_fields) for reply in messages]
        if method == "BatchGetDocuments":
            found = [self.document(reply.found) for reply in messages if reply.HasField("found")]
            missing = [self.relative(reply.missing) for reply in messages if reply.HasField("missing")]
            return {"found": sorted(found), "missing": sorted(missing)}
        reply = messages[0]
        if method == "Commit":
            return [self.write_result(result) for result in reply.write_results]
        if method == "BatchWrite":
            return [(status.code, self.relative(status.message)) for status in reply.status]
        if method == "ListDocuments":
            self.next_page_token = reply.next_page_token
            return [self.document(found) for found in reply.documents]
        if method == "ListCollectionIds":
            return list(reply.collection_ids)
        if method == "PartitionQuery":
            return len(reply.partitions)
        return self.document(reply) if reply is not None else None

    def document(self, found):
        return (self.relative(found.name), fields(found.fields))

    @staticmethod
    def write_result(result):
        return [value(each) for each in result.transform_results]


def totals(entries):
    """The totals of an aggregation. The last digits of a double depend on the order in which numbers are added."""
    return {
        name: f"double {entry.double_value:.14g}" if entry.WhichOneof("value_type") == "double_value" else value(entry)
        for name, entry in sorted(entries.items())
    }


def fields(entries):
    """A map of fields, sorted by name."""
    return {name: value(entries[name]) for name in sorted(entries)}


def value(wire):
    """A value as Python shows it: equal texts are equal values."""
    kind = wire.WhichOneof("value_type")
    if kind is None:
        return "unset"
    if kind == "map_value":
        return fields(wire.map_value.fields)
    if kind == "array_value":
        return [value(element) for element in wire.array_value.values]
    if kind == "timestamp_value":
        return f"time {wire.timestamp_value.seconds}.{wire.timestamp_value.nanos:09}"
    if kind == "reference_value":
        return "reference " + wire.reference_value.split("/documents", 1)[-1]
    if kind == "geo_point_value":
        return f"geo {wire.geo_point_value.latitude} {wire.geo_point_value.longitude}"
    if kind == "double_value":
        return f"double {wire.double_value!r}"
    if kind == "null_value":
        return None
    return getattr(wire, kind)
