"""Random rulesets with functions, nested matches and document accesses; reads, writes and batches judged by them."""

import json
import re

import emulator
from difference import Difference

asked = 0
USERS = [None, emulator.user("alice", admin=True), emulator.user("bob")]
DOCUMENTS = {
    "users/alice": {"role": "admin", "age": 30, "friends": ["bob"]},
    "users/bob": {"role": "user", "age": 20, "friends": []},
    "posts/p1": {"owner": "alice", "public": True, "n": 1},
    "posts/p2": {"owner": "bob", "public": False, "n": 5},
    "posts/p1/comments/c1": {"owner": "bob", "n": 2},
}
PATHS = list(DOCUMENTS) + ["users/carol", "posts/p3", "posts/p1/comments/c2", "other/x"]
MATCHES = ["/users/{user}", "/posts/{post}", "/posts/{post}/comments/{comment}", "/{all=**}", "/posts/{rest=**}"]
MATCHES_OF_2 = ["/{all=**}/comments/{comment}", "/posts/{post}/{rest=**}"]
METHODS = ["read", "write", "get", "create", "update", "delete", "read, write", "create, update"]
ROOT = "/databases/$(database)/documents"
CONDITIONS = [
    "request.auth != null",
    "request.auth.uid == resource.data.owner",
    "request.auth.uid == request.resource.data.owner",
    "request.auth.token.admin == true",
    "resource.data.public",
    "resource == null",
    "resource.data.n > 1",
    "request.resource.data.n == resource.data.n + 1",
    "request.resource.data.keys().hasOnly(['owner', 'n', 'public'])",
    "request.resource.data.diff(resource.data).affectedKeys().hasOnly(['n'])",
    "request.method == 'get' || request.method == 'update'",
    "request.path[3] == 'posts'",
    "'n' in request.resource.data",
    "request.resource == null",
    "request.resource.id == request.path[4]",
    f"get({ROOT}/users/$(request.auth.uid)).data.role == 'admin'",
    f"exists({ROOT}/users/$(request.auth.uid))",
    f"existsAfter({ROOT}/posts/p3)",
    f"!existsAfter({ROOT}/users/bob)",
    f"getAfter({ROOT}/posts/p1).data.n > 1",
    f"getAfter({ROOT}/users/bob) == null",
    f"get({ROOT}/posts/p3).data.n == 1",
    f"request.auth.uid in get({ROOT}/users/alice).data.friends",
    "isOwner(resource)",
    "isOwner(request.resource)",
    "role(request.auth.uid) == 'admin'",
    "user == request.auth.uid",
    "post == 'p1'",
    "comment.matches('c[0-9]')",
    "rest == /p1",
    "all == /users/alice",
    "database == '(default)'",
    "true",
    "false",
    "request.time > timestamp.date(2020, 1, 1)",
    "request.resource.data.n is int",
]
FUNCTIONS = f"""
function isOwner(document) {{ return document.data.owner == request.auth.uid; }}
function role(uid) {{ return get({ROOT}/users/$(uid)).data.role; }}
"""


def differences(theirs, ours, rng, count):
    """Compares the verdicts of requests by so many random rulesets."""
    for _ in range(count):
        text = ruleset(rng)
        error = theirs.set_rules(text), ours.set_rules(text)
        if error != (None, None):
            if None in error:
                yield Difference("compiles", text, str(error[0]), str(error[1]))
            continue
        theirs.clear()
        for path, plain in DOCUMENTS.items():
            theirs.put(path, emulator.fields(plain))
        for _ in range(3):
            yield from compare_get(theirs, ours, rng, text)
        yield from compare_commit(theirs, ours, rng, text)


