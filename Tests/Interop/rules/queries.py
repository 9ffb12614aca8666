"""Random queries under random rules: whether both prove that nothing forbidden can be returned."""

import json
import re

import emulator
from difference import Difference

asked = 0
USER = emulator.user("alice")
FIELDS = ["n", "s", "b", "t", "m.a", "owner"]
VALUES = {
    "n": [0, 1, 2, 5, 1.5, 2.0],
    "s": ["a", "b", "alice", ""],
    "b": [True, False],
    "t": ["x", "y"],
    "m.a": [1, "x"],
    "owner": ["alice", "bob"],
}
RANGES = ["LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL"]
SYMBOLS = {
    "LESS_THAN": "<",
    "LESS_THAN_OR_EQUAL": "<=",
    "GREATER_THAN": ">",
    "GREATER_THAN_OR_EQUAL": ">=",
}


def differences(theirs, ours, rng, count):
    """Compares the verdicts of so many random queries."""
    global asked
    theirs.clear()
    for index in range(4):
        plain = {"n": index, "s": "abcd"[index], "b": index % 2 == 0, "t": ["x"], "m": {"a": index}, "owner": "alice"}
        theirs.put(f"q/d{index}", emulator.fields(plain))
    for _ in range(count):
        asked += 1
        query = random_query(rng)
        text = ruleset(condition(rng, 2, query), rng)
        error = theirs.set_rules(text), ours.set_rules(text)
        if error != (None, None):
            if None in error:
                yield Difference("compiles", text, str(error[0]), str(error[1]))
            continue
        status, answer = theirs.query("", query, USER)
        if status == 400:
            continue
        request = {"method": "list", "path": ["q"], "query": query, "auth": USER, "time": "2026-01-01T00:00:00Z"}
        verdict = ours.ask({**request, "documents": {}})
        if "allowed" not in verdict or (status == 200) != verdict["allowed"]:
            found, returned = counterexample(ours, rng, text, query)
            case = f"{text}\n  {json.dumps(query)}\n  a document that is refused: {json.dumps(found)}"
            theirs_shown = f"{status} {re.sub(chr(10), ' ', answer)[:400]}"
            yield Difference(kind(status, verdict, found, returned), case, theirs_shown, json.dumps(verdict))


def kind(status, verdict, found, returned):
    """Which of the two is right, as far as a search for a counterexample can say."""
    if "allowed" not in verdict:
        return "query"
    if not returned:
        return "query: no documents"
    if verdict["allowed"]:
        return "query: hearth is wrong" if found else "query: hearth proves more"
    return "query: emulator is wrong" if found else "query: emulator proves more"


def counterexample(ours, rng, text, query):
    """A document that the query can return and that the rules refuse, None if a search finds none; and how many documents
    of the search the query returns."""
    returned = 0
    limit = query.get("limit")
    plain = text.replace("allow list", "allow get").replace("request.query.limit", "null" if limit is None else str(limit))
    ascending = any(order["field"]["fieldPath"] == "n" for order in query.get("orderBy", []))
    plain = plain.replace("request.query.orderBy.n", "'ASC'" if ascending else "resource.data.missing_field")
    ours.set_rules(plain)
    for _ in range(1000):
        document = random_document(rng)
        if rng.random() < 0.8:
            aim(document, query.get("where"), rng)
        if not returns(query, document):
            continue
        returned += 1
        request = {"method": "get", "path": ["q", "x"], "resource": emulator.fields(document), "auth": USER}
        if not ours.ask({**request, "time": "2026-01-01T00:00:00Z"})["allowed"]:
            return document, returned
    return None, returned


def random_document(rng):
    document = {}
    for name in ["n", "s", "b", "owner"]:
        if rng.random() < 0.8:
            document[name] = rng.choice(VALUES[name] + [None, 1, "x", 1.0])
    if rng.random() < 0.8:
        document["t"] = rng.sample(["x", "y", "z"], rng.randrange(4))
    if rng.random() < 0.8:
        document["m"] = {"a": rng.choice(VALUES["m.a"] + [None, 1.0])} if rng.random() < 0.8 else rng.choice([1, {}])
    return document


def aim(document, condition, rng):
    """Changes a document so that it meets more of a filter."""
    if condition is None:
        return
    if "compositeFilter" in condition:
        for each in condition["compositeFilter"]["filters"]:
            aim(document, each, rng)
        return
    test = condition.get("fieldFilter")
    if test is None:
        return
    operand, name = plain_value(test["value"]), test["field"]["fieldPath"]
    chosen = {
        "EQUAL": lambda: operand,
        "IN": lambda: rng.choice(operand),
        "ARRAY_CONTAINS": lambda: [operand] + rng.sample(VALUES["t"], rng.randrange(3)),
        "ARRAY_CONTAINS_ANY": lambda: [rng.choice(operand)] + rng.sample(VALUES["t"], rng.randrange(3)),
    }.get(test["op"], lambda: rng.choice(VALUES[name] + [{}, "carol", "", 9, 1.25]))()
    # Queries do not tell 1 from 1.0.
    if type(chosen) is int and rng.random() < 0.5:
        chosen = float(chosen)
    if name == "m.a":
        document["m"] = {"a": chosen}
    else:
        document[name] = chosen


def returns(query, document):
    """Whether a query returns a document."""
    orders = [order["field"]["fieldPath"] for order in query.get("orderBy", [])]
    if any(read(document, name) is MISSING for name in orders):
        return False
    return "where" not in query or meets(query["where"], document)


