"""One Listen stream of a server, and the documents of its targets as a client rebuilds them.

The emulator sends the whole result after every change, Hearth sends what has changed: both must come to the same
documents at every global NO_CHANGE.
"""

import dataclasses
import queue
import threading

import grpc
from google.cloud.firestore_v1.types import firestore

import wire

ListenRequest, ListenResponse = firestore.ListenRequest.pb(), firestore.ListenResponse.pb()
TargetChange = ListenResponse.DESCRIPTOR.fields_by_name["target_change"].message_type
KINDS = TargetChange.enum_types_by_name["TargetChangeType"].values_by_number
# Seconds to wait for messages that must come.
PATIENCE = 20


class Broken(Exception):
    """A stream that ended, that did not send what it must, or that broke a rule of the protocol."""


@dataclasses.dataclass
class Target:
    """A target as of the messages so far."""

    text: str
    # Fields by the name of the document, in the order in which they came.
    documents: dict = dataclasses.field(default_factory=dict)
    versions: dict = dataclasses.field(default_factory=dict)
    is_added: bool = False
    is_current: bool = False


class Watcher:
    """A stream with targets. Requests come from one thread; a thread of its own reads the messages."""

    def __init__(self, server, is_strict):
        """`is_strict` demands what only Hearth promises: no document twice, and no removal without the document."""
        self.server = server
        self.is_strict = is_strict
        self.changed = threading.Condition()
        self.targets = {}
        self.refused = {}
        self.snapshot = {}
        self.token = b""
        self.read_time = 0
        self.problem = None
        self.connect()

    def connect(self):
        self.requests = queue.Queue()
        function = self.server.channel.stream_stream(
            "/google.firestore.v1.Firestore/Listen", ListenRequest.SerializeToString, ListenResponse.FromString
        )
        self.call = function(iter(self.requests.get, None), metadata=self.server.metadata)
        threading.Thread(target=self.read, args=[self.call], daemon=True).start()

    def disconnect(self):
        """Breaks the connection: what came after the last snapshot is dropped."""
        with self.changed:
            call, self.call = self.call, None
        call.cancel()
        self.requests.put(None)

    def resume(self, says_count):
        """Lists the targets again on another connection with the token of the last snapshot."""
        with self.changed:
            earlier, self.snapshot = self.snapshot, {}
            for number, target in self.targets.items():
                documents, versions = earlier.get(number, ({}, {}))
                self.targets[number] = Target(target.text, dict(documents), dict(versions))
            self.connect()
        for number, target in list(self.targets.items()):
            has_state = number in earlier
            count = len(target.documents) if has_state and says_count else None
            self.send(number, target.text, self.token if has_state else b"", count)
        self.wait_for(list(self.targets))

    # Requests

    def add(self, number, text):
        """Adds a target and waits for its snapshot; returns the answer if it was refused."""
        with self.changed:
            self.targets[number] = Target(text)
            self.refused.pop(number, None)
        self.send(number, text)
        self.wait_for([number])
        return self.refused.get(number)

    def send(self, number, text, token=b"", count=None):
        request = wire.parsed(ListenRequest, f'database: "DB" add_target {{ {text} }}', self.server)
        request.add_target.target_id = number
        if token:
            request.add_target.resume_token = token
        if count is not None:
            request.add_target.expected_count.value = count
        self.requests.put(request)

    def remove(self, number):
        self.requests.put(ListenRequest(database=self.server.database, remove_target=number))
        self.wait(lambda: number not in self.targets)

    # Waiting

    def wait_for(self, numbers):
        self.wait(lambda: all(number in self.snapshot or number in self.refused for number in numbers))

    def wait(self, condition):
        with self.changed:
            if not self.changed.wait_for(lambda: self.problem or condition(), PATIENCE):
                raise Broken("no message came that was waited for")
            if self.problem:
                raise Broken(self.problem)

    # Messages

    def read(self, call):
        try:
            for message in call:
                with self.changed:
                    if call is not self.call:
                        return
                    self.take(message)
                    self.changed.notify_all()
            self.fail(call, "the stream ended with OK")
        except grpc.RpcError as error:
            self.fail(call, f"the stream ended with {error.code().name} {error.details()}")
        except Broken as problem:
            self.fail(call, str(problem))

    def fail(self, call, problem):
        with self.changed:
            if call is self.call:
                self.problem = self.problem or problem
                self.changed.notify_all()

    def take(self, message):
        kind = message.WhichOneof("response_type")
        content = getattr(message, kind)
        if kind == "target_change":
            self.take_change(content)
        elif kind == "document_change":
            name, found = self.server.document(content.document)
            version = content.document.update_time.ToNanoseconds()
            for target in self.added(content.target_ids):
                self.demand(target.versions.get(name) != version, f"{name} came twice")
                target.documents.pop(name, None)
                target.documents[name], target.versions[name] = found, version
            self.drop(name, content.removed_target_ids)
        elif kind in ("document_delete", "document_remove"):
            self.drop(self.server.relative(content.document), content.removed_target_ids)
        elif kind == "filter":
            for target in self.added([content.target_id]):
                self.demand(len(target.documents) == content.count, f"a filter of {content.count} documents")

    def take_change(self, change):
        kind = KINDS[change.target_change_type].name
        if change.HasField("read_time"):
            time = change.read_time.ToNanoseconds()
            if time < self.read_time:
                raise Broken("the read time went back")
            self.read_time = time
        for number in change.target_ids:
            target = self.targets.get(number)
            if kind == "REMOVE":
                self.targets.pop(number, None)
                self.snapshot.pop(number, None)
                if change.HasField("cause"):
                    code = next(code for code in grpc.StatusCode if code.value[0] == change.cause.code)
                    self.refused[number] = wire.Answer(code.name, self.server.relative(change.cause.message))
            elif target is None:
                raise Broken(f"{kind} for target {number}, which there is not")
            elif kind == "ADD":
                target.is_added = True
            elif kind == "CURRENT":
                target.is_current = True
            elif kind == "RESET":
                target.documents, target.versions, target.is_current = {}, {}, False
        if kind == "NO_CHANGE" and not change.target_ids:
            self.token = change.resume_token
            self.snapshot = {
                number: (dict(target.documents), dict(target.versions))
                for number, target in self.targets.items()
                if target.is_current
            }

    def added(self, numbers):
        return [self.targets[number] for number in numbers if number in self.targets and self.targets[number].is_added]

    def drop(self, name, numbers):
        for target in self.added(numbers):
            is_query = target.text.startswith("query")
            self.demand(name in target.documents or not is_query, f"{name} left a target that does not have it")
            target.documents.pop(name, None)
            target.versions.pop(name, None)

    def demand(self, condition, problem):
        if self.is_strict and not condition:
            raise Broken(problem)
