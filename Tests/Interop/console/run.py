#!/usr/bin/env python3
"""Drives the console in a headless chromium against a server of its own.

usage: run.py --binary PATH [--short] [--images FOLDER] [--only PATTERN]
  --binary PATH    the program hearth
  --short          the flows that Tools/test runs
  --images FOLDER  write the screenshots of docs/console.md into this folder
  --only PATTERN   only flows whose name has a match
Exits 1 if a flow fails. An error in the page's console, or a violation of its policy, fails the flow.
"""

import argparse
import inspect
import pathlib
import re
import signal
import sys
import tempfile
import time
import traceback

import devtools
import flows

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "web"))
import browser  # noqa: E402


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--images")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    # So that what was started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    chromium = browser.find() or sys.exit("there is no chromium; install it with Tools/install-dependencies --peers")
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        driven = devtools.Chromium(chromium, scratch)
        try:
            for name, flow in inspect.getmembers(flows, inspect.isfunction):
                if not name.startswith("flow_") or not re.search(arguments.only, name):
                    continue
                if arguments.short and not getattr(flow, "is_short", False):
                    continue
                failed += not run(name, flow, driven, arguments, scratch)
        finally:
            driven.close()
    sys.exit(1 if failed else 0)


def run(name, flow, driven, arguments, scratch):
    """Whether a flow passes, with a server and a page of its own."""
    start = time.monotonic()
    context = flows.Context(driven, arguments.binary, tempfile.mkdtemp(dir=scratch), arguments.images)
    try:
        flow(context)
        context.check()
        print(f"passed: {name[5:]} ({time.monotonic() - start:.1f} s)", flush=True)
        return True
    except Exception:
        print(f"FAILED: {name[5:]}\n{traceback.format_exc()}", flush=True)
        return False
    finally:
        context.close()


if __name__ == "__main__":
    main()
