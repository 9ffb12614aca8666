"""Writes the measured part of docs/compatibility.md from what outcomes.py noted, and judges it.

usage: board.py --version V --emulator FILE --cloud FILE --pipelines FILE --admin FILE [--page PAGE]

Exits 1 if a test failed for a reason that is not one of OPEN below, or the tour of firebase-admin did.
"""

import argparse
import collections
import json
import pathlib
import sys

# Tests of test_pipeline_acceptance.py whose result depends on the order of a read without a sort. The cloud leaves it open
# and does not read in the order of names: here the rows come in that order.
OPEN = {
    "aggregates.yaml: testArrayAggDistinct": "the order in which the cloud's scan meets the values",
    "general.yaml: testStorageSize": "the cloud's scan begins with `book10`, whose name has 29 bytes; ours with `book1` and 28",
    "subqueries.yaml: array_subquery_with_variable": "the cloud's scan meets `book8` before `book5`",
}
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
                self.subtests[line["test"]] += 1
            return
        # A failure in teardown stands above the success before it.
        if self.outcomes.get(key) == "failed":
            return
        self.outcomes[key] = line["outcome"]
        if line["outcome"] == "failed":
            self.reasons[key] = self.reason(line) or "unexpected"
        elif line["outcome"] == "skipped":
            self.reasons[key] = line["text"].removeprefix("Skipped: ")

    @staticmethod
    def reason(line):
        """Why a test may fail; None if it may not."""
        return next((name for name in OPEN if line["test"].endswith(f"[{name}]")), None)

    def count(self, file, outcome):
        return sum(1 for (name, _), value in self.outcomes.items() if name == file and value == outcome)

    def failed(self):
        result = collections.defaultdict(list)
        for key, outcome in sorted(self.outcomes.items()):
            if outcome == "failed":
                result[self.reasons[key]].append(key)
        return result

    def skipped(self):
        result = collections.defaultdict(list)
        for key, outcome in sorted(self.outcomes.items()):
            if outcome == "skipped":
                result[self.reasons[key]].append(key)
        return result


def names(keys):
    """The distinct functions of tests, with how many variants ran of each."""
    counts = collections.Counter((file, test.split("[")[0]) for file, test in keys)
    return ", ".join(f"`{test}`" + (f" ({count})" if count > 1 else "") for (_, test), count in sorted(counts.items()))


SYSTEM = ("test_system.py", "test_system_async.py")
ACCEPTANCE = ("test_pipeline_acceptance.py",)


def section(title, run, files=SYSTEM, names_skipped=True):
    lines = [f"### {title}", "", "| file | passed | failed | not run |", "|---|---|---|---|"]
    for file in files:
        counts = [run.count(file, outcome) for outcome in ("passed", "failed", "skipped")]
        lines.append(f"| `{file}` | " + " | ".join(map(str, counts)) + " |")
    lines.append("")
    failed = run.failed()
    if not failed:
        lines += ["Nothing failed.", ""]
    if "unexpected" in failed:
        lines += [f"Failed for unknown reasons: {names(failed.pop('unexpected'))}.", ""]
    if failed:
        lines += ["Failed because the result depends on what the cloud leaves open, the order of a read without a sort:", ""]
        lines += [f"- `{name}` ({len(keys)}): {OPEN[name]}" for name, keys in sorted(failed.items())] + [""]
    for test, count in sorted(run.subtests.items()):
        lines += [f"The suite's second check of the results failed {count} times in `{test}`.", ""]
    skipped = run.skipped()
    if skipped:
        lines += ["Not run, in the suite's words:", ""]
        for reason, keys in sorted(skipped.items(), key=lambda item: -len(item[1])):
            lines.append(f"- {len(keys)}, {reason.rstrip('.')}" + (f": {names(keys)}" if names_skipped else ""))
        lines.append("")
    return lines


def main():
    parser = argparse.ArgumentParser()
    for name in ("version", "emulator", "cloud", "pipelines", "admin"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--page")
    arguments = parser.parse_args()
    emulator, cloud, pipelines = (Run(path) for path in (arguments.emulator, arguments.cloud, arguments.pipelines))
    admin = pathlib.Path(arguments.admin).read_text().strip().splitlines()
    lines = [BEGIN, "", f"google-cloud-firestore {arguments.version} from PyPI; its own `tests/system`.", ""]
    lines += section("With the suite's emulator skips", emulator, names_skipped=False)
    without = section("Without them", cloud)
    lines += without[:2]
    lines += ["The vector indexes that the suite expects in its project are declared, as its `bootstrap_vector_index.py` does.", ""]
    lines += without[2:]
    acceptance = section("Pipelines", pipelines, ACCEPTANCE)
    lines += acceptance[:2]
    lines += ["The index for searches that the suite expects in its project is declared, in the database of its pipelines.", ""]
    lines += acceptance[2:]
    lines += ["### firebase-admin", "", *(f"- {line}" for line in admin), "", END]
    text = "\n".join(lines)
    if arguments.page:
        page = pathlib.Path(arguments.page)
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text(before + text + rest.partition(END)[2])
    else:
        print(text)
    runs = (emulator, cloud, pipelines)
    unexpected = [key for run in runs for key in run.failed().get("unexpected", [])]
    unexpected += [("second check", test) for run in runs for test in run.subtests]
    ran = sum(1 for run in runs for outcome in run.outcomes.values() if outcome == "passed")
    for file, test in unexpected:
        print(f"compat: failed: {file}::{test}", file=sys.stderr)
    if ran == 0 or not admin or not admin[-1].startswith("all "):
        print("compat: the run is not complete", file=sys.stderr)
        return 1
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
