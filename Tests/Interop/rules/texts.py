"""Texts of rules with parts removed, repeated and exchanged: whether both accept them."""

import re

import requests_of_rules
from difference import Difference

asked = 0
TOKEN = re.compile(r"'[^'\n]*'|/\*.*?\*/|//[^\n]*|[A-Za-z_$][\w$]*|\d+|&&|\|\||==|!=|<=|>=|\*\*|\s+|.", re.S)
EXTRA = (
    "{ } ( ) [ ] / $ * ** . , ; : ? = == != < <= > >= + - % ! && || in is let return function match allow if true null "
    "read 1 1.5 .5 'a' \"b\" b'c' // /* */ x request /a /{a} /{a=**} $( service rules_version int map"
).split(" ")


def differences(theirs, ours, rng, count):
    """Compares whether so many mutated texts compile."""
    global asked
    for _ in range(count):
        asked += 1
        text = mutated(rng, requests_of_rules.ruleset(rng))
        errors = theirs.set_rules(text), ours.set_rules(text)
        if (errors[0] is None) != (errors[1] is None):
            yield Difference("compiles", text, str(errors[0]), str(errors[1]))


def mutated(rng, text):
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice([1, 1, 1, 2])):
        at = rng.randrange(len(tokens))
        kind = rng.randrange(5)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, rng.choice(tokens))
        elif kind == 2:
            tokens[at] = rng.choice(EXTRA)
        elif kind == 3:
            tokens.insert(at, rng.choice(EXTRA))
        else:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)
