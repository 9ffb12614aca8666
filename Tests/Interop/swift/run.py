#!/usr/bin/env python3
"""Builds the Swift tests of Apple's Firestore SDK against this package's FirebaseFirestore and runs them.

usage: run.py --sdk CHECKOUT --scratch DIR [--page PAGE] [--only PATTERN]
  --sdk CHECKOUT   a checkout of firebase-ios-sdk: Firestore/Swift/Tests is needed
  --scratch DIR    where the temporary package is made and built; a later run builds only what has changed
  --page PAGE      write the results into this page
  --only PATTERN   only tests whose CLASS.NAME has a match
FIRESTORE_EMULATOR_HOST is the server's address. Exits 1 if a test fails that reasons.py does not list, or passes that it
lists.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request

import reasons

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
FOLDERS = ["Integration", "Codable", "TestHelper"]
RUN_SECONDS = 1_200
BEGIN, END = "<!-- measured: Tools/compat swift -->", "<!-- end of what the Swift tests measured -->"

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "sdk-tests",
    dependencies: [.package(name: "Hearth", path: "{root}")],
    targets: [
        .target(name: "Combine"),
        .testTarget(
            name: "SDKTests",
            dependencies: [
                "Combine", .product(name: "FirebaseFirestore", package: "Hearth"),
                .product(name: "DocumentCoding", package: "Hearth"),
            ],
            swiftSettings: [.swiftLanguageMode(.v5), .unsafeFlags(["-suppress-warnings"])]),
    ]
)
"""


def sources(sdk):
    """The SDK's files of tests by their names."""
    folders = [sdk / "Firestore/Swift/Tests" / folder for folder in FOLDERS]
    files = {path.name: path for folder in folders for path in sorted(folder.glob("*.swift"))}
    if not files:
        sys.exit(f"there are no Swift tests in {folders[0]}; is it a checkout of firebase-ios-sdk?")
    return {name: path for name, path in files.items() if name not in reasons.EXCLUDED}


# Numbers, arrays and maps of Foundation are not hashable on Linux in the forms of Swift.
REPLACED = {"QueryToPipelineTests.swift": [("$0.data as! [String: AnyHashable?]", "hashable($0.data)")]}


def make_package(package, files):
    """A package of our setup class and of links to the SDK's tests, or copies of those in which a line is replaced."""
    shutil.rmtree(package / "Sources", ignore_errors=True)
    shutil.rmtree(package / "Tests", ignore_errors=True)
    tests = package / "Tests/SDKTests"
    tests.mkdir(parents=True)
    (package / "Sources").mkdir()
    (package / "Sources/Combine").symlink_to(HERE / "Combine")
    (tests / "Setup").symlink_to(HERE / "Setup")
    for name, path in files.items():
        if name in REPLACED:
            text = path.read_text()
            for old, new in REPLACED[name]:
                if old not in text:
                    sys.exit(f"{name} does not have the line: {old}")
                text = text.replace(old, new)
            (tests / name).write_text(text)
        else:
            (tests / name).symlink_to(path)
    manifest = package / "Package.swift"
    text = MANIFEST.format(root=ROOT)
    if not manifest.exists() or manifest.read_text() != text:
        manifest.write_text(text)


def build(package):
    subprocess.run(["swift", "build", "--build-tests"], cwd=package, check=True, stdout=sys.stderr)
    return package / ".build/debug/sdk-testsPackageTests.xctest"


# What the backend of the SDK's authors has for the tests of searches.
SEARCHED = "TextSearchIntegrationTests"
TEXT = {"textSpec": {"indexSpecs": [{"indexType": "TOKENIZED", "matchType": "MATCH_GLOBALLY"}]}}
SEARCH_INDEX = {
    "queryScope": "COLLECTION",
    "fields": [{"fieldPath": name, "searchConfig": TEXT} for name in ("name", "description", "menu")]
    + [{"fieldPath": "location", "searchConfig": {"geoSpec": {}}}],
}


def declare_index(host):
    url = f"http://{host}/v1/projects/test-db/databases/(default)/collectionGroups/{SEARCHED}/indexes"
    request = urllib.request.Request(
        url, json.dumps(SEARCH_INDEX).encode(), {"Content-Type": "application/json", "Authorization": "Bearer owner"})
    urllib.request.urlopen(request).read()


