#!/usr/bin/env python3
"""Measures the console's page over a large collection, and prints a table.

usage: measure.py --binary PATH [--documents N] [--data DIRECTORY] [--changes N]
  --binary PATH     the program hearth
  --documents N     documents of the collection (1,000,000)
  --data DIRECTORY  a data directory whose project demo has the collection `many` already; it is served as it is
  --changes N       changes that are written, 1,000 a second (20,000)
Exits 1 if a figure misses its goal. Goals: docs/console.md.
"""

import argparse
import http.client
import json
import pathlib
import signal
import statistics
import sys
import tempfile
import threading
import time

import devtools
import flows

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "web"))
import browser  # noqa: E402

DATABASE = flows.DATABASE
#: Milliseconds, but for the memory of the page in MiB.
GOALS = {"open": 300, "first rows": 100, "frame p95": 8, "changes behind": 1_000, "heap": 64}

# Notes when the page has its frame and when the first row is there, in milliseconds since the navigation began.
MARKS = """
(() => {
  const marks = window.marks = {};
  new MutationObserver(() => {
    marks.open ??= document.querySelector('nav a') ? performance.now() : undefined;
    marks.rows ??= document.querySelector('.row') ? performance.now() : undefined;
  }).observe(document, { childList: true, subtree: true });
})()
"""


