"""Writes documents and lists them as the API returns them, for Tests/OfficialClientTests.

usage: official_documents.py HOST:PORT SEED

Prints what lmdb_documents.py prints for the data directory. A seed changes, deletes and adds documents of the one before.
"""

import os
import random
import sys

import grpc
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport

from lmdb_documents import line

DATABASE = "projects/interop/databases/(default)"


def change(seed):
    """Short and truncated names, subcollections, values of a few bytes and of several pages; and some deletes."""
    choice = random.Random(seed)
    collection = firestore.Client(project="interop", credentials=AnonymousCredentials()).collection("c")
    for number in range(1, 301):
        long = "x" * (choice.randrange(4) * 70)
        name = choice.choice([f"d{number}", f"__id{number}__", f"{long}\x01{number}", f"{long}é{number}"])
        place = collection.document(name)
        if choice.randrange(3) == 0:
            place = place.collection("below" + long[:210]).document(f"d{number}")
        if choice.randrange(4) == 0:
            place.delete()
        else:
            place.set({"n": number, "of": seed, "text": "y" * choice.choice([3, 400, 1500, 2030, 4200, 20_000])})


def documents(target):
    client = FirestoreClient(transport=FirestoreGrpcTransport(channel=grpc.insecure_channel(target)))
    query = {"from_": [{"all_descendants": True}]}
    parent = f"{DATABASE}/documents"
    for answer in client.run_query({"parent": parent, "structured_query": query}):
        if "document" in answer:
            yield answer.document.name, answer.document


if __name__ == "__main__":
    os.environ["FIRESTORE_EMULATOR_HOST"] = sys.argv[1]
    change(int(sys.argv[2]))
    for found in sorted(line(*found) for found in documents(sys.argv[1])):
        print(found)