MISSING = object()


def read(document, path):
    for name in path.split("."):
        if not isinstance(document, dict) or name not in document:
            return MISSING
        document = document[name]
    return document


def rank(plain):
    """The class of a value and the value, to compare by."""
    order = [type(None), bool, (int, float), str, list, dict]
    return next(index for index, each in enumerate(order) if isinstance(plain, each))


def same(left, right):
    return rank(left) == rank(right) and left == right


def meets(condition, document):
    """Whether a document meets a filter, as queries judge it."""
    if "compositeFilter" in condition:
        parts = [meets(each, document) for each in condition["compositeFilter"]["filters"]]
        return all(parts) if condition["compositeFilter"]["op"] == "AND" else any(parts)
    if "unaryFilter" in condition:
        found = read(document, condition["unaryFilter"]["field"]["fieldPath"])
        return found is not MISSING and (found is None) == (condition["unaryFilter"]["op"] == "IS_NULL")
    test = condition["fieldFilter"]
    found, operand = read(document, test["field"]["fieldPath"]), plain_value(test["value"])
    if found is MISSING:
        return False
    match test["op"]:
        case "EQUAL":
            return same(found, operand)
        case "NOT_EQUAL":
            return found is not None and not same(found, operand)
        case "IN":
            return any(same(found, each) for each in operand)
        case "NOT_IN":
            return found is not None and not any(same(found, each) for each in operand)
        case "ARRAY_CONTAINS":
            return isinstance(found, list) and any(same(each, operand) for each in found)
        case "ARRAY_CONTAINS_ANY":
            return isinstance(found, list) and any(same(each, one) for each in found for one in operand)
    if rank(found) != rank(operand) or found is None:
        return False
    return {"<": found < operand, "<=": found <= operand, ">": found > operand, ">=": found >= operand}[
        SYMBOLS[test["op"]]
    ]


def plain_value(wire):
    """The Python value of a REST value."""
    (name, content), = wire.items()
    if name == "integerValue":
        return int(content)
    if name == "arrayValue":
        return [plain_value(each) for each in content["values"]]
    return content


def ruleset(text, rng):
    path = rng.choice(["/q/{id}", "/q/{id}", "/{path=**}/q/{id}", "/{all=**}"])
    return (
        "rules_version = '2';\nservice cloud.firestore { match /databases/{database}/documents {\n"
        f"match {path} {{ allow list: if {text}; }}\n}} }}"
    )


def random_query(rng):
    query = {"from": [{"collectionId": "q", "allDescendants": rng.random() < 0.15}]}
    filters = [random_filter(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
    if len(filters) == 1:
        query["where"] = filters[0]
    elif filters:
        query["where"] = {"compositeFilter": {"op": rng.choice(["AND", "AND", "OR"]), "filters": filters}}
    if rng.random() < 0.3:
        query["limit"] = rng.choice([1, 10, 50])
    if rng.random() < 0.2:
        query["orderBy"] = [{"field": {"fieldPath": rng.choice(FIELDS)}, "direction": "ASCENDING"}]
    return query


def random_filter(rng):
    name = rng.choice(FIELDS)
    values = VALUES[name]
    field = {"fieldPath": name}
    if name == "t":
        operator = rng.choice(["ARRAY_CONTAINS", "ARRAY_CONTAINS_ANY"])
        operand = rng.choice(values) if operator == "ARRAY_CONTAINS" else rng.sample(values, 2)
    elif rng.random() < 0.1:
        return {"unaryFilter": {"field": field, "op": rng.choice(["IS_NULL", "IS_NOT_NULL"])}}
    else:
        operator = rng.choice(["EQUAL"] * 5 + RANGES + ["NOT_EQUAL", "IN", "NOT_IN"])
        many = operator in ("IN", "NOT_IN")
        operand = rng.sample(values, min(len(values), rng.choice([1, 2, 3]))) if many else rng.choice(values)
    return {"fieldFilter": {"field": field, "op": operator, "value": emulator.value(operand)}}


def literal(plain):
    return json.dumps(plain)


def condition(rng, depth, query):
    """A condition, half of them about what the query filters by."""
    if depth and rng.random() < 0.5:
        operator = rng.choice(["&&", "||"])
        return f"({condition(rng, depth - 1, query)} {operator} {condition(rng, depth - 1, query)})"
    if depth and rng.random() < 0.1:
        return f"!({condition(rng, depth - 1, query)})"
    name = rng.choice(FIELDS)
    field = f"resource.data.{name}"
    value = literal(rng.choice(VALUES[name]))
    values = literal(rng.sample(VALUES[name], rng.choice([1, 2])))
    if name == "t":
        return rng.choice([f"{value} in {field}", f"{field}.hasAny({values})", f"{field}.hasAll({values})"])
    return rng.choice(
        [
            f"{field} == {value}",
            f"{field} == {value}",
            f"{value} == {field}",
            f"{field} != {value}",
            f"{field} {rng.choice(['<', '<=', '>', '>='])} {value}",
            f"{field} in {values}",
            f"{field} != null",
            f"{field} is {rng.choice(['string', 'int', 'number', 'bool', 'map'])}",
            f"'{name.split('.')[0]}' in resource.data",
            "request.query.limit <= 10",
            "request.auth.uid == resource.data.owner",
            f"resource.data.get('{name.split('.')[0]}', {value}) == {value}",
            "true",
            "resource.data.s.size() > 0",
            "request.query.orderBy.n == 'ASC'",
        ]
    )
