"""The official emulator over REST, with the standard library alone."""

import base64
import http.client
import json


class Emulator:
    """One project of the emulator: rules, documents, requests of users, coverage."""

    def __init__(self, address, project):
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.project = project
        self.connection = None

    def call(self, method, path, body=None, token="owner"):
        """Makes one request and returns its status and its text."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body)
        for attempt in range(2):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
                self.connection.request(method, path, data, headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read().decode()
            except (http.client.HTTPException, ConnectionError):
                self.connection = None
                if attempt:
                    raise
        raise AssertionError("unreachable")

    @property
    def documents(self):
        return f"/v1/projects/{self.project}/databases/(default)/documents"

    def name(self, path):
        """The full name of a document."""
        return f"projects/{self.project}/databases/(default)/documents/{path}"

    def set_rules(self, text):
        """Sets the rules; returns the error's text, or None."""
        body = {"rules": {"files": [{"name": "security.rules", "content": text}]}}
        status, answer = self.call("PUT", f"/emulator/v1/projects/{self.project}:securityRules", body)
        return None if status == 200 else json.loads(answer)["error"].get("message", "INTERNAL ERROR")

    def coverage(self):
        return json.loads(self.call("GET", f"/emulator/v1/projects/{self.project}:ruleCoverage")[1])

    def clear(self):
        self.call("DELETE", f"/emulator/v1/projects/{self.project}/databases/(default)/documents")

    def put(self, path, fields):
        self.call("PATCH", f"{self.documents}/{path}", {"fields": fields})

    def get(self, path, user):
        return self.call("GET", f"{self.documents}/{path}", token=token(user))

    def commit(self, writes, user):
        return self.call("POST", f"{self.documents}:commit", {"writes": writes}, token(user))

    def query(self, parent, query, user):
        where = f"{self.documents}/{parent}" if parent else self.documents
        return self.call("POST", f"{where}:runQuery", {"structuredQuery": query}, token(user))


def token(user):
    """The unsigned token of a user, or None; the emulator verifies nothing."""
    if user is None:
        return None
    parts = ({"alg": "none", "typ": "JWT"}, user["token"])
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join(texts) + "."


def user(uid, **claims):
    """A user as rules see it: `request.auth`."""
    return {"uid": uid, "token": {"sub": uid, "user_id": uid, **claims}}


def value(plain):
    """A value in REST form. A dictionary with the one key `$` is in this form already."""
    if plain is None:
        return {"nullValue": None}
    if isinstance(plain, bool):
        return {"booleanValue": plain}
    if isinstance(plain, int):
        return {"integerValue": str(plain)}
    if isinstance(plain, float):
        return {"doubleValue": plain}
    if isinstance(plain, str):
        return {"stringValue": plain}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(each) for each in plain]}}
    if set(plain) == {"$"}:
        return plain["$"]
    return {"mapValue": {"fields": fields(plain)}}


def fields(plain):
    """The fields of a document in REST form."""
    return {name: value(each) for name, each in plain.items()}
