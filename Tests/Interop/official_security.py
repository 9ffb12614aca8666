"""The official Python clients against servers with access control, for Tests/OfficialClientTests.

usage: official_security.py HEARTH DIRECTORY SCENARIO

Each scenario is a function below. DIRECTORY has ca.pem, server.pem and server.key for TLS on localhost, and issuer.pem
and keys/issuer.pem, the key pair of an issuer of tokens. An assertion that fails ends the program with status 1.
"""

import asyncio
import base64
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import grpc
import requests
from google.api_core import exceptions
from google.auth import credentials as google_credentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter
from google.oauth2 import service_account
from official_listening import Listener

PROJECT = "shop"
ISSUER = f"https://securetoken.google.com/{PROJECT}"
# Seconds to wait for what must happen.
PATIENCE = 60
# Seconds that the server grants to clocks that differ.
LEEWAY = 60
SCOPE = "https://www.googleapis.com/auth/datastore"

RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /users/{user} {
      allow read, write: if request.auth.uid == user;
    }
    match /notes/{note} {
      allow read: if resource.data.owner == request.auth.uid;
      allow create: if request.resource.data.owner == request.auth.uid;
      allow update, delete: if resource.data.owner == request.auth.uid;
    }
    match /rooms/{room}/messages/{message} {
      allow read: if request.auth.uid in get(/databases/$(database)/documents/rooms/$(room)).data.members;
    }
    match /public/{document} {
      allow read: if true;
    }
  }
}
"""


class Server:
    """A server process with TLS, and the commands that change what it accepts."""

    def __init__(self, hearth, directory):
        self.hearth, self.directory = hearth, directory
        self.process = None
        self.log = directory / "server.log"
        self.principals = directory / "principals.json"
        self.rules = directory / "firestore.rules"
        self.rules.write_text(RULES)

    def start(self, *arguments, tls=True, level="warning"):
        command = [self.hearth, "serve", "--data", self.directory / "data", "--port", "0", "--log-level", level]
        if tls:
            command += ["--tls-cert", self.directory / "server.pem", "--tls-key", self.directory / "server.key"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=log, text=True)
        for line in self.process.stdout:
            if line.startswith("hearth ready on "):
                self.port = int(line.rsplit(":", 1)[1])
                self.url = f"{'https' if tls else 'http'}://localhost:{self.port}"
                return
        raise AssertionError(f"the server did not become ready: {self.log.read_text()}")

    def with_users(self, *arguments, **options):
        """Starts with rules, and with an issuer whose key is the directory's."""
        self.start(
            "--rules", self.rules, "--token-issuer", ISSUER, "--token-keys", self.directory / "keys", *arguments,
            **options)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0, self.log.read_text()
        self.process.stdout.close()

    def token(self, *arguments):
        """What `hearth token` prints."""
        ended = subprocess.run([self.hearth, "token", *arguments], capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def create(self, name, *arguments):
        """A new principal of the project."""
        return self.token("create", name, "--principals", self.principals, "--project", PROJECT, *arguments)

    def key_file(self, name, role, *arguments):
        """The file of a new service account. The server need not run yet: its URL is written by `reach`."""
        path = self.directory / f"{name}.json"
        self.create(
            name, "--role", role, "--service-account", "--url", "https://localhost", "--out", path, *arguments)
        return path

    def reach(self, path):
        """Writes the server's port into a key file, as --url does if the port is known when the file is made."""
        content = json.loads(path.read_text())
        content["token_uri"] = f"{self.url}/token"
        path.write_text(json.dumps(content))
        return content

    def mint(self, uid, **claims):
        return self.token(
            "mint", "--uid", uid, "--key", self.directory / "issuer.pem", "--issuer", ISSUER, "--claims",
            json.dumps(claims))

    def reload(self):
        self.process.send_signal(signal.SIGHUP)


class UserCredentials(google_credentials.Credentials):
    """A user's token, as an app has it: a function returns the token to send with each call."""

    def __init__(self, provide):
        super().__init__()
        self.provide = provide

    def before_request(self, request, method, url, headers):
        self.token = self.provide()
        self.apply(headers)

    def refresh(self, request):
        self.token = self.provide()


def client(server, credentials, kind=firestore.Client):
    return kind(
        project=PROJECT, credentials=credentials, client_options={"api_endpoint": f"localhost:{server.port}"})


def user(server, uid, **claims):
    token = server.mint(uid, **claims)
    return client(server, UserCredentials(lambda: token))


def anonymous(server):
    return client(server, google_credentials.AnonymousCredentials())


def fails(error, body):
    """Runs what must fail, and returns the text of the failure."""
    try:
        body()
    except error as failure:
        return str(failure)
    raise AssertionError(f"it does not fail with {error.__name__}")


def until(condition, what):
    """Waits until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.02)
    return value


class Stream:
    """The responses of Listen for one target, as they come."""

    def __init__(self, db, target):
        self.open = threading.Event()
        self.changed = threading.Condition()
        self.responses = []
        self.failure = None
        request = {"database": db._database_string, "add_target": {"target_id": 2, **target}}
        self.calls = db._firestore_api.listen(requests=self.requests(request), metadata=db._rpc_metadata)
        threading.Thread(target=self.run, daemon=True).start()

    def requests(self, first):
        yield first
        self.open.wait()

    def run(self):
        try:
            for response in self.calls:
                self.take(response, None)
        except exceptions.GoogleAPICallError as failure:
            self.take(None, failure)

    def take(self, response, failure):
        with self.changed:
            if response is not None:
                self.responses.append(response)
            self.failure = failure
            self.changed.notify_all()

    def wait(self, what, condition):
        with self.changed:
            found = self.changed.wait_for(lambda: condition(self) or self.failure, PATIENCE)
        assert condition(self), f"waited in vain until {what}: {found}, {self.responses[-2:]}"

    def until_current(self):
        self.wait("the target is current", lambda it: any(
            found.target_change.target_change_type.name == "CURRENT" for found in it.responses))

    def until_removed(self):
        """Waits until the target is removed; returns its cause's code."""
        def removals():
            return [found.target_change for found in self.responses
                    if found.target_change.target_change_type.name == "REMOVE"]

        self.wait("the target is removed", lambda it: removals())
        return removals()[0].cause.code

    def until_failure(self):
        self.wait("the stream fails", lambda it: it.failure)
        return self.failure

    def close(self):
        self.open.set()
        self.calls.cancel()


def documents_of(db, path):
    return {"documents": {"documents": [db.document(path)._document_path]}}


def exercise(db):
    """Writes, reads, a query, a transaction and a listener."""
    items = db.collection("items")
    listener = Listener(items)
    listener.wait_for({found.id: found.to_dict() for found in items.stream()})
    items.document("a").set({"n": 1})
    assert items.document("a").get().to_dict() == {"n": 1}

    @firestore.transactional
    def increase(transaction):
        found = items.document("a").get(transaction=transaction)
        transaction.update(found.reference, {"n": found.get("n") + 1})

    increase(db.transaction())
    assert [found.id for found in items.where(filter=FieldFilter("n", "==", 2)).stream()] == ["a"]
    listener.wait_for({"a": {"n": 2}})
    items.document("a").delete()
    listener.wait_for({})
    listener.close()


async def exercise_asynchronously(db):
    items = db.collection("items")
    await items.document("b").set({"n": 1})

    @firestore.async_transactional
    async def increase(transaction):
        found = await items.document("b").get(transaction=transaction)
        transaction.update(found.reference, {"n": found.get("n") + 1})

    await increase(db.transaction())
    assert [found.to_dict() async for found in items.order_by("n").stream()] == [{"n": 2}]
    await items.document("b").delete()


# Scenarios


def service_accounts(server):
    """A key file, in all the ways in which google-auth uses it."""
    path = server.key_file("backend", "writer", "--bypass-rules")
    server.start("--principals", server.principals)
    content = server.reach(path)
    make = service_account.Credentials.from_service_account_file
    ways = {
        "as the client's default": lambda: make(path),
        "with a scope, by an access token": lambda: make(path, scopes=[SCOPE]),
        "with a scope, by a token that it signs itself":
            lambda: make(path, scopes=[SCOPE]).with_always_use_jwt_access(True),
        "as the file of GOOGLE_APPLICATION_CREDENTIALS": lambda: None,
    }
    os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(path)
    for name, credentials in ways.items():
        print(name)
        exercise(client(server, credentials()))
        asyncio.run(exercise_asynchronously(client(server, credentials(), firestore.AsyncClient)))
    # Another universe than Google's: its name is where the client finds the service.
    elsewhere = service_account.Credentials.from_service_account_info(content | {"universe_domain": "example.org"})
    universe = firestore.Client(
        project=PROJECT, credentials=elsewhere,
        client_options={"api_endpoint": f"localhost:{server.port}", "universe_domain": "example.org"})
    exercise(universe)
    # The key does not open other projects.
    other = firestore.Client(
        project="other", credentials=make(path), client_options={"api_endpoint": f"localhost:{server.port}"})
    fails(exceptions.PermissionDenied, lambda: other.document("items/a").get())
    # A key of another server, with the name of this one's.
    strange = server.directory / "strange.json"
    server.token("create", "backend", "--principals", server.directory / "others.json", "--project", PROJECT,
        "--role", "writer", "--service-account", "--url", "https://localhost", "--out", strange)
    forged = json.loads(strange.read_text()) | {
        name: content[name] for name in ("client_email", "private_key_id", "token_uri")}
    forger = client(server, service_account.Credentials.from_service_account_info(forged).with_always_use_jwt_access(True))
    fails(exceptions.Unauthenticated, lambda: forger.document("items/a").get(retry=None))


def roles(server):
    """A reader reads and is refused all writes; a principal of a collection reaches no other."""
    writer = server.key_file("writer", "writer", "--bypass-rules")
    reader = server.key_file("reader", "reader", "--bypass-rules")
    orders = server.key_file("orders", "writer", "--bypass-rules", "--collection", "orders")
    server.start("--principals", server.principals)
    make = service_account.Credentials.from_service_account_file
    for path in (writer, reader, orders):
        server.reach(path)
    client(server, make(writer)).document("items/a").set({"n": 1})
    db = client(server, make(reader))
    assert db.document("items/a").get().to_dict() == {"n": 1}
    listener = Listener(db.collection("items"))
    listener.wait_for({"a": {"n": 1}})
    listener.close()
    fails(exceptions.PermissionDenied, lambda: db.document("items/a").set({"n": 2}))
    fails(exceptions.PermissionDenied, lambda: db.document("items/a").delete())
    batch = db.batch()
    batch.set(db.document("items/b"), {})
    fails(exceptions.PermissionDenied, batch.commit)
    db = client(server, make(orders))
    db.document("orders/a/lines/1").set({"n": 1})
    assert [found.id for found in db.collection("orders/a/lines").stream()] == ["1"]
    fails(exceptions.PermissionDenied, lambda: db.document("items/a").get())
    fails(exceptions.PermissionDenied, lambda: list(db.collection("items").stream()))
    fails(exceptions.PermissionDenied, lambda: list(db.collection_group("lines").stream()))
    fails(exceptions.PermissionDenied, lambda: db.document("items/a").set({"n": 1}))


def revoked_keys(server):
    """A key that is revoked ends its listeners, and its calls fail."""
    path = server.key_file("backend", "writer", "--bypass-rules")
    other = server.key_file("other", "writer", "--bypass-rules")
    server.start("--principals", server.principals)
    make = service_account.Credentials.from_service_account_file
    server.reach(path), server.reach(other)
    signed = client(server, make(path).with_always_use_jwt_access(True))
    exchanged = client(server, make(path, scopes=[SCOPE]))
    kept = client(server, make(other))
    streams = [Stream(db, documents_of(db, "items/a")) for db in (signed, exchanged, kept)]
    for stream in streams:
        stream.until_current()
    server.token("revoke", "backend", "--principals", server.principals)
    server.reload()
    for stream in streams[:2]:
        assert isinstance(stream.until_failure(), exceptions.Unauthenticated), stream.failure
    for db in (signed, exchanged):
        fails(exceptions.Unauthenticated, lambda: db.document("items/a").get(retry=None))
    kept.document("items/a").set({"n": 1})
    streams[2].wait("the document comes", lambda it: any("document_change" in found for found in it.responses))
    streams[2].close()


def users(server):
    """Users and callers without a token: own documents, other's, queries that are proven and that are not."""
    server.with_users()
    alice, bob, nobody = user(server, "alice"), user(server, "bob"), anonymous(server)
    for db, name in ((alice, "alice"), (bob, "bob")):
        db.document(f"users/{name}").set({"name": name})
        db.document(f"notes/{name}").create({"owner": name})
        assert db.document(f"users/{name}").get().to_dict() == {"name": name}
    denied = exceptions.PermissionDenied
    fails(denied, lambda: alice.document("users/bob").get())
    fails(denied, lambda: alice.document("users/bob").set({}))
    fails(denied, lambda: bob.document("notes/alice").update({"owner": "bob"}))
    fails(denied, lambda: alice.document("notes/new").create({"owner": "bob"}))
    fails(denied, lambda: nobody.document("users/alice").get())
    assert not nobody.document("public/a").get().exists
    # One write of a batch that is denied denies all of it.
    batch = alice.batch()
    batch.set(alice.document("users/alice"), {"name": "changed"})
    batch.set(alice.document("users/bob"), {"name": "changed"})
    fails(denied, batch.commit)
    assert alice.document("users/alice").get().to_dict() == {"name": "alice"}

    def own(db, uid):
        return db.collection("notes").where(filter=FieldFilter("owner", "==", uid))

    assert [found.id for found in own(alice, "alice").stream()] == ["alice"]
    assert own(alice, "alice").count().get()[0][0].value == 1
    fails(denied, lambda: list(own(alice, "bob").stream()))
    fails(denied, lambda: list(alice.collection("notes").stream()))
    fails(denied, lambda: list(own(nobody, "alice").stream()))

    @firestore.transactional
    def rename(transaction, db, path):
        found = db.document(path).get(transaction=transaction)
        transaction.update(found.reference, {"name": "renamed"})

    rename(alice.transaction(), alice, "users/alice")
    fails(denied, lambda: rename(alice.transaction(), alice, "users/bob"))
    listener = Listener(own(alice, "alice"))
    listener.wait_for({"alice": {"owner": "alice"}})
    alice.document("notes/second").set({"owner": "alice"})
    bob.document("notes/third").set({"owner": "bob"})
    listener.wait_for({"alice": {"owner": "alice"}, "second": {"owner": "alice"}})
    listener.close()

    async def asynchronously():
        token = server.mint("alice")
        db = client(server, UserCredentials(lambda: token), firestore.AsyncClient)
        assert (await db.document("users/alice").get()).to_dict() == {"name": "renamed"}
        assert sorted([found.id async for found in own(db, "alice").stream()]) == ["alice", "second"]
        try:
            await db.document("users/bob").get()
        except denied:
            return
        raise AssertionError("another's document was read")

    asyncio.run(asynchronously())


def refused_tokens(server):
    """Tokens that do not verify."""
    server.with_users()
    now = int(time.time())
    unauthenticated = exceptions.Unauthenticated
    strange = {
        "expired": server.mint("alice", exp=now - 2 * LEEWAY),
        "of another project": server.mint("alice", aud="other"),
        "of another issuer": server.mint("alice", iss="https://securetoken.google.com/other"),
        "of the future": server.mint("alice", iat=now + 2 * LEEWAY),
        "with another content": tampered(server.mint("alice"), "bob"),
        "unsigned": unsigned("alice"),
        "the emulator's owner": "owner",
        "no token": "x",
    }
    for name, token in strange.items():
        db = client(server, UserCredentials(lambda: token))
        text = fails(unauthenticated, lambda: db.document("public/a").get(retry=None))
        assert len(token) < 10 or token not in text, f"{name}: {text}"
    # A token that has just expired is granted the difference of clocks, by each call of a connection.
    db = user(server, "alice", exp=now - 10)
    for number in range(3):
        db.document("users/alice").set({"n": number}, retry=None)


def encoded(part):
    """A part of a token, of JSON."""
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def parts_of(claims, algorithm):
    return ".".join(encoded(part) for part in ({"alg": algorithm, "typ": "JWT"}, claims))


def unsigned(uid):
    """A token of the emulator's mode."""
    return parts_of({"sub": uid, "user_id": uid, "iss": ISSUER, "aud": PROJECT, "iat": 0, "exp": 1}, "none") + "."


def tampered(token, uid):
    """A token with the signature of another one."""
    header, payload, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    changed = base64.urlsafe_b64encode(json.dumps(claims | {"sub": uid, "user_id": uid}).encode()).rstrip(b"=").decode()
    return f"{header}.{changed}.{signature}"


def listeners(server):
    """A listener whose rule reads a document that changes; one whose token expires; one whose user is revoked."""
    key = server.key_file("backend", "admin")
    server.with_users("--principals", server.principals)
    server.reach(key)
    backend = client(server, service_account.Credentials.from_service_account_file(key))
    backend.document("rooms/r").set({"members": ["alice", "bob"]})
    backend.document("rooms/r/messages/1").set({"text": "hello"})
    alice, bob = user(server, "alice"), user(server, "bob")
    messages = {"query": {
        "parent": alice.document("rooms/r")._document_path,
        "structured_query": {"from_": [{"collection_id": "messages"}]}}}
    streams = [Stream(db, messages) for db in (alice, bob)]
    for stream in streams:
        stream.until_current()
    listener = Listener(alice.collection("rooms/r/messages"))
    listener.wait_for({"1": {"text": "hello"}})
    # Alice leaves the room; the message after that is for Bob alone.
    backend.document("rooms/r").update({"members": ["bob"]})
    assert streams[0].until_removed() == grpc.StatusCode.PERMISSION_DENIED.value[0]
    until(lambda: not listener.watch.is_active, "the client's listener ends")
    backend.document("rooms/r/messages/2").set({"text": "secret"})
    streams[1].wait("the message comes", lambda it: "secret" in str(it.responses))
    assert "secret" not in str(streams[0].responses)
    for stream in streams:
        stream.close()


def expiry(server):
    """A token expires while a listener runs: its stream ends, and it goes on with the next token."""
    server.with_users()
    end = int(time.time()) + 10
    first = server.mint("alice", exp=end)
    tokens = [first]
    sent = []

    def provide():
        token = tokens[0] if time.time() < end else tokens[-1]
        sent.append(token)
        return token

    db = client(server, UserCredentials(provide))
    stream = Stream(db, documents_of(db, "users/alice"))
    listener = Listener(db.document("users/alice"))
    stream.until_current()
    listener.wait_for({})
    tokens.append(server.mint("alice"))
    assert isinstance(stream.until_failure(), exceptions.Unauthenticated), stream.failure
    assert time.time() >= end - 1, "the stream ended before the token expired"
    # The same client with the next token.
    db.document("users/alice").set({"n": 1})
    listener.wait_for({"alice": {"n": 1}})
    assert tokens[-1] in sent
    listener.close()


def revoked_users(server):
    """A user is revoked while a listener runs; a new sign-in continues."""
    server.with_users()
    signed_in = int(time.time()) - 100
    tokens = [server.mint("alice", auth_time=signed_in, iat=signed_in)]
    db = client(server, UserCredentials(lambda: tokens[-1]))
    bob = user(server, "bob")
    streams = [Stream(db, documents_of(db, "users/alice")), Stream(bob, documents_of(bob, "users/bob"))]
    listener = Listener(db.document("users/alice"))
    for stream in streams:
        stream.until_current()
    listener.wait_for({})
    server.token("revoke-user", "alice", "--data", server.directory / "data")
    assert isinstance(streams[0].until_failure(), exceptions.Unauthenticated), streams[0].failure
    fails(exceptions.Unauthenticated, lambda: client(server, UserCredentials(lambda: tokens[0])).document(
        "users/alice").get(retry=None))
    tokens.append(server.mint("alice", auth_time=int(time.time()) + 2))
    db.document("users/alice").set({"n": 1})
    listener.wait_for({"alice": {"n": 1}})
    bob.document("users/bob").set({"n": 1})
    streams[1].wait("Bob's stream goes on", lambda it: any("document_change" in found for found in it.responses))
    streams[1].close()
    listener.close()


def emulator(server):
    """The emulator's mode: the owner, unsigned tokens, rules over the emulator's route, and their coverage."""
    server.start(tls=False)
    os.environ["FIRESTORE_EMULATOR_HOST"] = f"localhost:{server.port}"
    # Open: everything, for a client without a token too.
    assert rest(server, "GET", "public/a")[0] == 404
    path = f"{server.url}/emulator/v1/projects/{PROJECT}:securityRules"
    body = {"rules": {"files": [{"name": "firestore.rules", "content": RULES}]}}
    assert requests.put(path, json={"rules": {"files": [{"content": "service {"}]}}).status_code == 400
    answer = requests.put(path, json=body)
    assert answer.status_code == 200, answer.text
    assert requests.get(path, headers={"Authorization": "Bearer owner"}).json() == body
    # The client's token in the emulator's mode is "owner".
    db = firestore.Client(project=PROJECT)
    exercise(db)
    db.document("notes/a").set({"owner": "alice"})
    assert rest(server, "GET", "notes/a")[0] == 403
    assert rest(server, "GET", "notes/a", unsigned("alice"))[0] == 200
    assert rest(server, "GET", "notes/a", unsigned("bob"))[0] == 403
    assert rest(server, "PATCH", "users/bob", unsigned("bob"), {"fields": {}})[0] == 200
    assert rest(server, "PATCH", "users/bob", unsigned("alice"), {"fields": {}})[0] == 403
    # Other projects have no rules.
    assert rest(server, "GET", "notes/a", project="another")[0] == 404
    coverage = f"{server.url}/emulator/v1/projects/{PROJECT}:ruleCoverage"
    owner = {"Authorization": "Bearer owner"}
    assert requests.get(coverage, headers=owner).json()["rules"]["files"][0]["content"] == RULES
    assert "resource.data.owner" in requests.get(f"{coverage}.html", headers=owner).text
    deleted = requests.delete(
        f"{server.url}/emulator/v1/projects/{PROJECT}/databases/(default)/documents", headers=owner)
    assert deleted.status_code == 200, deleted.text
    assert not db.document("notes/a").get().exists


def rules_unit_testing(server):
    """The requests of @firebase/rules-unit-testing: loading and clearing without a credential, the owner's, and those of
    users, whose unsigned tokens expired in 1970."""
    server.start(tls=False)
    found = requests.get(f"{server.url}/emulators").json()["firestore"]
    emulator = f"http://{found['host']}:{found['port']}/emulator/v1/projects/{PROJECT}"

    def load(rules):
        body = json.dumps({"rules": {"files": [{"content": rules}]}}).encode()
        return requests.put(f"{emulator}:securityRules", data=body, headers={"Content-Type": "text/plain;charset=UTF-8"})

    def context(uid, **options):
        claims = {
            "iss": ISSUER, "aud": PROJECT, "iat": 0, "exp": 3600, "auth_time": 0, "sub": uid, "user_id": uid,
            "firebase": {"sign_in_provider": "custom", "identities": {}}}
        header = {"alg": "none", "type": "JWT"}
        return ".".join(encoded(part) for part in (header, claims | options)) + "."

    def denied(answer):
        return answer[0] == 403 and json.loads(answer[1])["error"]["status"] == "PERMISSION_DENIED"

    # The library throws the text of a reply that is not 2xx.
    refused = load("service cloud.firestore { match /a { allow read: if; } }")
    assert not refused.ok and "L1:" in refused.text, refused.text
    assert load(RULES).ok
    # Rules are on now: the next suite clears and loads without a credential all the same.
    assert requests.delete(f"{emulator}/databases/(default)/documents").ok
    assert load(RULES.replace("request.auth.uid == user", "request.auth.token.admin == true")).ok
    assert denied(rest(server, "PATCH", "users/alice", context("alice"), {"fields": {}}))
    assert rest(server, "PATCH", "users/alice", context("alice", admin=True), {"fields": {}})[0] == 200
    assert load(RULES).ok
    assert requests.delete(f"{emulator}/databases/(default)/documents").ok
    assert rest(server, "GET", "users/alice", context("alice"))[0] == 404
    assert rest(server, "PATCH", "notes/a", "owner", {"fields": {"owner": {"stringValue": "alice"}}})[0] == 200
    assert rest(server, "GET", "notes/a", context("alice"))[0] == 200
    assert denied(rest(server, "GET", "notes/a", context("bob")))
    assert denied(rest(server, "GET", "notes/a"))
    # Another project is another database, without rules of its own.
    other = emulator.replace(PROJECT, "another")
    assert requests.delete(f"{other}/databases/(default)/documents").ok
    assert rest(server, "GET", "notes/a", context("alice"))[0] == 200


def rest(server, method, path, token=None, body=None, project=PROJECT, **headers):
    """The status and the text of a request over REST."""
    if token:
        headers["Authorization"] = f"Bearer {token}"
    answer = requests.request(
        method, f"{server.url}/v1/projects/{project}/databases/(default)/documents/{path}", headers=headers, json=body)
    return answer.status_code, answer.text


def documentation(server):
    """The programs of docs/security.md."""
    server.key_file("key", "admin")
    server.with_users("--principals", server.principals)
    server.reach(server.directory / "key.json")
    os.chdir(server.directory)
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/security.md"
    programs = [part.split("```")[0] for part in page.read_text().split("```python\n")[1:]]
    assert len(programs) == 2
    names = {"token": server.mint("ada")}
    for program in programs:
        assert "db.example.org" in program
        exec(program.replace("db.example.org", f"localhost:{server.port}"), names)
    fails(exceptions.PermissionDenied, lambda: names["ada"].document("users/bob").get())


def proxies(server):
    """An open server refuses what comes through a proxy; a closed one serves it by its rules."""
    server.start(tls=False)
    assert rest(server, "GET", "public/a")[0] == 404
    for field in ("Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.1", "Via: 1.1 proxy"):
        name, value = field.split(": ")
        for path in ("documents/public/a", "documents/public"):
            url = f"{server.url}/v1/projects/{PROJECT}/databases/(default)/{path}"
            answer = requests.get(url, headers={name: value})
            assert answer.status_code == 403 and "--rules" in answer.text, answer.text
        assert requests.get(f"{server.url}/metrics", headers={name: value}).status_code == 403
        assert requests.get(f"{server.url}/livez", headers={name: value}).status_code == 200
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    assert program is not None, "nginx is not installed: Tools/install-dependencies --tests installs it"
    with nginx(program, server):
        assert rest(server, "GET", "public/a")[0] == 403
    server.stop()
    server.with_users("--allow-host", "localhost", tls=False)
    with nginx(program, server):
        assert rest(server, "GET", "public/a")[0] == 404
        assert rest(server, "GET", "users/alice")[0] == 403
        assert rest(server, "PATCH", "users/alice", server.mint("alice"), {"fields": {}})[0] == 200
        assert rest(server, "GET", "users/alice", server.mint("bob"))[0] == 403
        # Whoever guesses does not keep others out who come through the same proxy.
        for number in range(10):
            assert rest(server, "GET", "public/a", tampered(server.mint("bob"), f"{number}"))[0] == 401
        assert rest(server, "GET", "users/carol", server.mint("carol"))[0] == 404
        assert requests.get(f"{server.url}/metrics").status_code == 401
        assert requests.get(f"{server.url}/livez").status_code == 200


@contextlib.contextmanager
def nginx(program, server):
    """Runs nginx with the configuration of docs/web.md; meanwhile the server's URL is that of nginx."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/web.md"
    block = page.read_text().split("```nginx\n")[1].split("```")[0]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    changes = {
        "listen 443 ": f"listen 127.0.0.1:{port} ", "127.0.0.1:8080": f"127.0.0.1:{server.port}",
        "db.example.org;": "localhost;", "/etc/ssl/db.example.org.pem": str(server.directory / "server.pem"),
        "/etc/ssl/private/db.example.org.key": str(server.directory / "server.key")}
    for old, new in changes.items():
        assert old in block, f"{page.name} does not have {old}"
        block = block.replace(old, new)
    folder = server.directory
    paths = "".join(
        f"{kind}_temp_path {folder}/nginx-{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;"
        f"events {{}} http {{ access_log off; {paths} {block} }}")
    process = subprocess.Popen(
        [program, "-p", folder, "-c", folder / "nginx.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    direct, server.url = server.url, f"https://localhost:{port}"
    try:
        until(lambda: is_listening(port) or process.poll() is not None, "nginx listens")
        assert process.poll() is None, (folder / "nginx.log").read_text()
        yield
    finally:
        # It may have inherited a mask that blocks SIGTERM.
        process.kill()
        process.wait()
        server.url = direct


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def canaries(server):
    """Nothing that the server prints has a token, a key or an assertion, at the most talkative level."""
    path = server.key_file("backend", "writer", "--bypass-rules")
    api_key = server.create("job", "--role", "reader", "--api-key").split()[-1]
    assert api_key.startswith("hearth_"), "hearth token create prints no API key"
    server.with_users("--principals", server.principals, level="debug")
    content = server.reach(path)
    sent = set()

    def record(token):
        sent.add(token)
        return token

    # What is accepted comes first: after many failures the server makes callers wait.
    good, late = server.mint("alice"), server.mint("alice", exp=int(time.time()) - 2 * LEEWAY)
    credentials = service_account.Credentials.from_service_account_info(content, scopes=[SCOPE])
    assertion = record(credentials._make_authorization_grant_assertion().decode())
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}
    answer = requests.post(content["token_uri"], data=grant | {"assertion": assertion})
    assert answer.status_code == 200, answer.text
    access = record(answer.json()["access_token"])
    for token, status in ((good, 404), (api_key, 403), (access, 404)):
        record(token)
        assert rest(server, "GET", "users/alice", token)[0] == status
        with contextlib.suppress(exceptions.GoogleAPICallError):
            client(server, UserCredentials(lambda: token)).document("users/alice").get(retry=None)
    for token in (late, unsigned("alice"), "canary-of-no-form", api_key + "x", tampered(good, "bob"), access[:-2]):
        record(token)
        assert rest(server, "GET", "users/alice", token)[0] == 401
        with contextlib.suppress(exceptions.GoogleAPICallError):
            client(server, UserCredentials(lambda: token)).document("users/alice").get(retry=None)
    for form in ({"assertion": assertion + "x"}, {"assertion": "canary-of-an-assertion"}, {}):
        assert requests.post(content["token_uri"], data=grant | form).status_code == 400
    record("canary-of-an-assertion")
    server.reload()
    server.stop()
    printed = server.log.read_text()
    assert "access_refused" in printed, "the log has no refusal: the test sees nothing"
    secrets = {part for token in sent for part in (token, token.split(".")[-1], token.split("_")[-1]) if len(part) > 8}
    secrets |= {line for line in content["private_key"].splitlines() if len(line) > 40}
    assert len(secrets) > 10
    for secret in secrets:
        assert secret not in printed, f"the log has {secret}"


def give_up(server):
    """Ends a scenario that takes too long, and its server, which holds the output open."""
    if server.process is not None:
        server.process.kill()
    os._exit(3)


def main():
    hearth, directory, scenario = sys.argv[1:]
    directory = pathlib.Path(directory)
    # Where gRPC and requests find the authority of the tests.
    os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = str(directory / "ca.pem")
    os.environ["REQUESTS_CA_BUNDLE"] = str(directory / "ca.pem")
    server = Server(hearth, directory)
    watchdog = threading.Timer(300, lambda: give_up(server))
    watchdog.daemon = True
    watchdog.start()
    status = 1
    try:
        globals()[scenario](server)
        if server.process.poll() is None:
            server.stop()
        status = 0
    finally:
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
        if status:
            sys.excepthook(*sys.exc_info())
            print(server.log.read_text()[-4_000:], file=sys.stderr)
        # The threads of listeners that were not closed do not end.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
