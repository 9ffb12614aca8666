"""Lists documents again and again with Python's lmdb package while a server writes and merges runs.

usage: lmdb_while_merging.py HOST:PORT DIRECTORY

The documents of the collection `c` do not change meanwhile: each list must have all of them as the API returns them.
Prints the number of lists, and of the LMDB files that were there at one time and gone later.
"""

import os
import random
import sys
import threading

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

import lmdb_documents
import official_documents

BATCHES = 50
WRITES = 300


def write():
    """Writes documents of other collections, until runs have been merged several times."""
    client = firestore.Client(project="interop", credentials=AnonymousCredentials())
    choice = random.Random(5)
    for _ in range(BATCHES):
        batch = client.batch()
        for _ in range(WRITES):
            place = client.collection("noise").document(str(choice.randrange(4_000)))
            batch.set(place, {"text": choice.randbytes(1_000).hex()})
        batch.commit()


def kept(directory):
    """The lines of the documents of `c` and below."""
    found = lmdb_documents.documents(directory)
    return sorted(lmdb_documents.line(*one) for one in found if "/documents/c/" in one[0])


if __name__ == "__main__":
    target, directory = sys.argv[1:]
    os.environ["FIRESTORE_EMULATOR_HOST"] = target
    expected = sorted(
        lmdb_documents.line(*one) for one in official_documents.documents(target) if "/documents/c/" in one[0]
    )
    assert expected and kept(directory) == expected
    writer = threading.Thread(target=write)
    writer.start()
    lists, seen, gone = 0, set(), set()
    while writer.is_alive():
        assert kept(directory) == expected
        lists += 1
        files = {path for path, _ in lmdb_documents.files(os.path.join(directory, "runs"))}
        gone |= seen - files
        seen |= files
    writer.join()
    print(lists, len(gone))
