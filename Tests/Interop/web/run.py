#!/usr/bin/env python3
"""Runs the official web SDK in a headless chromium against Hearth, and against the official emulator where it is installed.

usage: run.py --binary PATH --sdk DIR [--page PAGE] [--only PATTERN] [--no-emulator] [--latency]
  --binary PATH    the program hearth
  --sdk DIR        firebase-app.js, firebase-firestore.js and so on, as the npm package `firebase` has them
  --page PAGE      write the tables into this page
  --only PATTERN   only cases whose name has a match
  --no-emulator    Hearth alone
  --latency        only the latencies
Exits 1 if a case fails against Hearth.
"""

import argparse
import pathlib
import signal
import sys
import tempfile

import browser
import servers
import table

RUN_SECONDS = 1_200
EXAMPLE = pathlib.Path(__file__).parents[3] / "Examples/web-tasks"


def run(server, arguments, chromium, scratch):
    """All cases against one server: the reports of the page."""
    server.start()
    host = browser.Host(arguments.sdk, server, {"tasks": EXAMPLE}.items())
    proxy = browser.BufferingProxy(server)
    guarded = server.guarded()
    if guarded:
        guarded.start()
        host.mint = guarded.mint
    url = host.url(
        "pages/suite.html", port=server.port, only=arguments.only, durable=int(server.is_durable),
        latency=int(arguments.latency), proxy=proxy.server_port, guarded=guarded.port if guarded else 0)
    try:
        with browser.showing(chromium, url, scratch):
            shown = 0
            for _ in range(RUN_SECONDS * 5):
                finished = host.done.wait(0.2)
                for report in host.reports[shown:]:
                    show(server, report)
                    shown += 1
                if finished:
                    return host.reports
        sys.exit(f"{server.name}: the page did not finish; its last report: {host.reports[-1:]}")
    finally:
        host.shutdown()
        proxy.shutdown()
        server.stop()
        if guarded:
            guarded.stop()


def show(server, report):
    if report["kind"] == "case":
        text = {True: "passed", False: "FAILED", None: "not run"}[report["passed"]]
        print(f"{server.name}: {text}: {report['group']}: {report['name']} ({report['milliseconds']} ms) {report['text']}", flush=True)
    elif report["kind"] != "done":
        print(f"{server.name}: {report}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--sdk", required=True)
    parser.add_argument("--page")
    parser.add_argument("--only", default="")
    parser.add_argument("--no-emulator", action="store_true")
    parser.add_argument("--latency", action="store_true")
    arguments = parser.parse_args()
    # So that what was started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    chromium = browser.find() or sys.exit("there is no chromium; install it with Tools/install-dependencies --peers")
    with tempfile.TemporaryDirectory() as scratch:
        tested = [servers.Hearth(arguments.binary, scratch)]
        if not arguments.no_emulator and servers.Emulator.start_script():
            tested.append(servers.Emulator(scratch))
        results = {server.name: run(server, arguments, chromium, scratch) for server in tested}
    if arguments.page:
        table.write(pathlib.Path(arguments.page), results)
    failed = [report for report in results["Hearth"] if report["kind"] == "case" and report["passed"] is False]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
