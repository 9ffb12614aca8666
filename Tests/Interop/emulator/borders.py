"""Random cases with values at the borders of their types, from a seed.

Each case has a theme: the kind of values that most of its fields have. The collection is named after it, so that
known_differences.py can tell the themes apart. What is known to differ is left to chosen cases: times below a
microsecond, minus zero in points and vectors. A case has a small pool of values with their neighbours and equals (3 and
3.0), from which documents, operands and cursors are taken: so filters meet documents.
"""

import copy
import math

import cases
from cases import Bytes, Geo, Ref, Time, combine, commit, compare, order, quoted, unary

NUMBERS = [
    *(0, 1, -1, 2, 3, 2**53 - 1, 2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 2**63 - 1, -(2**63), 10**18),
    *(0.0, -0.0, 1.0, 3.0, 2.5, 0.1, float(2**53), float(2**53 + 2), -float(2**53), float(2**63), -float(2**63)),
    *(float(2**63 - 1024), 1e18, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308),
    *(math.inf, -math.inf, math.nan),
]
# Those above U+FFFF come before U+E000 in UTF-16, and after it in UTF-8.
STRINGS = ["", "a", "A", "aa", "b", "\0", "a\0", "\x01", "\x7f", "é", "e\u0301", "\ue000", "\uffff", "😀", "😀a"]
BYTES = [Bytes(each) for each in (b"", b"\0", b"\0\0", b"\x01", b"a", b"a\0", b"\x7f", b"\x80", b"\xff", b"\xff\0")]
TIMES = [
    *(Time(-62135596800), Time(-62135596800, 1000), Time(-1), Time(-1, 999_999_000), Time(0), Time(0, 1000)),
    *(Time(0, 2000), Time(1), Time(1, 999_999_000), Time(253402300799, 999_999_000)),
]
GEOS = [Geo(0, 0), Geo(90, 180), Geo(-90, -180), Geo(0, 5e-324), Geo(-5e-324, 0), Geo(1, 2), Geo(1, 3), Geo(-1, 3)]
REFERENCES = [Ref(path) for path in ("c/1", "c/1/s/1", "c/2", "c/10", "c/é", "c/😀", "c/\ue000", "c0/1", "d/1")]
VECTORS = [(0.0,), (-1.0,), (1.0,), (2.0,), (1.0, 2.0), (1.0, 3.0), (-1.0, 0.0), (1e308, 1e308), (0.0, 0.0, 0.0)]
ARRAYS = [[], [None], [1], [1.0], [1, 2], [1, 2, 1], [math.nan], [""], [[]], [{}], [{"a": [1]}], ["😀"], [(1.0,)]]
MAPS = [{}, {"a": 1}, {"a": 1.0}, {"a": 2}, {"a": None}, {"b": 1}, {"a": {}}, {"a": {"b": [1]}}, {"é": 1}, {"a.b": 1}]
CONSTANTS = [None, False, True]
THEMES = {
    "numbers": NUMBERS,
    "strings": STRINGS,
    "bytes": BYTES,
    "times": TIMES,
    "geos": GEOS,
    "references": REFERENCES,
    "vectors": VECTORS,
    "arrays": [each for each in ARRAYS if each not in ([[]], [(1.0,)])],
    "maps": MAPS,
    "types": [
        *(None, False, True, math.nan, -math.inf, 0, 1.5, Time(0), "", "a", Bytes(b""), Ref("c/1"), Geo(0, 0), []),
        *([1], (1.0,), {}, {"a": 1}),
    ],
}
# Segments of paths; those of maps share their first one.
FIELDS = [("a",), ("b",), ("m", "x"), ("m", "y.z"), ("m", "n", "o"), ("d.t",), ("`q\\",), ("é",), ("l",), ("a", "value")]
IDS = ["1", "2", "3", "10", "a", "A", "é", "e\u0301", "\ue000", "😀", "a b", "____", "a\0", "__id7__", "__id-7__", "__id10__"]
RANGES = ["LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL"]


def text_of(path):
    """The text form of a path, each segment quoted that is not simple."""
    return ".".join(
        segment
        if segment.isascii() and segment.isidentifier()
        else "`" + segment.replace("\\", "\\\\").replace("`", "\\`") + "`"
        for segment in path
    )


