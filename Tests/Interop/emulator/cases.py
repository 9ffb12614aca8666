"""Requests that two servers are asked: chosen ones, each for a rule, and random ones from a seed.

A case is a list of steps on documents of its own. A step is a method and its request in protobuf's text format, where
ROOT stands for the documents root and DB for the database. A `Write` step is the list of the messages of one stream; a
`ListPages` step is a ListDocuments with all its pages.
"""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    steps: tuple


# Text of messages


def value(content):
    """The text of a Value: tuples are vectors, Ref is a reference."""
    if content is None:
        return "null_value: NULL_VALUE"
    if isinstance(content, (Ref, Time, Bytes, Geo)):
        return content.text()
    if isinstance(content, bool):
        return f"boolean_value: {str(content).lower()}"
    if isinstance(content, int):
        return f"integer_value: {content}"
    if isinstance(content, float):
        return f"double_value: {content}"
    if isinstance(content, str):
        return f"string_value: {quoted(content)}"
    if isinstance(content, list):
        return "array_value { " + " ".join(f"values {{ {value(each)} }}" for each in content) + " }"
    if isinstance(content, tuple):
        return value({"__type__": "__vector__", "value": list(content)})
    return "map_value { " + fields(content) + " }"


class Ref:
    """A reference to a document, by its path below the root."""

    def __init__(self, path):
        self.name = f"ROOT/{path}" if path else "ROOT"

    def text(self):
        return f"reference_value: {quoted(self.name)}"


@dataclasses.dataclass(frozen=True)
class Time:
    """A timestamp."""

    seconds: int
    nanos: int = 0

    def text(self):
        return f"timestamp_value {{ seconds: {self.seconds} nanos: {self.nanos} }}"


@dataclasses.dataclass(frozen=True)
class Bytes:
    """A string of bytes."""

    content: bytes

    def text(self):
        return 'bytes_value: "' + "".join(f"\\{byte:03o}" for byte in self.content) + '"'


@dataclasses.dataclass(frozen=True)
class Geo:
    """A point on the globe."""

    latitude: float
    longitude: float

    def text(self):
        return f"geo_point_value {{ latitude: {self.latitude} longitude: {self.longitude} }}"


def quoted(text):
    return (
        '"'
        + "".join(f"\\{byte:03o}" if byte < 32 or byte in b'"\\' or byte > 126 else chr(byte) for byte in text.encode())
        + '"'
    )


def fields(entries):
    return " ".join(f"fields {{ key: {quoted(key)} value {{ {value(content)} }} }}" for key, content in entries.items())


def commit(*writes):
    return ("Commit", 'database: "DB" ' + " ".join(f"writes {{ {write} }}" for write in writes))


def update(path, entries, more=""):
    return f'update {{ name: "ROOT/{path}" {fields(entries)} }} {more}'


def transform(path, *transforms):
    return (
        f'transform {{ document: "ROOT/{path}" '
        + " ".join(f"field_transforms {{ {each} }}" for each in transforms)
        + " }"
    )


def increment(field, by=1):
    return f"field_path: {quoted(field)} increment {{ {value(by)} }}"


def get(path, more=""):
    return ("GetDocument", f'name: "ROOT/{path}" {more}')


def query(text, parent=""):
    return ("RunQuery", f'parent: "ROOT{parent}" structured_query {{ {text} }}')


def total(text, *aggregations, parent=""):
    wanted = " ".join(f"aggregations {{ {each} }}" for each in aggregations)
    return (
        "RunAggregationQuery",
        f'parent: "ROOT{parent}" structured_aggregation_query {{ structured_query {{ {text} }} {wanted} }}',
    )


def list_documents(text):
    return ("ListDocuments", f'parent: "ROOT" {text}')


def collection(identifier, descendants=False):
    return f"from_ {{ collection_id: {quoted(identifier)} all_descendants: {str(descendants).lower()} }} "


def where(condition):
    return f"where {{ {condition} }} "


def compare(field, operator, operand):
    return f"field_filter {{ field {{ field_path: {quoted(field)} }} op: {operator} value {{ {value(operand)} }} }}"


def unary(field, operator):
    return f"unary_filter {{ field {{ field_path: {quoted(field)} }} op: {operator} }}"


