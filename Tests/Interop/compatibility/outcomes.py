"""A pytest plugin that writes the outcome of every test to $COMPAT_REPORT, one JSON object a line, for board.py.

A test with subtests has a line for each failed one, and its own.
"""

import json
import os


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    text = ""
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        text = report.longrepr[2]
    elif report.longrepr is not None:
        text = str(report.longrepr)
    context = getattr(report, "context", None)
    line = {
        "test": report.nodeid.split("::")[-1],
        "file": report.nodeid.split("::")[0].split("/")[-1],
        "when": report.when,
        "outcome": report.outcome,
        "subtest": context.msg if context is not None else None,
        "text": text,
    }
    with open(os.environ["COMPAT_REPORT"], "a") as out:
        out.write(json.dumps(line) + "\n")
