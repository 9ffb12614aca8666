"""A pytest plugin that runs the official client's system tests against an emulator host without their emulator skips.

usage: PYTHONPATH=Tests/Interop/compatibility pytest -p skips_off tests/system/...

The suite decides what to skip by `test__helpers.FIRESTORE_EMULATOR`, which it sets where FIRESTORE_EMULATOR_HOST is set; the
client looks at the same variable to find the server. So the variable stays and the suite's flag is turned off before a test
module reads it. Without the flag the suite wants the key of a service account: it gets one made up here, which the client
ignores because of the variable. Nothing of the client is changed.

The vector tests query documents that the suite expects in the project (its util/bootstrap_vector_index.py): they are written here.
"""

import json
import os
import pathlib
import sys
import tempfile

import pytest


def _make_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "project_id": os.environ["GCLOUD_PROJECT"],
        "private_key_id": "made-up",
        "private_key": key.decode(),
        "client_email": "nobody@invalid",
        "client_id": "1",
        "token_uri": "http://127.0.0.1:1/token",
    }
    path = pathlib.Path(tempfile.mkdtemp()) / "account.json"
    path.write_text(json.dumps(account))
    return str(path)


def pytest_configure(config):
    os.environ["FIRESTORE_APPLICATION_CREDENTIALS"] = _make_key()


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart(collector):
    # The suite's folder is on the path by now or is put there: its helpers are imported before its tests are.
    suite = os.path.join(os.getcwd(), "tests", "system")
    if suite not in sys.path:
        sys.path.insert(0, suite)
    import test__helpers

    test__helpers.FIRESTORE_EMULATOR = False


def pytest_sessionstart(session):
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import firestore
    from google.cloud.firestore_v1.vector import Vector

    for database in (None, os.environ.get("ENTERPRISE_DATABASE", "enterprise-db-native")):
        client = firestore.Client(
            project=os.environ["GCLOUD_PROJECT"], credentials=AnonymousCredentials(), database=database
        )
        for name, embedding, color in (
            ("doc1", [1.0, 2.0, 3.0], "red"),
            ("doc2", [2.0, 2.0, 3.0], "red"),
            ("doc3", [3.0, 4.0, 5.0], "yellow"),
        ):
            client.document("vector_search", name).set({"embedding": Vector(embedding), "color": color})
