"""Random expressions, of which the emulator's coverage report has the values."""

import json
import math

import emulator
import expressions
from difference import Difference

asked = 0
AUTH = emulator.user("alice", email="a@b.c", level=3, groups=["x"])
FIELDS = emulator.fields(expressions.DOCUMENT)
# Rulesets with more expressions are slow to check in the emulator.
BATCH = 25


def differences(theirs, ours, rng, count):
    """Compares the values of so many random expressions."""
    global asked
    generator = expressions.Expressions(rng)
    for index in range(BATCH):
        theirs.put(f"e{index}/d", FIELDS)
    for start in range(0, count, BATCH):
        batch = [generator.any(rng.choice([2, 3, 4])) for _ in range(min(BATCH, count - start))]
        asked += len(batch)
        yield from compare(theirs, ours, batch)


def compare(theirs, ours, batch):
    """Compares a batch in one ruleset; takes it apart where a text does not compile."""
    text = ruleset(batch)
    errors = theirs.set_rules(text), ours.set_rules(text)
    if errors != (None, None):
        if len(batch) > 1:
            middle = len(batch) // 2
            yield from compare(theirs, ours, batch[:middle])
            yield from compare(theirs, ours, batch[middle:])
        elif None in errors:
            yield Difference("compiles", batch[0], str(errors[0]), str(errors[1]))
        return
    for index in range(len(batch)):
        theirs.get(f"e{index}/d", AUTH)
        request = {"method": "get", "path": [f"e{index}", "d"], "auth": AUTH, "resource": FIELDS}
        ours.ask({"time": "2026-01-01T00:00:00Z", **request})
    reports = outcomes(theirs.coverage()), outcomes(ours.ask({"coverage": True}))
    for index, text in enumerate(batch):
        answers = [report.get(index + 2, "not evaluated") for report in reports]
        if answers[0] != answers[1]:
            yield Difference("value", text, *answers)


def ruleset(batch):
    """Rules with one expression a line, from line 2 on. The list makes any type a valid condition."""
    lines = ["rules_version = '2'; service cloud.firestore { match /databases/{database}/documents {"]
    for index, text in enumerate(batch):
        lines.append(f"match /e{index}/{{id}} {{ allow get: if [{text}] is map; }}")
    return "\n".join(lines + ["}}"])


def outcomes(coverage):
    """The value of the expression of each line, or that it failed."""
    found = {}
    for report in coverage.get("report", []):
        # The condition is `[expression] is map`: its first part is the list.
        listed = (report.get("children") or [report])[0]
        shown = [readable(each["value"]) for each in listed.get("values", [])]
        # The emulator evaluates first without the document, which gives an error without a cause.
        final = [each for each in shown if each != "no value"]
        found[report["sourcePosition"]["line"]] = final[-1] if final else "error"
    return found


def readable(wire):
    """A value of a report as a text: equal values have equal texts."""
    if "undefined" in wire:
        return "error" if wire["undefined"].get("causeMessage") else "no value"
    return json.dumps(canonical(wire), sort_keys=True)


def canonical(wire):
    """A value with sorted sets, and doubles that are always doubles."""
    if not isinstance(wire, dict):
        return wire
    if "floatValue" in wire:
        number = float(wire["floatValue"])
        return {"floatValue": "NaN" if math.isnan(number) else repr(round_last(number))}
    if "latlngValue" in wire:
        # The emulator leaves out what is 0.
        return {"latlngValue": {name: float(each) for name, each in wire["latlngValue"].items() if each}}
    if "pathValue" in wire:
        return {"path": [segment_text(each) for each in wire["pathValue"].get("segments", [])]}
    if "mapDiffValue" in wire:
        return {"difference": wire["mapDiffValue"].get("keyStatuses", {})}
    if "setValue" in wire:
        members = [json.dumps(canonical(each), sort_keys=True) for each in wire["setValue"].get("values", [])]
        return {"setValue": sorted(members)}
    if "values" in wire:
        return {"values": [canonical(each) for each in wire["values"]]}
    # The emulator writes half of a surrogate pair as a question mark.
    if "stringValue" in wire:
        return {"stringValue": wire["stringValue"].replace("\ufffd", "?")}
    return {name: canonical(each) for name, each in wire.items()}


def segment_text(segment):
    """A segment of a path: its text, or its wildcard with the value."""
    bound = segment.get("globCapture", {}).get("boundValue")
    if bound is None:
        return segment.get("simple", segment)
    return {"globCapture": {**segment["globCapture"], "boundValue": texts(bound)}}


def texts(path):
    """The segments of a path without wildcards. The emulator keeps those of a value that `bind` gives."""
    found = []
    for segment in path.get("segments", []):
        if "globCapture" in segment:
            found += texts(segment["globCapture"].get("boundValue", {}))
        else:
            found.append(segment["simple"] if "simple" in segment else segment["capture"].get("boundValue"))
    return found


def round_last(number):
    """Library functions may differ in the last bit."""
    return float(f"{number:.15g}") if math.isfinite(number) else number
