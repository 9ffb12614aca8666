"""Writes the measured part of docs/compatibility.md from what outcomes.py noted, and judges it.

usage: board.py --version V --emulator FILE --cloud FILE --admin FILE [--page PAGE]

Exits 1 if a test failed for a reason that is not one of MISSING below, or the tour of firebase-admin did.
"""

import argparse
import collections
import json
import pathlib
import re
import sys

# What is not there yet: a name for the board, and how its absence shows in a failed test.
MISSING = [
    ("pipelines", re.compile(r"ExecutePipeline|execute_pipeline|pipeline", re.I)),
]
BEGIN, END = "<!-- measured: Tools/compat python -->", "<!-- end of what is measured -->"


class Run:
    """The outcomes of one run of the suite, by test."""

    def __init__(self, path):
        self.outcomes = {}
        self.reasons = {}
        self.subtests = collections.Counter()
        for line in pathlib.Path(path).read_text().splitlines():
            self.add(json.loads(line))

    def add(self, line):
        key = (line["file"], line["test"])
        if line["subtest"] is not None:
            # Verified a second time by other means; the test itself has its own line.
            if line["outcome"] == "failed":
                self.subtests[self.missing(line)] += 1
            return
        # A failure in teardown stands above the success before it.
        if self.outcomes.get(key) == "failed":
            return
        self.outcomes[key] = line["outcome"]
        if line["outcome"] == "failed":
            self.reasons[key] = self.missing(line) or "unexpected"
        elif line["outcome"] == "skipped":
            self.reasons[key] = line["text"].removeprefix("Skipped: ")

    @staticmethod
    def missing(line):
        text = line["text"]
        for name, pattern in MISSING:
            # The last lines say what was thrown.
            if pattern.search(line["test"]) or pattern.search(text[-4000:]):
                return name
        return None

    def count(self, file, outcome):
        return sum(1 for (name, _), value in self.outcomes.items() if name == file and value == outcome)

    def failed(self):
        result = collections.defaultdict(list)
        for key, outcome in sorted(self.outcomes.items()):
            if outcome == "failed":
                result[self.reasons[key]].append(key)
        return result

    def skipped(self):
        return collections.Counter(self.reasons[key] for key, value in self.outcomes.items() if value == "skipped")


def names(keys):
    """The distinct functions of tests, with how many variants ran of each."""
    counts = collections.Counter((file, test.split("[")[0]) for file, test in keys)
    return ", ".join(f"`{test}`" + (f" ({count})" if count > 1 else "") for (_, test), count in sorted(counts.items()))


def section(title, run):
    lines = [f"### {title}", "", "| file | passed | failed | not run |", "|---|---|---|---|"]
    for file in ("test_system.py", "test_system_async.py"):
        counts = [run.count(file, outcome) for outcome in ("passed", "failed", "skipped")]
        lines.append(f"| `{file}` | " + " | ".join(map(str, counts)) + " |")
    lines.append("")
    failed = run.failed()
    if not failed:
        lines += ["Nothing failed.", ""]
    for reason, keys in sorted(failed.items()):
        what = "Failed for unknown reasons" if reason == "unexpected" else f"Failed because Hearth lacks {reason}"
        lines += [f"{what}: {names(keys)}.", ""]
    for reason, count in sorted(run.subtests.items(), key=str):
        lines += [f"In {count} tests that passed, the suite's second check of the results needs {reason or 'a look'}.", ""]
    skipped = run.skipped()
    if skipped:
        lines += ["Not run, in the suite's words:", ""]
        lines += [f"- {count}: {reason}" for reason, count in sorted(skipped.items(), key=lambda item: -item[1])]
        lines.append("")
    return lines


def main():
    parser = argparse.ArgumentParser()
    for name in ("version", "emulator", "cloud", "admin"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--page")
    arguments = parser.parse_args()
    emulator, cloud = Run(arguments.emulator), Run(arguments.cloud)
    admin = pathlib.Path(arguments.admin).read_text().strip().splitlines()
    lines = [BEGIN, "", f"google-cloud-firestore {arguments.version} from PyPI; its own `tests/system`.", ""]
    lines += section("With the suite's emulator skips", emulator)
    without = section("Without them", cloud)
    lines += without[:2]
    lines += ["The vector indexes that the suite expects in its project are declared, as its `bootstrap_vector_index.py` does.", ""]
    lines += without[2:]
    lines += ["### firebase-admin", "", *(f"- {line}" for line in admin), "", END]
    text = "\n".join(lines)
    if arguments.page:
        page = pathlib.Path(arguments.page)
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text(before + text + rest.partition(END)[2])
    else:
        print(text)
    unexpected = [key for run in (emulator, cloud) for key in run.failed().get("unexpected", [])]
    ran = sum(run.count(file, "passed") for run in (emulator, cloud) for file in ("test_system.py", "test_system_async.py"))
    for file, test in unexpected:
        print(f"compat: failed: {file}::{test}", file=sys.stderr)
    if ran == 0 or not admin or not admin[-1].startswith("all "):
        print("compat: the run is not complete", file=sys.stderr)
        return 1
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
