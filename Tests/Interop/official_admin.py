"""The official Python admin client against a server, for Tests/OfficialClientTests.

usage: official_admin.py SOCKET HOST:PORT

SOCKET is the server's admin.sock. An assertion that fails ends the program with its traceback and status 1.
"""

import os
import sys

import grpc
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_admin_v1 import FirestoreAdminClient
from google.cloud.firestore_admin_v1.services.firestore_admin.transports import FirestoreAdminGrpcTransport
from google.cloud.firestore_admin_v1.types import Field, Index
from google.longrunning import operations_pb2
from google.protobuf import descriptor_pool, duration_pb2, field_mask_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from assertions import refused

DATABASE = "projects/interop/databases/(default)"
BOOKS = f"{DATABASE}/collectionGroups/books"
SCOPE = Index.QueryScope
ORDER = Index.IndexField.Order


def admin(target):
    return FirestoreAdminClient(transport=FirestoreAdminGrpcTransport(channel=grpc.insecure_channel(target)))


def by_author():
    return Index(
        query_scope=SCOPE.COLLECTION,
        fields=[
            Index.IndexField(field_path="author", order=ORDER.ASCENDING),
            Index.IndexField(field_path="year", order=ORDER.DESCENDING),
        ],
    )


def single(scope, order):
    return Index(query_scope=scope, fields=[Index.IndexField(field_path="title", order=order)])


def indexes(client):
    operation = client.create_index(parent=BOOKS, index=by_author())
    built = operation.result(timeout=60)
    assert built.state == Index.State.READY, built
    assert built.name.startswith(f"{BOOKS}/indexes/"), built
    paths = [(field.field_path, field.order) for field in built.fields]
    assert paths == [("author", ORDER.ASCENDING), ("year", ORDER.DESCENDING), ("__name__", ORDER.DESCENDING)], paths
    assert operation.metadata.index == built.name, operation.metadata
    assert client.get_index(name=built.name) == built
    refused(exceptions.AlreadyExists, lambda: client.create_index(parent=BOOKS, index=by_author()))

    vector = Index(
        query_scope=SCOPE.COLLECTION_GROUP,
        fields=[
            Index.IndexField(
                field_path="embedding",
                vector_config=Index.IndexField.VectorConfig(dimension=3, flat=Index.IndexField.VectorConfig.FlatIndex()),
            )
        ],
    )
    nearest = client.create_index(parent=BOOKS, index=vector).result(timeout=60)
    assert nearest.fields[-1].vector_config.dimension == 3, nearest
    names = sorted([built.name, nearest.name])
    assert [index.name for index in client.list_indexes(parent=BOOKS)] == names
    assert [index.name for index in client.list_indexes(parent=f"{DATABASE}/collectionGroups/-")] == names
    assert [index.name for index in client.list_indexes(request={"parent": BOOKS, "page_size": 1})] == names
    assert list(client.list_indexes(parent=f"{DATABASE}/collectionGroups/others")) == []

    pages = client.transport.operations_client.list_operations(DATABASE, "")
    assert operation.operation.name in [found.name for found in pages]
    # Complete: there is nothing to cancel, and nothing is stored that could be deleted.
    client.transport.operations_client.cancel_operation(operation.operation.name)
    assert client.get_index(name=built.name).state == Index.State.READY
    refused(
        exceptions.MethodNotImplemented,
        lambda: client.transport.operations_client.delete_operation(operation.operation.name),
    )

    client.delete_index(name=nearest.name)
    refused(exceptions.NotFound, lambda: client.get_index(name=nearest.name))
    refused(exceptions.NotFound, lambda: client.delete_index(name=nearest.name))
    one = Index(query_scope=SCOPE.COLLECTION, fields=[Index.IndexField(field_path="a", order=ORDER.ASCENDING)])
    refused(exceptions.InvalidArgument, lambda: client.create_index(parent=BOOKS, index=one), "not necessary")
    refused(exceptions.InvalidArgument, lambda: client.create_index(parent="books", index=by_author()), "must look like")


def waiting(client, channel):
    """WaitOperation, which the client library does not call by itself."""
    wait = channel.unary_unary(
        "/google.longrunning.Operations/WaitOperation",
        request_serializer=operations_pb2.WaitOperationRequest.SerializeToString,
        response_deserializer=operations_pb2.Operation.FromString,
    )
    index = Index(
        query_scope=SCOPE.COLLECTION,
        fields=[
            Index.IndexField(field_path="year", order=ORDER.ASCENDING),
            Index.IndexField(field_path="author", order=ORDER.ASCENDING),
        ],
    )
    name = client.create_index(parent=BOOKS, index=index).operation.name
    found = wait(operations_pb2.WaitOperationRequest(name=name, timeout=duration_pb2.Duration(seconds=15)))
    assert found.done and found.HasField("response"), found
    try:
        wait(operations_pb2.WaitOperationRequest(name=f"{DATABASE}/operations/index-0000000000000000"))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND, error
    else:
        raise AssertionError("an operation that does not exist was found")


