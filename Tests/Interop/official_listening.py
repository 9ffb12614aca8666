"""Listeners of the official Python client against real servers, for Tests/OfficialClientTests.

usage: official_listening.py HEARTH DIRECTORY SCENARIO

Each scenario is a function below. It starts servers with the program HEARTH on data in DIRECTORY, and kills and
replaces them on the same port while listeners go on. An assertion that fails ends the program with status 1.
"""

import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import urllib.request

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

sys.path.insert(0, str(pathlib.Path(__file__).parent / "web"))
from servers import reserve_port  # noqa: E402

PROJECT = "interop"
# Seconds to wait for what must happen.
PATIENCE = 60


class Server:
    """A server process, one after the other on the same port."""

    def __init__(self, hearth, data):
        self.hearth, self.data = hearth, data
        self.reservation = reserve_port()
        self.port = self.reservation.getsockname()[1]

    def start(self, *arguments):
        command = [self.hearth, "serve", "--data", self.data, "--port", str(self.port), "--log-level", "warning"]
        self.process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("hearth ready on "):
                return
        raise AssertionError("the server did not become ready")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()

    def kill(self):
        self.stop(signal.SIGKILL)

    def run(self, command, *arguments):
        subprocess.run([self.hearth, command, *arguments], check=True, stdout=subprocess.DEVNULL)


def client():
    return firestore.Client(project=PROJECT, credentials=AnonymousCredentials())


class Listener:
    """What a listener was told. Every snapshot must follow from the one before it by its changes."""

    def __init__(self, watched):
        self.changed = threading.Condition()
        self.documents = None
        self.order = []
        # The names in the changes of each snapshot.
        self.steps = []
        self.problem = None
        self.read_time = None
        self.watch = watched.on_snapshot(self.take)

    def take(self, snapshots, changes, read_time):
        with self.changed:
            try:
                self.check(snapshots, changes, read_time)
            except AssertionError as problem:
                self.problem = self.problem or problem
            self.changed.notify_all()

    def check(self, snapshots, changes, read_time):
        assert self.read_time is None or read_time >= self.read_time, f"{read_time} after {self.read_time}"
        self.read_time = read_time
        found = {snapshot.id: snapshot.to_dict() for snapshot in snapshots if snapshot.exists}
        self.order = [snapshot.id for snapshot in snapshots if snapshot.exists]
        assert len(self.order) == len(found), f"a document twice: {self.order}"
        rebuilt = dict(self.documents or {})
        names = []
        for change in changes:
            name, content = change.document.id, change.document.to_dict()
            names.append(name)
            if change.type.name == "REMOVED":
                assert name in rebuilt, f"{name} was removed and not there"
                del rebuilt[name]
            elif change.type.name == "ADDED":
                assert name not in rebuilt, f"{name} was added again"
                rebuilt[name] = content
            else:
                assert rebuilt.get(name, content) != content, f"{name} was modified to what it was"
                rebuilt[name] = content
        # The watch of one document has no changes that could be followed.
        if changes:
            assert rebuilt == found, f"the changes come to {rebuilt}, the snapshot is {found}"
        self.documents = found
        self.steps.append(names)

    def wait_for(self, documents):
        """Waits for a snapshot with these documents, by id."""
        with self.changed:
            done = self.changed.wait_for(lambda: self.problem or self.documents == documents, PATIENCE)
            assert self.problem is None, self.problem
            assert done, f"{self.documents} instead of {documents}"

    def close(self):
        self.watch.unsubscribe()


# Scenarios