def combine(operator, *parts):
    return f"composite_filter {{ op: {operator} " + " ".join(f"filters {{ {part} }}" for part in parts) + " }"


def order(field, direction="ASCENDING"):
    return f"order_by {{ field {{ field_path: {quoted(field)} }} direction: {direction} }} "


def cursor(side, values, before):
    inner = " ".join(f"values {{ {value(each)} }}" for each in values)
    return f"{side} {{ {inner} before: {str(before).lower()} }} "


def sum_of(field, alias=""):
    return f"alias: {quoted(alias)} sum {{ field {{ field_path: {quoted(field)} }} }}"


def average_of(field):
    return f"avg {{ field {{ field_path: {quoted(field)} }} }}"


def count(alias="", more=""):
    return f"alias: {quoted(alias)} count {{ {more} }}"


def select(*paths):
    return "select { " + " ".join(f"fields {{ field_path: {quoted(path)} }}" for path in paths) + " } "


def nearest(vector, field="v", more="limit { value: 2 }", measure="EUCLIDEAN"):
    return (
        f"find_nearest {{ vector_field {{ field_path: {quoted(field)} }} query_vector {{ {value(vector)} }} "
        f"distance_measure: {measure} {more} }} "
    )


# Chosen cases

C = collection("c")
SAMPLE = commit(
    update("c/a", {"a": 1, "b": 5, "v": (1.0, 2.0), "n": None, "l": [1, 2]}),
    update("c/b", {"a": 2, "b": 4, "v": (2.0, 2.0), "n": 1, "l": [2]}),
    update("c/c", {"a": 3, "b": 3, "v": (9.0, 9.0), "n": 2.5}),
    update("c/d", {"a": 4, "b": 2, "n": math.nan}),
    update("c/e", {"a": 5, "b": 1, "n": "text"}),
    update("c/a/s/x", {"a": 1}),
    update("k/z", {"a": 10}),
)
PATHS = [
    "a-b",
    "",
    "a..b",
    ".a",
    "a.",
    "`a",
    "`a`b",
    "1a",
    "a b",
    "é",
    "``",
    "__x__",
    "a.__x__",
    "x" * 1501,
    "*",
    "a`b",
    ".".join("a" * 20),
    ".".join("a" * 21),
]
NAMES = [
    "c/__id0__",
    "c/__id1__",
    "c/__id-5__",
    "c/__id01__",
    "__id7__/x",
    "c/d/__id7__/x",
    "c/__x__",
    "c/.",
    "c/..",
    "c/____",
    "c/_____",
    "c",
    "c/x/",
    "c//x/y",
]
TIMES = [
    "nanos: -1",
    "seconds: 1 nanos: 1000000000",
    "seconds: -62135596801",
    "seconds: 253402300800",
    "",
    "seconds: 1 nanos: 1",
]
ELSEWHERE = Ref("")
ELSEWHERE.name = "projects/other/databases/(default)/documents/c/a"
EPOCH = "current_document { update_time {} }"


def reading(name, *steps):
    """A case on the sample documents."""
    return Case(name, (SAMPLE, *steps))


