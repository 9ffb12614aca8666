"""The official Python client, blocking and asyncio, over TLS with a certificate authority of the tests.

usage: official_tls.py HOST:PORT CA_FILE
"""

import asyncio
import sys
import time

import grpc
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient, FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports import (
    FirestoreGrpcAsyncIOTransport,
    FirestoreGrpcTransport,
)


def blocking(target, credentials):
    client = firestore.Client(project="interop", credentials=AnonymousCredentials())
    channel = grpc.secure_channel(target, credentials)
    client._firestore_api_internal = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel))
    client.collection("tls").document("a").set({"text": "x" * 300_000})
    assert client.collection("tls").document("a").get().to_dict()["text"] == "x" * 300_000
    seen = []
    watch = client.collection("tls").on_snapshot(lambda found, changes, time: seen.append(len(found)))
    client.collection("tls").document("b").set({"n": 1})
    while not seen or seen[-1] != 2:
        time.sleep(0.01)
    watch.unsubscribe()


async def asynchronous(target, credentials):
    client = firestore.AsyncClient(project="interop", credentials=AnonymousCredentials())
    channel = grpc.aio.secure_channel(target, credentials)
    client._firestore_api_internal = FirestoreAsyncClient(transport=FirestoreGrpcAsyncIOTransport(channel=channel))
    assert [found.id async for found in client.collection("tls").order_by("__name__").stream()] == ["a", "b"]


def main(target, ca):
    with open(ca, "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    blocking(target, credentials)
    asyncio.run(asynchronous(target, credentials))


main(*sys.argv[1:])