def watches(server, directory):
    """Listeners of a document, a collection and a query with a limit are told what changes, and nothing else."""
    server.start()
    db = client()
    songs = db.collection("songs")
    one, all_songs = Listener(songs.document("a")), Listener(songs)
    first = Listener(songs.where(filter=FieldFilter("n", ">", 0)).order_by("n").limit(2))
    for listener in (one, all_songs, first):
        listener.wait_for({})
    songs.document("a").set({"n": 1})
    one.wait_for({"a": {"n": 1}})
    batch = db.batch()
    for name, number in {"b": 2, "c": 3, "d": 0}.items():
        batch.set(songs.document(name), {"n": number})
    batch.commit()
    all_songs.wait_for({"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}, "d": {"n": 0}})
    # One commit is one snapshot.
    assert [sorted(names) for names in all_songs.steps] == [[], ["a"], ["b", "c", "d"]], all_songs.steps
    first.wait_for({"a": {"n": 1}, "b": {"n": 2}})
    # The window: one leaves it, the next one enters.
    songs.document("a").update({"n": 9})
    first.wait_for({"b": {"n": 2}, "c": {"n": 3}})
    songs.document("c").update({"n": 1})
    first.wait_for({"b": {"n": 2}, "c": {"n": 1}})
    assert first.order == ["c", "b"], first.order
    songs.document("c").delete()
    first.wait_for({"a": {"n": 9}, "b": {"n": 2}})
    songs.document("a").delete()
    one.wait_for({})
    all_songs.wait_for({"b": {"n": 2}, "d": {"n": 0}})
    for listener in (one, all_songs, first):
        listener.close()
    server.stop()


def kills(server, directory):
    """Listeners go on after their server was killed and replaced: they miss nothing and are told nothing twice."""
    server.start()
    db = client()
    items = db.collection("items")
    for number in range(20):
        items.document(f"i{number:02}").set({"n": number, "round": 0})
    expected = {f"i{number:02}": {"n": number, "round": 0} for number in range(20)}
    every, one = Listener(items), Listener(items.document("i03"))
    few = Listener(items.order_by("n", direction="DESCENDING").limit(3))

    def converge():
        every.wait_for(expected)
        one.wait_for({"i03": expected["i03"]})
        few.wait_for(dict(sorted(expected.items(), key=lambda item: -item[1]["n"])[:3]))

    converge()
    for number in range(1, 4):
        # This one is acknowledged just before the end; a listener may or may not have been told.
        expected["i03"] = {"n": 3, "round": number}
        items.document("i03").set(expected["i03"])
        server.kill()
        server.start()
        before = len(every.steps)
        batch = db.batch()
        expected[f"new{number}"] = {"n": 100 + number, "round": number}
        batch.set(items.document(f"new{number}"), expected[f"new{number}"])
        batch.delete(items.document(f"i{10 + number}"))
        del expected[f"i{10 + number}"]
        batch.commit()
        converge()
        told = {name for names in every.steps[before:] for name in names}
        assert told <= {"i03", f"new{number}", f"i{10 + number}"}, f"unchanged documents were told of: {told}"
    for listener in (every, one, few):
        listener.close()
    server.stop()


def sources(server, directory):
    """Everything that changes documents reaches listeners."""
    server.start("--ttl-interval", "1s")
    db = client()
    listener = Listener(db.collection("c"))
    listener.wait_for({})
    # BatchWrite
    bulk = db.bulk_writer()
    for number in range(3):
        bulk.set(db.document(f"c/b{number}"), {"n": number})
    bulk.close()
    expected = {f"b{number}": {"n": number} for number in range(3)}
    listener.wait_for(expected)
    # A transaction
    transaction = db.transaction()

    @firestore.transactional
    def run(transaction):
        found = db.document("c/b0").get(transaction=transaction)
        transaction.update(db.document("c/b1"), {"n": found.get("n") + 10})
        transaction.delete(db.document("c/b0"))

    run(transaction)
    expected = {"b1": {"n": 10}, "b2": {"n": 2}}
    listener.wait_for(expected)
    # hearth load
    file = directory / "lines.jsonl"
    file.write_text("".join(f'{{"__name__":"l{number}","n":{number}}}\n' for number in range(50)))
    place = ["--address", f"127.0.0.1:{server.port}", "--project", PROJECT, "--collection", "c"]
    server.run("load", *place, "--quiet", str(file))
    expected |= {f"l{number}": {"n": number} for number in range(50)}
    listener.wait_for(expected)
    # Documents that expire
    override = {"collectionGroup": "c", "fieldPath": "expires", "ttl": True, "indexes": []}
    indexes = directory / "indexes.json"
    indexes.write_text(json.dumps({"indexes": [], "fieldOverrides": [override]}))
    server.run("indexes", "apply", str(indexes), "--data", server.data, "--project", PROJECT)
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
    db.document("c/b1").set({"expires": past})
    db.document("c/b2").set({"n": 3})
    del expected["b1"]
    expected["b2"] = {"n": 3}
    listener.wait_for(expected)
    # The call that clears a database
    url = f"http://127.0.0.1:{server.port}/emulator/v1/projects/{PROJECT}/databases/(default)/documents"
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=PATIENCE).close()
    listener.wait_for({})
    listener.close()
    server.stop()


def restores(server, directory):
    """After a restore a listener comes to the state of the backup, though it has a token of what was lost."""
    server.start()
    db = client()
    listener = Listener(db.collection("c"))
    for name in ("kept", "changed", "deleted"):
        db.document(f"c/{name}").set({"n": 1})
    backup, data = str(directory / "backup"), server.data
    server.run("backup", "--data", data, backup)
    # A check opens the backup; it must not begin a history for it.
    server.run("check", "--data", backup)
    db.document("c/changed").set({"n": 2})
    db.document("c/deleted").delete()
    db.document("c/lost").set({"n": 1})
    listener.wait_for({"kept": {"n": 1}, "changed": {"n": 2}, "lost": {"n": 1}})
    server.kill()
    server.data = str(directory / "restored")
    server.run("restore", "--data", server.data, backup)
    server.start()
    listener.wait_for({"kept": {"n": 1}, "changed": {"n": 1}, "deleted": {"n": 1}})
    db.document("c/kept").set({"n": 3})
    listener.wait_for({"kept": {"n": 3}, "changed": {"n": 1}, "deleted": {"n": 1}})
    listener.close()
    server.stop()


def main():
    hearth, directory, scenario = sys.argv[1:]
    watchdog = threading.Timer(300, lambda: os._exit(3))
    watchdog.daemon = True
    watchdog.start()
    server = Server(hearth, f"{directory}/data")
    # The port is known when the first server is ready; the client asks for it when it is made.
    start = server.start

    def start_and_tell(*arguments):
        start(*arguments)
        os.environ["FIRESTORE_EMULATOR_HOST"] = f"127.0.0.1:{server.port}"

    server.start = start_and_tell
    status = 1
    try:
        globals()[scenario](server, pathlib.Path(directory))
        status = 0
    finally:
        if server.process.poll() is None:
            server.kill()
        if status:
            sys.excepthook(*sys.exc_info())
        # The threads of listeners that were not closed do not end.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