def chosen():
    """Every chosen case."""
    for path in PATHS:
        yield reading(
            f"path {path[:10]}, {len(path)} bytes",
            query(C + order(path)),
            query(C + where(compare(path, "EQUAL", 1))),
            query(C + f"select {{ fields {{ field_path: {quoted(path)} }} }}"),
            commit(f'update {{ name: "ROOT/c/q" }} update_mask {{ field_paths: {quoted(path)} }}'),
            get("c/a", f"mask {{ field_paths: {quoted(path)} }}"),
        )
    for name in NAMES:
        yield Case(
            f"name {name}",
            (
                commit(update(name, {"a": 1})),
                get(name),
                ("BatchGetDocuments", f'database: "DB" documents: "ROOT/{name}"'),
                commit(update("r/r", {"r": Ref(name)})),
                commit(f'delete: "ROOT/{name}"'),
            ),
        )
    for identifier in ["__id7__", "__x__", "a/b", ".", "c", "____"]:
        yield reading(
            f"collection id {identifier}",
            query(collection(identifier)),
            query(collection(identifier, True)),
            list_documents(f"collection_id: {quoted(identifier)}"),
            ("CreateDocument", f'parent: "ROOT" collection_id: {quoted(identifier)} document_id: "new" document {{}}'),
            ("CreateDocument", f'parent: "ROOT" collection_id: "new" document_id: {quoted(identifier)} document {{}}'),
        )
    for alias in ["a-b", "a.b", "__x__", "1a", "é", "`a`", "x" * 1501, "_____", "____"]:
        yield reading(f"alias {alias[:10]}", total(C, count(alias)), total(C, sum_of("a", alias)))
    yield reading(
        "aggregations",
        total(C, count("x"), count("x")),
        total(C, count("field_1"), count()),
        total(C),
        total(C, sum_of("__name__")),
        total(C, average_of("__name__")),
    )
    for time in TIMES:
        yield reading(
            f"read time {time}",
            get("c/a", f"read_time {{ {time} }}"),
            ("BatchGetDocuments", f'database: "DB" documents: "ROOT/c/a" read_time {{ {time} }}'),
            ("BeginTransaction", f'database: "DB" options {{ read_only {{ read_time {{ {time} }} }} }}'),
        )
    yield from chosen_orders()
    yield from chosen_totals()
    yield from chosen_filters()
    yield from chosen_scopes()
    yield from chosen_writes()
    yield from chosen_vectors()
    yield from chosen_borders()


def chosen_orders():
    for orders in ["", order("a"), order("__name__"), order("a") + order("__name__"), order("a", "DESCENDING")]:
        for side in ["start_at", "end_at"]:
            for before in [True, False]:
                yield reading(
                    f"cursors {orders} {side} {before}",
                    *(
                        query(C + orders + cursor(side, values, before))
                        for values in [[], [2], [2, Ref("c/b")], [Ref("c/b")], [2, Ref("c/b"), 1], ["text"]]
                    ),
                    total(C + orders + cursor(side, [], before), count()),
                )
    yield reading(
        "after the name",
        query(C + order("__name__") + order("a")),
        query(C + order("__name__") + order("__name__")),
        query(C + order("a") + order("a")),
        query(C + where(compare("a", "NOT_EQUAL", 2)) + order("__name__")),
        query(C + where(compare("a", "GREATER_THAN", 2)) + order("b") + order("__name__")),
        query(C + where(compare("a", "EQUAL", 2)) + order("__name__")),
        list_documents('collection_id: "c" order_by: "__name__, a"'),
        list_documents('collection_id: "c" order_by: "a desc"'),
    )
    yield reading("negative", query(C + "limit { value: -1 }"), query(C + "offset: -1"), query(C + "limit {}"))


def chosen_totals():
    yield reading(
        "implied order of totals",
        total(C + "limit { value: 2 }", sum_of("b"), sum_of("a")),
        total(C + "offset: 3", sum_of("b"), average_of("a")),
        total(C + where(compare("b", "GREATER_THAN", 2)) + "limit { value: 2 }", sum_of("a")),
        total(C + order("b", "DESCENDING") + "limit { value: 2 }", sum_of("a")),
    )
    for operator in ["EQUAL", "GREATER_THAN", "NOT_EQUAL"]:
        name = compare("__name__", operator, Ref("c/b"))
        yield reading(
            f"totals by name {operator}",
            total(C + where(name), sum_of("a")),
            total(C + where(name) + order("a"), sum_of("a")),
            total(C + where(name) + order("b"), sum_of("a"), average_of("b")),
            total(C + where(name), count()),
            total(C + where(name) + order("a") + order("__name__"), sum_of("a"), average_of("b")),
            total(C + where(combine("OR", name, compare("b", "EQUAL", 1))), sum_of("a")),
        )
    yield reading(
        "totals of groups",
        total(collection("s", True), sum_of("a"), parent="/c/a"),
        total(collection("", True), sum_of("a")),
        total(collection("c", True) + order("__name__"), sum_of("a")),
        total(collection("", True), sum_of("a"), parent="/c/a"),
        total(collection("", True), average_of("a"), parent="/c/a"),
        total(collection("", True), count(), parent="/c/a"),
        total(collection("", True) + order("__name__"), sum_of("a"), parent="/c/a"),
        total(collection("", True) + order("a"), sum_of("a"), parent="/c/a"),
        total(collection("", True) + where(compare("a", "EQUAL", 1)), sum_of("a"), parent="/c/a"),
        total(collection("", True) + where(compare("__name__", "GREATER_THAN", Ref("c/a"))), sum_of("a")),
    )


