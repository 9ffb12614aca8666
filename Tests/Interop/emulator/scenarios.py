"""Random scenarios of listening: targets, and steps that change documents or targets.

A target is the text of a `Target` without its id. A step is a kind with its arguments; differential.py makes it.
"""

import dataclasses

import cases


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    # Writes before there are targets.
    setting: tuple
    # Texts of targets by their ids.
    targets: dict
    steps: tuple


def path(rng):
    """A document in a collection, or in a collection below a document."""
    parent = rng.choice(["", "", "", "c/1/", "d/2/"])
    return f"{parent}{rng.choice('ccd')}/{rng.randrange(8)}"


def target(rng):
    if rng.random() < 0.2:
        return "documents { " + " ".join(f'documents: "ROOT/{path(rng)}"' for _ in range(rng.randrange(5))) + " }"
    parent = rng.choice(["", "", "", "", "/c/1"])
    return f'query {{ parent: "ROOT{parent}" structured_query {{ {query(rng)} }} }}'


def query(rng):
    text = window(rng) if rng.random() < 0.4 else cases.random_query(rng)
    if rng.random() < 0.2:
        fields = " ".join(f'fields {{ field_path: "{field}" }}' for field in rng.sample(cases.FIELDS, 2))
        text += f"select {{ {fields} }} "
    return text


def window(rng):
    """A query that most documents match, with few results."""
    text = cases.collection(rng.choice("ccd"), rng.random() < 0.3)
    if rng.random() < 0.6:
        text += cases.order(rng.choice(["a", "b", "m.x", "__name__"]))
    if rng.random() < 0.3:
        text += f"offset: {rng.randrange(3)} "
    return text + f"limit {{ value: {rng.randrange(1, 5)} }} "


def writes(rng, most=4):
    return [cases.random_write(rng, path(rng)) for _ in range(rng.randrange(1, most))]


def step(rng, numbers):
    """One step; `numbers` are the ids of targets."""
    kind = rng.choices(
        ["commit", "delete", "batch write", "transaction", "target", "resume", "clear"], [10, 3, 2, 2, 2, 2, 0.5]
    )[0]
    if kind == "commit":
        return kind, cases.commit(*writes(rng))
    if kind == "delete":
        return "commit", cases.commit(*(f'delete: "ROOT/{path(rng)}"' for _ in range(rng.randrange(1, 6))))
    if kind == "batch write":
        each = {path(rng): None for _ in range(rng.randrange(1, 5))}
        text = " ".join(f"writes {{ {cases.random_write(rng, name)} }}" for name in each)
        return "commit", ("BatchWrite", f'database: "DB" {text}')
    if kind == "transaction":
        return kind, path(rng), cases.commit(*writes(rng))
    if kind == "target":
        return kind, rng.choice(numbers), target(rng)
    if kind == "resume":
        return kind, rng.random() < 0.5, cases.commit(*writes(rng))
    return (kind,)


def random_scenario(rng, number):
    names = sorted({path(rng) for _ in range(12)})
    setting = cases.commit(*(cases.update(name, cases.random_document(rng)) for name in names))
    targets = {2 * position + 2: target(rng) for position in range(rng.randrange(2, 7))}
    return Scenario(
        f"listening {number}", (setting,), targets, tuple(step(rng, list(targets)) for _ in range(rng.randrange(6, 14)))
    )