class Outcomes:
    """What came of each test. A crash is a failure of the test that was running; the others run again without it."""

    ENDED = "the process ended, or took too long"
    START = re.compile(r"^Test Case '([\w.]+)' started")
    END = re.compile(r"Test Case '([\w.]+)' (passed|failed|skipped) \(")
    PROBLEM = re.compile(r"^\S+:(\d+): error: ([\w.]+) : (.*)")
    CRASH = re.compile(r"(?:Fatal error|Firestore|Program crashed): (.*?)(?: \*\*\*)?$")

    def __init__(self):
        self.outcomes = {}
        self.texts = {}

    def run(self, binary, tests, environment):
        left = list(tests)
        while left:
            names = ",".join(f"SDKTests.{test.replace('.', '/')}" for test in left)
            try:
                ended = subprocess.run(
                    [binary, names], env=environment, cwd=binary.parents[2], text=True, timeout=RUN_SECONDS,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                output = ended.stdout
            except subprocess.TimeoutExpired as error:
                output = (error.stdout or b"").decode(errors="replace")
            self.read(output)
            undone = [test for test in left if test not in self.outcomes]
            if len(undone) == len(left):
                sys.exit(f"no test ran:\n{output[-4000:]}")
            left = undone

    def read(self, output):
        running, crash = None, self.ENDED
        for line in output.splitlines():
            if match := self.START.match(line):
                running, crash = match[1], self.ENDED
            elif match := self.PROBLEM.match(line):
                self.texts.setdefault(match[2], f"line {match[1]}: {match[3].removesuffix(' - ')}")
            elif (match := self.CRASH.search(line)) and crash == self.ENDED:
                crash = f"the process ended: {match[1]}"
            # Output without an end of its line may stand before it.
            if match := self.END.search(line):
                self.outcomes[match[1]] = match[2]
                running = None
        if running:
            self.outcomes[running] = "failed"
            self.texts[running] = crash

    def of(self, name, outcome):
        return sum(1 for test, found in self.outcomes.items() if test.split(".")[0] == name and found == outcome)


def tests(binary):
    listed = subprocess.run([binary, "--list-tests"], check=True, capture_output=True, text=True).stdout
    return [line.split(".", 1)[1].replace("/", ".") for line in listed.splitlines() if line.startswith("SDKTests.")]


def page_lines(outcomes):
    yield BEGIN
    yield ""
    yield "| class | passed | failed | not run |"
    yield "|---|---|---|---|"
    for name in sorted({test.split(".")[0] for test in outcomes.outcomes}):
        counts = [outcomes.of(name, outcome) for outcome in ("passed", "failed", "skipped")]
        yield f"| `{name}` | " + " | ".join(map(str, counts)) + " |"
    totals = [list(outcomes.outcomes.values()).count(outcome) for outcome in ("passed", "failed", "skipped")]
    yield "| all | " + " | ".join(map(str, totals)) + " |"
    yield ""
    failed = sorted(test for test, outcome in outcomes.outcomes.items() if outcome == "failed")
    yield "Failed:" if failed else "Nothing failed."
    if failed:
        yield ""
        yield from (f"- `{test}`: {reasons.FAILURES.get(test, 'not expected')}" for test in failed)
    yield ""
    yield "Not built:" if reasons.EXCLUDED else "All are built."
    yield ""
    if reasons.EXCLUDED:
        yield from (f"- `{name}`: {reason}" for name, reason in sorted(reasons.EXCLUDED.items()))
        yield ""
    yield END


def write(page, outcomes):
    text = page.read_text()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    page.write_text(before + "\n".join(page_lines(outcomes)) + after)


def judge(outcomes):
    """Prints what failed; the number of outcomes that reasons.py does not expect."""
    unexpected = 0
    for test, outcome in sorted(outcomes.outcomes.items()):
        if outcome == "failed":
            reason = reasons.FAILURES.get(test)
            print(f"{'failed' if reason else 'FAILED'}: {test}: {outcomes.texts.get(test, '')}" + (f" (known: {reason})" if reason else ""))
            unexpected += reason is None
        elif outcome == "passed" and test in reasons.FAILURES:
            print(f"PASSED, which reasons.py does not expect: {test}")
            unexpected += 1
    counts = [f"{list(outcomes.outcomes.values()).count(outcome)} {outcome}" for outcome in ("passed", "failed", "skipped")]
    print(", ".join(counts) + f"; {unexpected} not expected")
    return unexpected


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--sdk", required=True, type=pathlib.Path)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    package = arguments.scratch.resolve()
    files = sources(arguments.sdk.resolve())
    make_package(package, files)
    binary = build(package)
    cache = package / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    # The SDK's default is a cache on disk; and here its tests find another one in each run.
    environment = dict(os.environ, HEARTH_CACHE=str(cache), HEARTH_PROJECT="test-db")
    declare_index(environment["FIRESTORE_EMULATOR_HOST"])
    outcomes = Outcomes()
    outcomes.run(binary, [test for test in tests(binary) if re.search(arguments.only, test)], environment)
    if arguments.page:
        write(arguments.page, outcomes)
    sys.exit(1 if judge(outcomes) else 0)


if __name__ == "__main__":
    main()