def chosen_filters():
    for operator in ["LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "ARRAY_CONTAINS"]:
        yield reading(
            f"null and NaN {operator}", *(query(C + where(compare("n", operator, each))) for each in [None, math.nan])
        )
    for operator in ["EQUAL", "NOT_EQUAL"]:
        for operand in [None, math.nan]:
            yield reading(f"{operator} {operand}", query(C + where(compare("n", operator, operand))))
    for operator in ["IN", "NOT_IN", "ARRAY_CONTAINS_ANY"]:
        yield reading(
            f"lists of {operator}",
            *(
                query(C + where(compare("a", operator, each)))
                for each in [[], "x", [1] * 30, [1] * 31, [1] * 10, [1] * 11, list(range(30)), [None], [None, 1]]
            ),
        )
    yield reading("NOT_IN NaN", query(C + where(compare("n", "NOT_IN", [math.nan]))))
    equal = [compare("a", "EQUAL", number % 2) for number in range(40)]
    yield reading(
        "repeats",
        query(C + where(combine("OR", *equal))),
        query(C + where(combine("AND", compare("a", "IN", [1, 2] * 15), compare("b", "IN", list(range(15)))))),
        query(C + where(combine("AND", compare("a", "IN", [1, 2] * 15), compare("b", "IN", list(range(16)))))),
        query(C + where(combine("AND", *[combine("OR", *equal[:2])] * 6))),
    )
    yield reading(
        "exclusions",
        query(C + where(combine("AND", compare("a", "NOT_EQUAL", 1), compare("a", "NOT_EQUAL", 2)))),
        query(C + where(combine("AND", unary("a", "IS_NOT_NULL"), unary("b", "IS_NOT_NAN")))),
        query(C + where(combine("AND", compare("l", "ARRAY_CONTAINS", 1), compare("l", "ARRAY_CONTAINS", 2)))),
    )
    contains = compare("l", "ARRAY_CONTAINS", 1)
    alone = combine("OR", contains)
    yield reading(
        "the same ARRAY_CONTAINS",
        *(
            query(C + where(combine("AND", *parts)))
            for parts in [
                (contains, contains),
                (contains, alone),
                (alone, alone),
                (combine("OR", contains, contains), contains),
                (combine("OR", contains, contains), alone),
                (combine("AND", contains), contains),
                (combine("AND", contains), combine("AND", contains)),
                (combine("AND", contains), alone),
            ]
        ),
    )
    yield reading(
        "NOT_IN null by name",
        *(query(C + where(compare("n", "NOT_IN", each)) + order("__name__")) for each in [[None], [None] * 2, [None, 1]]),
    )
    yield reading(
        "NOT_IN and OR",
        query(
            C
            + where(
                combine(
                    "AND",
                    compare("a", "NOT_IN", [1]),
                    combine("OR", compare("a", "EQUAL", 1), compare("b", "EQUAL", 2)),
                )
            )
        ),
    )
    yield reading("long operand", query(C + where(compare("s", "EQUAL", "x" * 1501))))
    yield reading(
        "names",
        query(C + where(compare("__name__", "EQUAL", "a"))),
        query(C + where(compare("__name__", "IN", ["a"]))),
        query(C + where(unary("__name__", "IS_NULL"))),
        query(C + where(compare("__name__", "ARRAY_CONTAINS", Ref("c/a")))),
    )
    yield reading(
        "names of another database",
        query(C + where(compare("__name__", "EQUAL", ELSEWHERE))),
        query(C + where(compare("__name__", "GREATER_THAN", ELSEWHERE))),
        query(C + where(compare("__name__", "IN", [Ref("c/a"), ELSEWHERE]))),
        query(C + where(compare("a", "EQUAL", ELSEWHERE))),
        query(C + order("__name__") + cursor("start_at", [ELSEWHERE], True)),
        query(C + order("a") + cursor("end_at", [ELSEWHERE], True)),
    )
    yield reading(
        "no transaction",
        get("c/a", 'transaction: ""'),
        get("c/a", 'transaction: "x"'),
        ("BatchGetDocuments", 'database: "DB" documents: "ROOT/c/a" transaction: ""'),
        list_documents('collection_id: "c" transaction: ""'),
        ("Commit", 'database: "DB" transaction: ""'),
        ("Commit", 'database: "DB" transaction: "x"'),
    )


def chosen_scopes():
    for scope in ["from_ {}", ""]:
        yield reading(
            f"children by [{scope}]",
            query(scope),
            query(scope, "/c/a"),
            query(scope + order("__name__")),
            query(scope + order("a")),
            query(scope + order("__name__", "DESCENDING")),
            query(scope + where(compare("a", "GREATER_THAN", 1))),
            query(scope + where(compare("__name__", "GREATER_THAN", Ref("c/d")))),
            query(scope + where(compare("__name__", "EQUAL", Ref("k/z")))),
            query(scope + "offset: 4 limit { value: 3 }"),
            query(scope + order("__name__") + cursor("start_at", [Ref("c/d")], False)),
            total(scope, count()),
            total(scope, sum_of("a")),
        )
    yield reading("two selectors", query("from_ {} from_ {}"))
    yield reading(
        "listings",
        list_documents(""),
        list_documents('order_by: "a"'),
        list_documents('order_by: "__name__"'),
        list_documents("show_missing: true"),
        list_documents('collection_id: "c" order_by: "a" show_missing: true'),
    )
    yield reading(
        "kindless",
        query(collection("", True) + where(compare("a", "EQUAL", 1))),
        query(collection("", True) + order("__name__", "DESCENDING")),
        query(collection("s", True) + where(compare("a", "EQUAL", 1)), "/c/a"),
    )


def chosen_writes():
    yield Case(
        "the epoch",
        (
            commit(update("p/1", {}, EPOCH)),
            commit(f'delete: "ROOT/p/2" {EPOCH}'),
            commit(update("p/3", {}, "current_document { update_time { seconds: -1 } }")),
            commit(update("p/3", {}, "current_document { update_time { nanos: 1 } }")),
            get("p/3"),
        ),
    )
    yield Case("the epoch of what is there", (commit(update("p/1", {})), commit(update("p/1", {}, EPOCH))))
    yield Case(
        "preconditions",
        (
            commit(update("p/1", {}, "current_document { exists: true }")),
            commit(update("p/1", {})),
            commit(update("p/1", {}, "current_document { exists: false }")),
            get("p/2"),
            commit(update("p/3", {}, "current_document { update_time { seconds: 253402300799 } }")),
        ),
    )
    yield Case(
        "transforms",
        (
            commit(transform("t/1")),
            get("t/1"),
            commit(transform("t/1", increment("a"), increment("a.b"))),
            commit(transform("t/1", increment("a.b"), increment("a"))),
            commit(transform("t/1", increment("a"), increment("a"))),
            commit(transform("t/1", increment("a.b"), increment("a.c"))),
            get("t/1"),
            *(commit(transform("t/1", increment("a", operand))) for operand in ["x", None, [1], 1.5]),
            commit(transform("t/1", increment("a")) + " update_mask {}"),
            commit(transform("t/1", increment("a")) + f" update_transforms {{ {increment('b')} }}"),
            commit('delete: "ROOT/t/1" update_mask {}'),
            commit(f'delete: "ROOT/t/1" update_transforms {{ {increment("b")} }}'),
        ),
    )
    yield Case(
        "write streams",
        (
            ("Write", []),
            ("Write", ['database: "DB"']),
            ("Write", ['database: "DB"', "writes { " + update("w/1", {"a": 1}) + " }"]),
            ("Write", ['database: "DB"', 'database: "DB" writes { ' + update("w/1", {"a": 2}) + " }"]),
            (
                "Write",
                [
                    'database: "DB"',
                    'database: "projects/other/databases/(default)" writes { ' + update("w/1", {"a": 3}) + " }",
                ],
            ),
        ),
    )


def chosen_vectors():
    measured = 'limit { value: 5 } distance_result_field: "d"'
    yield Case(
        "zero vectors",
        (
            commit(update("z/0", {"v": (0.0, 0.0)}), update("z/1", {"v": (1.0, 0.0)}), update("z/2", {"v": (0.0, 2.0)})),
            *(
                query(collection("z") + nearest(vector, more=measured + more, measure=measure))
                for measure in ["COSINE", "EUCLIDEAN", "DOT_PRODUCT"]
                for vector in [(0.0, 0.0), (1.0, 1.0)]
                for more in ["", " distance_threshold { value: 5 }"]
            ),
        ),
    )
    for threshold in ["inf", "-inf", "nan", "0"]:
        bound = f"limit {{ value: 2 }} distance_threshold {{ value: {threshold} }}"
        yield reading(f"threshold {threshold}", query(C + nearest((1.0, 1.0), more=bound)))
    yield Case(
        "neighbours in an order",
        (
            commit(
                *(update(f"n/{name}", {"a": a, "v": (1.0,)}) for name, a in [("1", 3), ("2", 1), ("3", 2), ("5", 2)]),
                update("n/4", {"v": (1.0,)}),
                update("n/6", {"a": 0, "v": (3.0,)}),
            ),
            *(
                query(collection("n") + before + nearest((1.0,), more="limit { value: 4 }") + after)
                for before, after in [
                    ("", ""),
                    (order("a"), ""),
                    (order("a", "DESCENDING"), ""),
                    (where(compare("a", "GREATER_THAN", 0)), ""),
                    (where(compare("a", "NOT_EQUAL", 2)), ""),
                    (where(combine("OR", compare("a", "EQUAL", 1), compare("a", "GREATER_THAN", 2))), ""),
                    ("", "limit { value: 2 }"),
                    ("", "offset: 1"),
                    (order("a") + cursor("start_at", [2], True), ""),
                ]
            ),
            query(collection("n") + nearest([1.0])),
            query(collection("n") + nearest((1.0,), measure="DISTANCE_MEASURE_UNSPECIFIED")),
        ),
    )
    for name in ["my-dist", "a.b", "", "__x__", "`a`", "1x", "x" * 1501]:
        result = f"limit {{ value: 2 }} distance_result_field: {quoted(name)}"
        yield reading(f"distance result {name[:10]}", query(C + nearest((1.0, 1.0), more=result)))
    yield reading(
        "distance result selected",
        query(
            C
            + nearest((1.0, 1.0), more='limit { value: 2 } distance_result_field: "a.b"')
            + 'select { fields { field_path: "`a.b`" } }'
        ),
    )
    for name, content in {
        "with NaN": (1.0, math.nan),
        "in an array": [(1.0,)],
        "in a map in an array": [{"v": (1.0,)}],
        "infinite": (math.inf,),
        "of integers": (1, 2),
        "too long": tuple([1.0] * 2049),
    }.items():
        yield Case(
            f"vector {name}",
            (commit(update("v/v", {"f": content})), query(collection("v") + where(compare("f", "EQUAL", content)))),
        )
    yield Case("empty vector", (commit(update("v/v", {"f": ()})),))


def chosen_borders():
    """Values of which the emulator is known to think otherwise, and rules that random cases would meet too often."""
    yield Case(
        "the zeros of points and vectors",
        (
            commit(
                update("zeros/1", {"g": Geo(0.0, 0.0), "v": (0.0,)}),
                update("zeros/2", {"g": Geo(-0.0, 0.0), "v": (-0.0,)}),
                update("zeros/3", {"g": Geo(0.0, -0.0), "v": (0.0,)}),
            ),
            *(
                query(collection("zeros") + where(compare(field, operator, value)))
                for field, value in [("g", Geo(0.0, 0.0)), ("v", (0.0,)), ("v", (-0.0,))]
                for operator in ["EQUAL", "GREATER_THAN", "NOT_EQUAL"]
            ),
            query(collection("zeros") + order("g", "DESCENDING")),
            query(collection("zeros") + order("v", "DESCENDING")),
        ),
    )
    yield Case(
        "times below a microsecond",
        (
            commit(update("instants/1", {"t": Time(0, 1)}), update("instants/2", {"t": Time(0, 1999)})),
            query(collection("instants") + order("t")),
            *(
                query(collection("instants") + where(compare("t", operator, value)))
                for value in [Time(0, 999), Time(0, 1001), Time(-1, 999_999_999)]
                for operator in ["EQUAL", "LESS_THAN", "GREATER_THAN_OR_EQUAL"]
            ),
            total(collection("instants") + where(compare("t", "EQUAL", Time(0, 1500))), count()),
            query(collection("instants") + order("t") + cursor("start_at", [Time(0, 1999)], True)),
            commit(
                transform("instants/3", f'field_path: "t" append_missing_elements {{ values {{ {value(Time(0, 1))} }} }}'),
                transform("instants/3", f'field_path: "t" append_missing_elements {{ values {{ {value(Time(0, 2))} }} }}'),
            ),
            get("instants/3"),
        ),
    )
    ids = ["__id-9223372036854775808__", "__id-7__", "__id7__", "__id10__", "__id9223372036854775807__", "0", "10", "a"]
    yield Case(
        "numeric ids",
        (
            commit(*(update(f"numeric/{name}", {"a": 1, "b": len(name)}) for name in ids)),
            query(collection("numeric")),
            query(collection("numeric") + order("a")),
            query(collection("numeric") + order("a", "DESCENDING")),
            query(collection("numeric") + where(compare("__name__", "GREATER_THAN", Ref("numeric/__id7__")))),
            query(collection("numeric") + where(compare("__name__", "LESS_THAN", Ref("numeric/0")))),
        ),
    )
    masks = [["a"], ["b"], ["__name__"], ["__name__", "a"], ["a", "b"], []]
    yield reading(
        "projections of totals",
        *(
            total(C + select(*mask), *wanted)
            for mask in masks
            for wanted in [[sum_of("a")], [count()], [sum_of("b"), average_of("a")]]
        ),
    )
    yield reading("an empty projection", query(C + select()))
    yield Case(
        "paths into vectors",
        (
            commit(update("v/a", {"v": (1.0, 2.0)}), update("v/m", {"v": {"value": [1.0, 2.0]}})),
            query(collection("v") + order("v.value")),
            query(collection("v") + where(compare("v.value", "ARRAY_CONTAINS", 1.0))),
            query(collection("v") + select("v.value")),
            query(collection("v") + select("v.value", "v.x")),
            get("v/a", 'mask { field_paths: "v.value" }'),
            total(collection("v"), sum_of("v.value"), count()),
            commit(update("v/b", {"v": (3.0,)}, 'update_mask { field_paths: "v.value" }')),
            commit(update("v/c", {"v": (3.0,)}, 'update_mask { field_paths: "v.value" field_paths: "v.x" }')),
            commit(update("v/a", {}, 'update_mask { field_paths: "v.value" }')),
            query(collection("v")),
            commit(
                transform("v/a", 'field_path: "v.value" append_missing_elements { values { double_value: 9 } }'),
                transform("v/m", 'field_path: "v.value" append_missing_elements { values { double_value: 9 } }'),
            ),
            query(collection("v")),
        ),
    )


# Random cases


FIELDS = ["a", "b", "m.x", "l"]
SCALARS = [None, False, True, 0, 1, 2, -3, 1.0, 2.5, "", "a", "b", "é"]


def random_value(rng, depth=1):
    kind = rng.randrange(10)
    if kind == 0 and depth:
        return [random_value(rng, 0) for _ in range(rng.randrange(3))]
    if kind == 1 and depth:
        return {key: random_value(rng, 0) for key in rng.sample("xyz", rng.randrange(3))}
    return rng.choice(SCALARS)


def random_document(rng):
    document = {key: random_value(rng) for key in rng.sample("abl", rng.randrange(4))}
    if rng.random() < 0.5:
        document["m"] = {"x": random_value(rng)}
    return document


def random_condition(rng):
    field = rng.choice(FIELDS)
    kind = rng.randrange(12)
    if kind == 0:
        return unary(field, rng.choice(["IS_NULL", "IS_NAN"]))
    if kind == 1:
        return unary(field, rng.choice(["IS_NOT_NULL", "IS_NOT_NAN"]))
    if kind == 2:
        return compare(
            field,
            rng.choice(["IN", "NOT_IN", "ARRAY_CONTAINS_ANY"]),
            [random_value(rng, 0) for _ in range(rng.randrange(1, 4))],
        )
    if kind == 3:
        return compare(
            "__name__", rng.choice(["EQUAL", "GREATER_THAN", "LESS_THAN_OR_EQUAL"]), Ref(f"c/{rng.randrange(10)}")
        )
    operators = [
        "EQUAL",
        "EQUAL",
        "EQUAL",
        "LESS_THAN",
        "LESS_THAN_OR_EQUAL",
        "GREATER_THAN",
        "GREATER_THAN_OR_EQUAL",
        "ARRAY_CONTAINS",
        "NOT_EQUAL",
    ]
    return compare(field, rng.choice(operators), random_value(rng))


def random_filter(rng, depth=2):
    if depth == 0 or rng.random() < 0.4:
        return random_condition(rng)
    return combine(rng.choice(["AND", "OR"]), *(random_filter(rng, depth - 1) for _ in range(rng.randrange(1, 4))))


def random_query(rng):
    text = collection(rng.choice("ccd"), rng.random() < 0.15) if rng.random() < 0.95 else "from_ {} "
    if rng.random() < 0.8:
        text += where(random_filter(rng))
    orders = rng.sample(FIELDS, rng.choice([0, 0, 1, 1, 2]))
    if rng.random() < 0.2:
        orders.append("__name__")
    for field in orders:
        text += order(field, rng.choice(["ASCENDING", "ASCENDING", "DESCENDING"]))
    for side in ["start_at", "end_at"]:
        if orders and rng.random() < 0.2:
            text += cursor(side, random_cursor(rng, orders), rng.random() < 0.5)
    if rng.random() < 0.3:
        text += f"limit {{ value: {rng.randrange(1, 6)} }} "
    if rng.random() < 0.2:
        text += f"offset: {rng.randrange(4)} "
    return text


def random_cursor(rng, orders):
    kept = orders[: rng.randrange(1, len(orders) + 1)]
    return [Ref(f"c/{rng.randrange(10)}") if field == "__name__" else random_value(rng) for field in kept]


def random_write(rng, path=None):
    path = path or f"{rng.choice('ccd')}/{rng.randrange(10)}"
    kind = rng.randrange(6)
    if kind == 0:
        return f'delete: "ROOT/{path}"'
    if kind == 1:
        return transform(path, *(random_transform(rng) for _ in range(rng.randrange(1, 3))))
    more = ""
    if kind == 2:
        more = (
            "update_mask { "
            + " ".join(f'field_paths: "{field}"' for field in rng.sample(FIELDS, rng.randrange(3)))
            + " }"
        )
    if kind == 3:
        more = f"current_document {{ exists: {rng.choice(['true', 'false'])} }}"
    return update(path, random_document(rng), more)


def random_transform(rng):
    field = f'field_path: "{rng.choice(FIELDS)}" '
    kind = rng.choice(["increment", "maximum", "minimum", "append_missing_elements", "remove_all_from_array"])
    if kind in ("increment", "maximum", "minimum"):
        return field + f"{kind} {{ {value(rng.choice([1, 2, -1, 0.5, 2.0]))} }}"
    return (
        field
        + f"{kind} {{ "
        + " ".join(f"values {{ {value(rng.choice(SCALARS))} }}" for _ in range(rng.randrange(1, 3)))
        + " }"
    )


def random_case(rng, number):
    """Some documents, queries and totals over them, writes, and the documents again."""
    setting = commit(*(update(f"{rng.choice('ccd')}/{number}", random_document(rng)) for number in range(10)))
    queries = [query(random_query(rng)) for _ in range(6)]
    totals = [
        total(random_query(rng), count(), *(sum_of(field) for field in rng.sample("ab", rng.randrange(3))))
        for _ in range(2)
    ]
    writes = [commit(*(random_write(rng) for _ in range(rng.randrange(1, 4)))) for _ in range(3)]
    return Case(
        f"random {number}", (setting, *queries, *totals, *writes, query(collection("c")), query(collection("d")))
    )