def ruleset(rng):
    version = rng.choice([1, 2])
    lines = [f"rules_version = '{version}';", "service cloud.firestore {", "match /databases/{database}/documents {"]
    lines.append(FUNCTIONS)
    for _ in range(rng.randrange(1, 4)):
        path = rng.choice(MATCHES + (MATCHES_OF_2 if version == 2 else []))
        lines.append(f"match {path} {{")
        lines += [statement(rng) for _ in range(rng.randrange(1, 3))]
        if rng.random() < 0.3 and "**" not in path:
            lines.append(f"match /comments/{{comment}} {{ {statement(rng)} }}")
        lines.append("}")
    return "\n".join(lines + ["}", "}"])


def statement(rng):
    return f"allow {rng.choice(METHODS)}: if {condition(rng, 2)};"


def condition(rng, depth):
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(CONDITIONS)
    shape = rng.randrange(6)
    if shape == 0:
        return f"!({condition(rng, depth - 1)})"
    operator = "&&" if shape % 2 else "||"
    return f"({condition(rng, depth - 1)} {operator} {condition(rng, depth - 1)})"


def compare_get(theirs, ours, rng, text):
    global asked
    asked += 1
    path, user = rng.choice(PATHS), rng.choice(USERS)
    status, answer = theirs.get(path, user)
    request = {"method": "get", "path": path.split("/"), "resource": wire(DOCUMENTS.get(path))}
    verdict = ask(ours, request, user, DOCUMENTS, {})
    yield from difference(f"get {path} as {user and user['uid']}", text, status, answer, verdict)


def compare_commit(theirs, ours, rng, text):
    """Compares a commit of one to three writes; each is judged against the state before all of them."""
    global asked
    asked += 1
    user = rng.choice(USERS)
    paths = rng.sample(PATHS, rng.choice([1, 1, 2, 3]))
    writes, after = [], {}
    for path in paths:
        write, left = random_write(rng, theirs, path)
        writes.append(write)
        after[path] = left
    status, answer = theirs.commit(writes, user)
    verdict = {"allowed": True, "statements": []}
    state = dict(DOCUMENTS)
    for path in paths:
        method = "delete" if after[path] is None else "update" if path in DOCUMENTS else "create"
        request = {"method": method, "path": path.split("/"), "resource": wire(DOCUMENTS.get(path))}
        request["newResource"] = wire(after[path])
        one = ask(ours, request, user, state, after)
        if not one["allowed"]:
            verdict = one
            break
    shown = json.dumps({path: after[path] for path in paths})
    yield from difference(f"commit {shown} as {user and user['uid']}", text, status, answer, verdict)


def random_write(rng, server, path):
    """A write of a document, and its fields after it; None for a delete."""
    name = server.name(path)
    kind = rng.randrange(4)
    if kind == 0:
        return {"delete": name}, None
    new = {"n": rng.choice([1, 2, 6, 2.0, "x"])}
    if rng.random() < 0.7:
        new["owner"] = rng.choice(["alice", "bob"])
    if rng.random() < 0.3:
        new["public"] = rng.choice([True, False])
    write = {"update": {"name": name, "fields": emulator.fields(new)}}
    if kind == 1:
        return write, new
    write["updateMask"] = {"fieldPaths": sorted(new)}
    return write, {**DOCUMENTS.get(path, {}), **new}


def wire(plain):
    return None if plain is None else emulator.fields(plain)


def ask(ours, request, user, documents, after):
    question = {"auth": user, "time": "2026-01-01T00:00:00Z", **request}
    question["documents"] = {path: wire(plain) for path, plain in documents.items()}
    question["after"] = {path: wire(plain) for path, plain in after.items()}
    return ours.ask(question)


def difference(title, text, status, answer, verdict):
    """The difference of the verdicts, if they differ. A missing document is a 404, which is allowed."""
    allowed = status in (200, 404)
    if status not in (200, 403, 404) or "allowed" not in verdict or allowed != verdict["allowed"]:
        rules = "\n".join(f"{number + 1:4} {line}" for number, line in enumerate(text.split("\n")))
        message = re.sub(r"\s+", " ", answer)
        yield Difference("request", f"{title}\n{rules}", f"{status} {message}", json.dumps(verdict))
