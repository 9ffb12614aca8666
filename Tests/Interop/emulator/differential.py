"""Asks two servers the same and compares the answers: results, error codes and error texts.

usage: differential.py EMULATOR HEARTH [--seed N] [--cases N] [--borders N] [--scenarios N] [--only PATTERN] [--known]
  EMULATOR, HEARTH   HOST:PORT of the official emulator and of Hearth
  --seed N           the seed of the random cases; drawn and printed without
  --cases N          so many random cases after the chosen ones (default 200)
  --borders N        so many random cases with values at the borders of their types after these (default 200)
  --scenarios N      so many random scenarios of listening after the cases (default 100)
  --only PATTERN     only cases and scenarios whose name has a match
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

import borders
import cases
import known_differences
import listening
import scenarios
import wire


def ask(server, method, request):
    """Makes one step of a case."""
    if method == "Write":
        return server.write_stream(*(parse("Write", text, server) for text in request))
    if method == "ListPages":
        return server.list_pages(parse("ListDocuments", request, server))
    return server.call(method, parse(method, request, server))


def parse(method, text, server):
    return wire.parsed(wire.REQUESTS[method], text, server)


def selected(arguments):
    """The chosen cases, the random ones, and the scenarios of listening."""
    yield from cases.chosen()
    rng = random.Random(arguments.seed)
    for number in range(arguments.cases):
        yield cases.random_case(rng, number)
    for number in range(arguments.borders):
        yield borders.random_case(random.Random(f"{arguments.seed} borders {number}"), number)
    for number in range(arguments.scenarios):
        yield scenarios.random_scenario(random.Random(f"{arguments.seed} {number}"), number)


def compare(case, servers, snapshots):
    """The steps of a case that are answered differently: method, request and both answers."""
    if isinstance(case, scenarios.Scenario):
        run = listening.Listening(servers)
        yield from run.run(case)
        snapshots.update(compared=run.compared, filled=run.filled)
        return
    for method, request in case.steps:
        answers = [ask(server, method, request) for server in servers]
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
    parser.add_argument("--borders", type=int, default=200)
    parser.add_argument("--scenarios", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--known", action="store_true")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    steps = unexplained = 0
    explained, snapshots = collections.Counter(), collections.Counter()
    for case in selected(arguments):
        if not re.search(arguments.only, case.name):
            continue
        project = "p" + uuid.uuid4().hex[:12]
        steps += len(case.steps)
        servers = [wire.Server(address, project) for address in (arguments.emulator, arguments.hearth)]
        for difference in compare(case, servers, snapshots):
            reason = known_differences.explain(*difference)
            if reason is None:
                unexplained += 1
                show(f"\n{case.name}: different", *difference)
            else:
                explained[reason] += 1
                if arguments.known:
                    show(f"\n{case.name}: known: {reason}", *difference)
        for server in servers:
            server.close()
    print(f"\n{snapshots['compared']} snapshots of targets compared, {snapshots['filled']} of them with documents")
    print(f"{steps} requests and steps, {unexplained} differences, and known ones:")
    for reason, number in explained.most_common():
        print(f"{number:6}  {reason}")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
