"""Asks the official emulator and Hearth's rules the same and compares the answers.

usage: differential.py EMULATOR JUDGE [--seed N] [--expressions N] [--texts N] [--requests N]
                       [--queries N] [--known]
  EMULATOR         HOST:PORT of the official emulator
  JUDGE            the program hearth-judge
  --seed N         the seed of the random cases; drawn and printed without
  --expressions N  random expressions, whose values are compared (default 2000)
  --texts N        rulesets with parts exchanged, of which is compared whether they compile (default 500)
  --requests N     random rulesets with reads, writes and batches, whose verdicts are compared (default 300)
  --queries N      random rules and queries, whose verdicts are compared (default 1000)
  --known          print the known differences too, with their reasons

Differences that known_differences.py explains are counted; any other is printed and makes the status 1.
"""

import argparse
import collections
import random
import sys
import uuid

import emulator
import judge
import known_differences
import queries
import requests_of_rules
import texts
import values


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("emulator")
    parser.add_argument("judge")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--expressions", type=int, default=2000)
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--known", action="store_true")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    theirs = emulator.Emulator(arguments.emulator, "p" + uuid.uuid4().hex[:12])
    ours = judge.Judge(arguments.judge)
    parts = [
        values.differences(theirs, ours, rng, arguments.expressions),
        texts.differences(theirs, ours, rng, arguments.texts),
        requests_of_rules.differences(theirs, ours, rng, arguments.requests),
        queries.differences(theirs, ours, rng, arguments.queries),
    ]
    unexplained, explained = 0, collections.Counter()
    for part in parts:
        for difference in part:
            reason = known_differences.explain(difference)
            if reason is None:
                unexplained += 1
            else:
                explained[reason] += 1
            if reason is None or arguments.known:
                print(f"\n{difference}" + (f"\n  known: {reason}" if reason else ""))
    asked = values.asked + texts.asked + requests_of_rules.asked + queries.asked
    print(f"\n{asked} cases, {unexplained} differences, and known ones:")
    for reason, number in explained.most_common():
        print(f"{number:6}  {reason}")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