def fields(client):
    title = f"{BOOKS}/fields/title"
    field = client.get_field(name=title)
    assert field.index_config.uses_ancestor_config, field
    assert field.index_config.ancestor_field == f"{DATABASE}/collectionGroups/__default__/fields/*", field
    assert len(field.index_config.indexes) == 3, field

    config = Field.IndexConfig(indexes=[single(SCOPE.COLLECTION_GROUP, ORDER.ASCENDING)])
    changed = client.update_field(
        request={"field": Field(name=title, index_config=config), "update_mask": field_mask_pb2.FieldMask(paths=["index_config"])}
    ).result(timeout=60)
    assert not changed.index_config.uses_ancestor_config, changed
    assert [index.query_scope for index in changed.index_config.indexes] == [SCOPE.COLLECTION_GROUP], changed

    until = f"{BOOKS}/fields/until"
    expiring = client.update_field(
        request={
            "field": Field(name=until, ttl_config=Field.TtlConfig()),
            "update_mask": field_mask_pb2.FieldMask(paths=["ttl_config"]),
        }
    ).result(timeout=60)
    assert expiring.ttl_config.state == Field.TtlConfig.State.ACTIVE, expiring
    assert expiring.index_config.uses_ancestor_config, expiring

    def listed(filter):
        return [field.name for field in client.list_fields(request={"parent": BOOKS, "filter": filter})]

    assert listed("indexConfig.usesAncestorConfig:false") == [title]
    assert listed("ttlConfig:*") == [until]
    assert listed("indexConfig.usesAncestorConfig=false OR ttlConfig:*") == [title, until]
    refused(exceptions.InvalidArgument, lambda: listed("name:x"))

    # Without a configuration in the mask's message the field is as its ancestors are again.
    reverted = client.update_field(request={"field": Field(name=title)}).result(timeout=60)
    assert reverted.index_config.uses_ancestor_config, reverted
    client.update_field(request={"field": Field(name=until)}).result(timeout=60)
    assert listed("") == []
    everywhere = Field(name=f"{DATABASE}/collectionGroups/__default__/fields/*", index_config=Field.IndexConfig())
    refused(exceptions.MethodNotImplemented, lambda: client.update_field(request={"field": everywhere}))


def databases(client):
    assert client.get_database(name=DATABASE).name == DATABASE
    names = [database.name for database in client.list_databases(parent="projects/interop").databases]
    assert names == [DATABASE], names
    refused(exceptions.NotFound, lambda: client.get_database(name="projects/interop/databases/none"))


def reflection(socket):
    """What grpcurl does on a Unix socket: older versions, and Java's client, give its path as the authority."""
    for authority in [socket, "localhost"]:
        with grpc.insecure_channel(f"unix:{socket}", options=[("grpc.default_authority", authority)]) as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            names = database.get_services()
            assert {"google.firestore.admin.v1.FirestoreAdmin", "google.longrunning.Operations", "hearth.admin.v1.Admin"} < set(names)
            pool = descriptor_pool.DescriptorPool(database)
            for name in names:
                # Every type that a method speaks can be resolved, with all that it imports.
                for method in pool.FindServiceByName(name).methods:
                    assert method.input_type.file.package and method.output_type.full_name


def unserved(socket, address):
    """Methods that are not served say where to go."""
    for target in [f"unix:{socket}", address]:
        backups = lambda: admin(target).list_backups(parent="projects/interop/locations/-")
        refused(exceptions.MethodNotImplemented, backups, "hearth backup")
    # An open server on a loopback address takes its callers for administrators.
    assert admin(address).get_database(name=DATABASE).name == DATABASE


def main(socket, address):
    os.environ["FIRESTORE_EMULATOR_HOST"] = address
    database = firestore.Client(project="interop", credentials=AnonymousCredentials())
    for number in range(300):
        database.document(f"books/{number}").set({"author": f"a{number % 7}", "year": number, "title": f"t{number}"})
    client = admin(f"unix:{socket}")
    indexes(client)
    waiting(client, grpc.insecure_channel(f"unix:{socket}"))
    fields(client)
    databases(client)
    reflection(socket)
    unserved(socket, address)


main(*sys.argv[1:])