class Tracing:
    """Main-thread work of a page, frame by frame, by the browser's own trace."""

    def __init__(self, page):
        self.page = page
        self.events = []
        self.over = threading.Event()

    def __enter__(self):
        listener = self.page.chromium.listeners[self.page.session]

        def take(method, parameters):
            if method == "Tracing.dataCollected":
                self.events += parameters["value"]
            elif method == "Tracing.tracingComplete":
                self.over.set()
            else:
                listener(method, parameters)

        self.page.chromium.listeners[self.page.session] = take
        self.page.send("Tracing.start", {
            "transferMode": "ReportEvents",
            "traceConfig": {"includedCategories": ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel"]}})
        return self

    def __exit__(self, *_):
        self.page.send("Tracing.end")
        self.over.wait(devtools.WAIT_SECONDS)

    def frames(self):
        """Milliseconds of the page's main thread from one frame to the next: wall time and processor time."""
        names = {(event["pid"], event["tid"]): event["args"]["name"] for event in self.events if event["name"] == "thread_name"}
        # Of all renderers the one that animated is the page's.
        fired = {}
        for event in self.events:
            if event["name"] == "FireAnimationFrame" and names.get((event["pid"], event["tid"]), "CrRendererMain") == "CrRendererMain":
                fired.setdefault((event["pid"], event["tid"]), []).append(event["ts"])
        if not fired:
            raise SystemExit("the trace has no frame")
        thread, fired = max(fired.items(), key=lambda pair: len(pair[1]))
        # The browser notes a task under two names, one within the other.
        tasks = {name: [] for name in ("RunTask", "ThreadControllerImpl::RunTask")}
        for event in self.events:
            if (event["pid"], event["tid"]) == thread and event["name"] in tasks and event["ph"] == "X":
                tasks[event["name"]].append((event["ts"], event.get("dur", 0), event.get("tdur", 0)))
        frames = []
        for start, wall, processor in sorted(tasks["RunTask"] or tasks["ThreadControllerImpl::RunTask"]):
            # All callbacks of a frame run in one task.
            if any(start <= time <= start + wall for time in fired):
                frames.append([0, 0])
            if frames:
                frames[-1][0] += wall / 1_000
                frames[-1][1] += processor / 1_000
        return frames


def p95(values):
    return sorted(values)[int(len(values) * 0.95)] if values else float("nan")


class Measured(flows.servers.Hearth):
    """A server over a directory that stays."""

    directory = None

    def command(self):
        command = super().command()
        if self.directory:
            command[command.index("--data") + 1] = self.directory
        return command


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--data")
    parser.add_argument("--changes", type=int, default=20_000)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    chromium = browser.find() or sys.exit("there is no chromium; install it with Tools/install-dependencies --peers")
    Measured.directory = arguments.data
    with tempfile.TemporaryDirectory() as scratch:
        driven = devtools.Chromium(chromium, scratch)
        context = flows.Context(driven, arguments.binary, tempfile.mkdtemp(dir=scratch), None)
        try:
            context.start(Measured)
            if not arguments.data:
                print(f"loading {arguments.documents:,} documents", file=sys.stderr)
                context.fill("many", arguments.documents)
            figures = {}
            for measure in (opening, scrolling, changing):
                figures.update(measure(context, arguments))
        finally:
            context.close()
            driven.close()
    missed = [name for name, goal in GOALS.items() if not figures[name] <= goal]
    for name, value in figures.items():
        goal = f", goal {GOALS[name]:,}" if name in GOALS else ""
        print(f"{name}: {value:,.1f}{goal}{' MISSED' if name in missed else ''}")
    sys.exit(1 if missed else 0)


def opening(context, _):
    """From the navigation to the page and to the first rows; the median of five loads, with the files in the cache."""
    loads = []
    page = context.page()
    page.text("Connect to")
    page.send("Page.addScriptToEvaluateOnNewDocument", {"source": MARKS})
    for number in range(6):
        page.open(f"{context.base}/console?{number}#/data?db={DATABASE}&path=many")
        page.until("window.marks?.rows", "the first row")
        loads.append(page.run("({open: marks.open, rows: marks.rows - marks.open})"))
    loads = loads[1:]
    rows = page.run("performance.getEntriesByType('resource').filter(e => e.name.includes('many')).map(e => e.duration)")
    return {
        "open": statistics.median(load["open"] for load in loads),
        "first rows": statistics.median(load["rows"] for load in loads),
        "request of the first page of names": rows[0] if rows else float("nan"),
    }


def scrolling(context, _):
    """The work of the main thread in a frame while the list is scrolled by 400 pixels a frame, and the page's memory."""
    page = context.pages[-1]
    page.text("documents")
    with Tracing(page) as trace:
        page.run("""
            new Promise((resolve) => {
              const rows = document.querySelector('.rows');
              let left = 300;
              const step = () => { rows.scrollTop += 400; left -= 1; if (left) requestAnimationFrame(step); else resolve(); };
              requestAnimationFrame(step);
            })""")
    frames = trace.frames()
    page.send("HeapProfiler.collectGarbage")
    return {
        "frames": len(frames),
        "frame p95": p95([processor for _, processor in frames]),
        "frame p95, wall time": p95([wall for wall, _ in frames]),
        "frame median": statistics.median(processor for _, processor in frames),
        "rows as elements": page.run("document.querySelectorAll('.row').length"),
        "heap": page.send("Runtime.getHeapUsage")["usedSize"] / (1 << 20),
    }


def changing(context, arguments):
    """1,000 changes a second of visible documents: how long after the last one the page shows it."""
    page = context.page(f"#/data?db={DATABASE}&path=many/d0000000")
    page.text("number 0")
    page.until("document.querySelectorAll('.row').length > 5", "rows")
    done = threading.Event()
    behind = []

    def write():
        connection = http.client.HTTPConnection("127.0.0.1", context.server.port)
        start = time.monotonic()
        for number in range(0, arguments.changes, 20):
            writes = [
                {"update": {"name": f"{DATABASE}/documents/many/d{(number + at) % 20:07}", "fields": {
                    "number": {"integerValue": str(number + at)}, "text": {"stringValue": f"change {number + at}"}}}}
                for at in range(20)]
            connection.request("POST", f"/v1/{flows.urllib.request.quote(DATABASE)}/documents:commit", json.dumps({"writes": writes}))
            connection.getresponse().read()
            time.sleep(max(0, start + (number + 20) / 1_000 - time.monotonic()))
        behind.append(time.monotonic() - start - arguments.changes / 1_000)
        done.set()

    with Tracing(page) as trace:
        threading.Thread(target=write, daemon=True).start()
        done.wait(600)
        written = time.monotonic()
        page.text(f"change {arguments.changes - 20}")
        shown = time.monotonic()
    page.send("HeapProfiler.collectGarbage")
    return {
        "changes written late by": behind[0] * 1_000,
        "changes behind": (shown - written) * 1_000,
        "frame p95 with changes": p95([processor for _, processor in trace.frames()]),
        "heap after changes": page.send("Runtime.getHeapUsage")["usedSize"] / (1 << 20),
    }


if __name__ == "__main__":
    main()
