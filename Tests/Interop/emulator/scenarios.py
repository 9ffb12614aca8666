"""Random scenarios of listening: targets, and steps that change documents or targets.

A target is the text of a `Target` without its id. A step is a kind with its arguments; differential.py makes it.
"""

import dataclasses

import borders
import cases
from cases import Ref, quoted


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    # Writes before there are targets.
    setting: tuple
    # Texts of targets by their ids.
    targets: dict
    steps: tuple


class Plain:
    """Documents, queries and writes with the values of cases.py."""

    def __init__(self, rng):
        self.rng = rng

    def path(self):
        """A document in a collection, or in a collection below a document."""
        parent = self.rng.choice(["", "", "", "c/1/", "d/2/"])
        return f"{parent}{self.rng.choice('ccd')}/{self.rng.randrange(8)}"

    def document(self):
        return cases.random_document(self.rng)

    def write(self, path=None):
        return cases.random_write(self.rng, path or self.path())

    def query(self):
        rng = self.rng
        text = self.window() if rng.random() < 0.4 else cases.random_query(rng)
        if rng.random() < 0.2:
            fields = " ".join(f'fields {{ field_path: "{field}" }}' for field in rng.sample(cases.FIELDS, 2))
            text += f"select {{ {fields} }} "
        return text

    def window(self):
        """A query that most documents match, with few results."""
        rng = self.rng
        text = cases.collection(rng.choice("ccd"), rng.random() < 0.3)
        if rng.random() < 0.6:
            text += cases.order(rng.choice(["a", "b", "m.x", "__name__"]))
        if rng.random() < 0.3:
            text += f"offset: {rng.randrange(3)} "
        return text + f"limit {{ value: {rng.randrange(1, 5)} }} "


def target(source):
    rng = source.rng
    if rng.random() < 0.2:
        names = " ".join(f"documents: {quoted(Ref(source.path()).name)}" for _ in range(rng.randrange(5)))
        return f"documents {{ {names} }}"
    parent = rng.choice(["", "", "", "", "/c/1"]) if isinstance(source, Plain) else ""
    return f'query {{ parent: "ROOT{parent}" structured_query {{ {source.query()} }} }}'


def writes(source, most=4):
    return [source.write() for _ in range(source.rng.randrange(1, most))]


def step(source, numbers):
    """One step; `numbers` are the ids of targets."""
    rng = source.rng
    kind = rng.choices(
        ["commit", "delete", "batch write", "transaction", "target", "resume", "clear"], [10, 3, 2, 2, 2, 2, 0.5]
    )[0]
    if kind == "commit":
        return kind, cases.commit(*writes(source))
    if kind == "delete":
        names = [Ref(source.path()).name for _ in range(rng.randrange(1, 6))]
        return "commit", cases.commit(*(f"delete: {quoted(name)}" for name in names))
    if kind == "batch write":
        each = {source.path(): None for _ in range(rng.randrange(1, 5))}
        text = " ".join(f"writes {{ {source.write(path)} }}" for path in each)
        return "commit", ("BatchWrite", f'database: "DB" {text}')
    if kind == "transaction":
        return kind, source.path(), cases.commit(*writes(source))
    if kind == "target":
        return kind, rng.choice(numbers), target(source)
    if kind == "resume":
        return kind, rng.random() < 0.5, cases.commit(*writes(source))
    return (kind,)


def random_scenario(rng, number):
    source = Plain(rng) if rng.random() < 0.5 else borders.Borders(rng, without_nearest=True)
    names = sorted({source.path() for _ in range(12)})
    setting = cases.commit(
        *(f"update {{ name: {quoted(Ref(name).name)} {cases.fields(source.document())} }}" for name in names)
    )
    targets = {2 * position + 2: target(source) for position in range(rng.randrange(2, 7))}
    steps = tuple(step(source, list(targets)) for _ in range(rng.randrange(6, 14)))
    return Scenario(f"listening {number}", (setting,), targets, steps)