class Borders:
    """The values and names of one case."""

    def __init__(self, rng, without_nearest=False):
        """`without_nearest` makes no queries that cannot be listened to."""
        self.rng = rng
        self.without_nearest = without_nearest
        self.theme = rng.choice(list(THEMES))
        self.pool = rng.choices(THEMES[self.theme], k=rng.choice([3, 6, 12]))
        self.fields = rng.sample(FIELDS, 4)
        self.ids = rng.sample(IDS, 8)

    # Values

    def value(self):
        if self.rng.random() < 0.1:
            return self.rng.choice(CONSTANTS)
        if self.rng.random() < 0.1:
            return copy.deepcopy(self.rng.choice(THEMES["types"]))
        # A copy: a document may get fields in a map.
        return copy.deepcopy(self.rng.choice(self.pool))

    def element(self):
        """A value that may be in an array."""
        while isinstance(value := self.value(), (list, tuple)):
            if self.rng.random() < 0.3:
                return {"a": value}
        return value

    def array(self):
        return [self.element() for _ in range(self.rng.randrange(4))]

    def document(self):
        document = {}
        for path in self.fields:
            if self.rng.random() < 0.3:
                continue
            inner = document
            for segment in path[:-1]:
                inner = inner.setdefault(segment, {})
                if not isinstance(inner, dict):
                    break
            else:
                inner[path[-1]] = self.array() if path == ("l",) else self.value()
        if self.rng.random() < 0.3:
            document["v"] = self.rng.choice(VECTORS)
        return document

    # Names

    def path(self):
        return f"{self.theme}/{self.rng.choice(self.ids)}" + ("/s/1" if self.rng.random() < 0.1 else "")

    def name(self):
        return Ref(self.path())

    def field(self):
        return text_of(self.rng.choice(self.fields))

    # Queries

    def condition(self):
        field, kind = self.field(), self.rng.randrange(14)
        if kind == 0:
            return unary(field, self.rng.choice(["IS_NULL", "IS_NAN", "IS_NOT_NULL", "IS_NOT_NAN"]))
        if kind in (1, 2):
            operator = self.rng.choice(["IN", "NOT_IN", "ARRAY_CONTAINS_ANY"])
            values = [self.element() if operator == "ARRAY_CONTAINS_ANY" else self.value() for _ in range(3)]
            return compare(field, operator, values[: self.rng.randrange(1, 4)])
        if kind == 3:
            operator = self.rng.choice(["EQUAL", "NOT_EQUAL", "IN", "NOT_IN", *RANGES])
            names = [self.name(), self.name()]
            return compare("__name__", operator, names if operator.endswith("IN") else names[0])
        if kind == 4:
            return compare(self.rng.choice(["l", field]), "ARRAY_CONTAINS", self.element())
        return compare(field, self.rng.choice(["EQUAL", "EQUAL", "NOT_EQUAL", *RANGES]), self.value())

    def filter(self, depth=2):
        if depth == 0 or self.rng.random() < 0.5:
            return self.condition()
        return combine(
            self.rng.choice(["AND", "AND", "OR"]), *(self.filter(depth - 1) for _ in range(self.rng.randrange(1, 4)))
        )

    def query(self, is_total=False):
        rng = self.rng
        text = cases.collection(self.theme, rng.random() < 0.1)
        if rng.random() < 0.05:
            text = cases.collection("s", True)
        if rng.random() < 0.65:
            text += cases.where(self.filter())
        if rng.random() < 0.08 and not (is_total or self.without_nearest):
            return text + self.nearest()
        orders = rng.sample([text_of(path) for path in self.fields], rng.choice([0, 0, 1, 1, 1, 2]))
        if rng.random() < 0.2:
            orders.append("__name__")
        for field in orders:
            text += order(field, rng.choice(["ASCENDING", "DESCENDING"]))
        for side in ["start_at", "end_at"]:
            if orders and rng.random() < 0.25:
                kept = orders[: rng.randrange(1, len(orders) + 1)]
                values = [self.name() if field == "__name__" else self.value() for field in kept]
                text += cases.cursor(side, values, rng.random() < 0.5)
        if rng.random() < 0.3:
            text += f"limit {{ value: {rng.randrange(1, 6)} }} "
        if rng.random() < 0.15:
            text += f"offset: {rng.randrange(4)} "
        if rng.random() < 0.2 and not is_total:
            text += cases.select(*(self.paths() or ["__name__"]))
        return text

    def nearest(self):
        more = f"limit {{ value: {self.rng.randrange(1, 5)} }} "
        measure = self.rng.choice(["EUCLIDEAN", "COSINE", "DOT_PRODUCT"])
        if self.rng.random() < 0.5:
            more += 'distance_result_field: "far" '
        if self.rng.random() < 0.4:
            more += f"distance_threshold {{ value: {self.rng.choice([0.0, 1.0, 2.0, -1.0])} }} "
        return cases.nearest(self.rng.choice([(1.0,), (1.0, 2.0), (0.0, 1.0), (-1.0, 0.5)]), more=more, measure=measure)

    def total(self):
        wanted = [cases.count(more="up_to { value: 3 }" if self.rng.random() < 0.2 else "")]
        for field in {self.field() for _ in range(self.rng.randrange(3))}:
            wanted.append(self.rng.choice([cases.sum_of, cases.average_of])(field))
        return cases.total(self.query(is_total=True), *wanted)

    # Reads

    def paths(self):
        """Paths of a projection or a mask, none inside another."""
        chosen = self.rng.sample([*self.fields, ("m",), ("absent",), ("m", "absent")], self.rng.randrange(4))
        return [
            text_of(path)
            for path in chosen
            if not any(path != other and path[: len(other)] == other for other in chosen)
        ]

    def mask(self, name):
        return f"{name} {{ " + " ".join(f"field_paths: {quoted(path)}" for path in self.paths()) + " } "

    def read(self):
        kind = self.rng.randrange(4)
        if kind == 0:
            return cases.get(self.path(), self.mask("mask"))
        if kind == 1:
            names = " ".join(f"documents: {quoted(self.name().name)}" for _ in range(3))
            return "BatchGetDocuments", f'database: "DB" {names} {self.mask("mask")}'
        order_by = self.field() + self.rng.choice(["", " desc"])
        if kind == 3 and self.rng.random() < 0.5:
            order_by = ""
        text = f'parent: "ROOT" collection_id: "{self.theme}" order_by: {quoted(order_by)} {self.mask("mask")}'
        return ("ListDocuments", text) if kind == 2 else ("ListPages", f"{text} page_size: {self.rng.randrange(1, 4)}")

    # Writes

    def transform(self):
        text = f"field_path: {quoted(self.field())} "
        kind = self.rng.choice(["increment", "maximum", "minimum", "append_missing_elements", "remove_all_from_array"])
        if kind in ("increment", "maximum", "minimum"):
            return text + f"{kind} {{ {cases.value(self.rng.choice(NUMBERS))} }}"
        elements = [self.element() for _ in range(self.rng.randrange(4))]
        return text + f"{kind} {{ " + " ".join(f"values {{ {cases.value(each)} }}" for each in elements) + " }"

    def transforms(self, name):
        chosen = {each.split(" ")[1]: each for each in (self.transform() for _ in range(self.rng.randrange(1, 4)))}
        return " ".join(f"{name} {{ {each} }}" for each in chosen.values())

    def write(self, path=None):
        path, kind, more = path or self.path(), self.rng.randrange(8), ""
        if kind == 0:
            return f"delete: {quoted(Ref(path).name)}"
        if kind == 1:
            return f"transform {{ document: {quoted(Ref(path).name)} {self.transforms('field_transforms')} }}"
        if kind in (2, 3):
            more = self.mask("update_mask")
        if kind in (3, 4):
            more += self.transforms("update_transforms")
        if kind == 5:
            more = f"current_document {{ exists: {self.rng.choice(['true', 'false'])} }}"
        return f"update {{ name: {quoted(Ref(path).name)} {cases.fields(self.document())} }} {more}"


def random_case(rng, number):
    """Documents, queries, totals and reads over them, writes, and the documents again in several orders."""
    borders = Borders(rng)
    setting = commit(
        *(f"update {{ name: {quoted(borders.name().name)} {cases.fields(borders.document())} }}" for _ in range(12))
    )
    steps = [setting]
    steps += [cases.query(borders.query()) for _ in range(8)]
    steps += [borders.total() for _ in range(3)]
    steps += [borders.read() for _ in range(3)]
    for _ in range(3):
        steps.append(commit(*(borders.write() for _ in range(rng.randrange(1, 4)))))
        steps.append(cases.query(cases.collection(borders.theme)))
    steps += [cases.query(cases.collection(borders.theme) + order(text_of(path))) for path in borders.fields]
    return cases.Case(f"borders of {borders.theme} {number}", tuple(steps))
