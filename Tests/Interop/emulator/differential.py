"""Asks two servers the same and compares the answers: results, error codes and error texts.

usage: differential.py EMULATOR HEARTH [--seed N] [--cases N] [--only PATTERN] [--known]
  EMULATOR, HEARTH   HOST:PORT of the official emulator and of Hearth
  --seed N           the seed of the random cases; drawn and printed without
  --cases N          so many random cases after the chosen ones (default 200)
  --only PATTERN     only cases whose name has a match
  --known            print the known differences too, with their reasons

Each case runs in a project of its own. Differences that known_differences.py explains are counted; any other is printed
and makes the status 1.
"""

import argparse
import collections
import random
import re
import sys
import uuid

from google.protobuf import text_format

import cases
import known_differences
import wire


def ask(server, method, request):
    """Makes one step of a case."""
    if method == "Write":
        return server.write_stream(*(parse("Write", text, server) for text in request))
    return server.call(method, parse(method, request, server))


def parse(method, text, server):
    message = wire.REQUESTS[method]()
    # Quotes keep the placeholders from meeting anything else.
    text_format.Parse(text.replace('"ROOT', f'"{server.root}').replace('"DB"', f'"{server.database}"'), message)
    return message


def selected(arguments):
    """The chosen cases, then the random ones."""
    yield from cases.chosen()
    rng = random.Random(arguments.seed)
    for number in range(arguments.cases):
        yield cases.random_case(rng, number)


def compare(case, emulator, hearth):
    """The steps of a case that are answered differently: method, request and both answers."""
    for method, request in case.steps:
        answers = [ask(server, method, request) for server in (emulator, hearth)]
        if answers[0] != answers[1]:
            yield method, request, *answers


def show(title, method, request, theirs, ours):
    print(f"{title}\n  {method} {str(request)[:600]}\n  emulator: {str(theirs)[:600]}\n  hearth:   {str(ours)[:600]}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("emulator")
    parser.add_argument("hearth")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--known", action="store_true")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    steps = unexplained = 0
    explained = collections.Counter()
    for case in selected(arguments):
        if not re.search(arguments.only, case.name):
            continue
        project = "p" + uuid.uuid4().hex[:12]
        steps += len(case.steps)
        for difference in compare(
            case, wire.Server(arguments.emulator, project), wire.Server(arguments.hearth, project)
        ):
            reason = known_differences.explain(*difference)
            if reason is None:
                unexplained += 1
                show(f"\n{case.name}: different", *difference)
            else:
                explained[reason] += 1
                if arguments.known:
                    show(f"\n{case.name}: known: {reason}", *difference)
    print(f"\n{steps} requests, {unexplained} differences, and known ones:")
    for reason, number in explained.most_common():
        print(f"{number:6}  {reason}")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
