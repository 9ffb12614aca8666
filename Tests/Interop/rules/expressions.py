"""Random expressions of the rules language.

Most are well typed, so that they have values; some exchange a part for one of another type, so that errors meet the
operators around them.
"""

DOCUMENT = {
    "n": 3,
    "f": 2.5,
    "zero": 0,
    "s": "alice",
    "text": "a,b;c",
    "b": True,
    "none": None,
    "l": [1, 2.0, "a", None],
    "tags": ["a", "b", "c"],
    "numbers": [3, 1, 2],
    "m": {"a": 1, "b": {"c": "x"}, "s": "y"},
    "t": {"$": {"timestampValue": "2024-02-29T12:34:56.789Z"}},
    "bytes": {"$": {"bytesValue": "AAEC/w=="}},
    "place": {"$": {"geoPointValue": {"latitude": 48.5, "longitude": 9.25}}},
}

TEXTS = ["''", "'a'", "'alice'", "'a,b;c'", "'Ä😀'", "'\\u00e9x'", "' b '", "'AbC'", "'/a/b'", "'1'", "'-2.5'", "'1e2'"]
PATTERNS = ["'a'", "'[a-z]+'", "'.*'", "','", "'[,;]'", "''", "'(a)(b)?'", "'a|b'", "'\\\\w'", "'(?i)ALICE'", "'x*'"]
INTEGERS = ["0", "1", "2", "3", "-1", "7", "9223372036854775807", "-9223372036854775808", "9007199254740993"]
FLOATS = ["0.0", "1.0", "-1.5", "2.5", "0.5", "100000000.0", "0.0001", "9007199254740992.0", "(0.0/ 0.0)", "(1.0/ 0.0)"]
UNITS = ["'w'", "'d'", "'h'", "'m'", "'s'", "'ms'", "'ns'", "'x'"]
TYPES = "bool bytes duration float int latlng list number map string timestamp path map_diff set constraint".split()


class Expressions:
    """Makes random expressions from a source of random numbers."""

    def __init__(self, rng):
        self.rng = rng

    def any(self, depth=3):
        """An expression of a random type."""
        return getattr(self, self.rng.choice(KINDS))(depth)

    def part(self, kind, depth):
        """A part of a type; now and then of another one."""
        if self.rng.random() < 0.05:
            return self.any(depth - 1)
        return getattr(self, kind)(depth - 1)

    def choose(self, depth, leaves, *makers):
        """A leaf at the bottom, else one of the makers."""
        if depth <= 0 or self.rng.random() < 0.15:
            return self.rng.choice(leaves)
        return self.rng.choice(makers)()

    def boolean(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            ["true", "false", "resource.data.b", "resource.data.missing"],
            lambda: f"({part('boolean', depth)} {rng.choice(['&&', '||'])} {part('boolean', depth)})",
            lambda: f"({part('boolean', depth)} {rng.choice(['&&', '||'])} {part('boolean', depth)})",
            lambda: f"!{part('boolean', depth)}",
            lambda: f"({part('number', depth)} {rng.choice(['<', '<=', '>', '>='])} {part('number', depth)})",
            lambda: f"({part('string', depth)} {rng.choice(['<', '<=', '>', '>='])} {part('string', depth)})",
            lambda: f"({part('timestamp', depth)} {rng.choice(['<', '>='])} {part('timestamp', depth)})",
            lambda: f"({part('duration', depth)} {rng.choice(['<', '>='])} {part('duration', depth)})",
            lambda: f"({part('bytes', depth)} {rng.choice(['<', '>='])} {part('bytes', depth)})",
            lambda: self.equality(depth),
            lambda: self.equality(depth),
            lambda: f"({self.any(depth - 1)} is {rng.choice(TYPES)})",
            lambda: f"({self.any(depth - 1)} in {part('list', depth)})",
            lambda: f"({part('string', depth)} in {part('map', depth)})",
            lambda: f"({self.any(depth - 1)} in {part('set', depth)})",
            lambda: f"{part('list', depth)}.{rng.choice(['hasAll', 'hasAny', 'hasOnly'])}({part('list', depth)})",
            lambda: f"{part('set', depth)}.{rng.choice(['hasAll', 'hasAny', 'hasOnly'])}({part('set', depth)})",
            lambda: f"{part('string', depth)}.matches({rng.choice(PATTERNS)})",
            lambda: f"math.isNaN({part('float', depth)})",
            lambda: f"({part('boolean', depth)} ? {part('boolean', depth)} : {part('boolean', depth)})",
        )

    def equality(self, depth):
        kind = self.rng.choice(KINDS)
        operator = self.rng.choice(["==", "!="])
        return f"({self.part(kind, depth)} {operator} {self.part(kind, depth)})"

    def number(self, depth):
        return self.rng.choice([self.integer, self.float])(depth)

    def integer(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            INTEGERS + ["resource.data.n", "resource.data.zero"],
            lambda: f"({part('integer', depth)} {rng.choice(['+', '-', '*', '/ ', '%'])} {part('integer', depth)})",
            lambda: f"-({part('integer', depth)})",
            lambda: f"{part(rng.choice(['string', 'list', 'set', 'map', 'bytes']), depth)}.size()",
            lambda: f"int({part(rng.choice(['float', 'string', 'integer']), depth)})",
            lambda: f"math.{rng.choice(['abs', 'round'])}({part('number', depth)})",
            lambda: f"{part('timestamp', depth)}.{rng.choice(TIME_PARTS)}()",
            lambda: f"{part('duration', depth)}.{rng.choice(['seconds', 'nanos'])}()",
            lambda: f"{part('list', depth)}[{part('integer', depth)}]",
            lambda: f"resource.data.numbers[{rng.choice(['0', '1', '2', '3'])}]",
            lambda: f"({part('boolean', depth)} ? {part('integer', depth)} : {part('integer', depth)})",
        )

    def float(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            FLOATS + ["resource.data.f"],
            lambda: f"({part('float', depth)} {rng.choice(['+', '-', '*', '/ ', '%'])} {part('number', depth)})",
            lambda: f"float({part(rng.choice(['integer', 'string']), depth)})",
            lambda: f"math.{rng.choice(['abs', 'ceil', 'floor', 'sqrt'])}({part('float', depth)})",
            lambda: f"math.pow({part('number', depth)}, {rng.choice(['0', '1', '2', '0.5', '-1'])})",
            lambda: f"{part('latlng', depth)}.{rng.choice(['latitude', 'longitude'])}()",
        )

    def string(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            TEXTS + ["resource.data.s", "resource.data.text", "request.auth.uid", "resource.id", "request.method"],
            lambda: f"({part('string', depth)} + {part('string', depth)})",
            lambda: f"{part('string', depth)}.{rng.choice(['lower', 'upper', 'trim'])}()",
            lambda: f"{part('string', depth)}.replace({rng.choice(PATTERNS)}, {rng.choice(REPLACEMENTS)})",
            lambda: f"{part('string', depth)}[{part('integer', depth)}]",
            lambda: f"{part('string', depth)}[{rng.choice('012')}:{rng.choice('1234')}]",
            lambda: f"string({part(rng.choice(KINDS), depth)})",
            lambda: f"{part('list', depth)}.join({part('string', depth)})",
            lambda: f"{part('bytes', depth)}.{rng.choice(['toBase64', 'toHexString'])}()",
            lambda: f"{part('map', depth)}.get({part('string', depth)}, {part('string', depth)})",
            lambda: f"{part('path', depth)}[{rng.choice('0123')}]",
            lambda: f"{part('map', depth)}.keys().join('-')",
        )

    def bytes(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            ["b''", "b'abc'", "b'\\x00\\xff'", "resource.data.bytes"],
            lambda: f"{part('string', depth)}.toUtf8()",
            lambda: f"hashing.{rng.choice(['md5', 'sha256', 'crc32', 'crc32c'])}({part('string', depth)})",
            lambda: f"hashing.{rng.choice(['md5', 'sha256', 'crc32', 'crc32c'])}({part('bytes', depth)})",
        )

    def list(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            ["[]", "[1, 2]", "['a', 'b']", "resource.data.l", "resource.data.tags", "resource.data.numbers"],
            lambda: "[" + ", ".join(self.any(depth - 2) for _ in range(rng.randrange(4))) + "]",
            lambda: f"{part('list', depth)}.{rng.choice(['concat', 'removeAll'])}({part('list', depth)})",
            lambda: f"{part('string', depth)}.split({rng.choice(PATTERNS)})",
            lambda: f"{part('map', depth)}.{rng.choice(['keys', 'values'])}()",
            lambda: f"{part('list', depth)}[{rng.choice('012')}:{rng.choice('123')}]",
        )

    def set(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            ["[].toSet()", "[1, 1.0].toSet()", "['a', 'b'].toSet()", "resource.data.tags.toSet()"],
            lambda: f"{part('list', depth)}.toSet()",
            lambda: f"{part('set', depth)}.{rng.choice(['union', 'intersection', 'difference'])}({part('set', depth)})",
            lambda: f"{part('map', depth)}.diff({part('map', depth)}).{rng.choice(DIFF_KEYS)}()",
        )

    def map(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            ["{}", "{'a': 1}", "{'a': 1.0, 'b': [1]}", "resource.data.m", "resource.data", "request.auth.token"],
            lambda: "{" + ", ".join(f"'{rng.choice('abc')}': {self.any(depth - 2)}" for _ in range(rng.randrange(4))) + "}",
            lambda: f"{part('map', depth)}.get({part('string', depth)}, {part('map', depth)})",
        )

    def path(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            ["/a/b", "/a", "request.path", "resource.__name__", "/a/(b)/c%20d", "path('x/y')", "path('/x / {y} /{z=**}')"],
            lambda: f"/a/$({part(rng.choice(['string', 'integer', 'path']), depth)})",
            lambda: f"path({part('string', depth)})",
            lambda: f"(/a/{{x}}).bind({{'x': {part('string', depth)}}})",
            lambda: f"(/a/{{x=**}}/b).bind({{'x': {part('path', depth)}}})",
            lambda: f"{part('path', depth)}[{rng.choice('012')}:{rng.choice('1234')}]",
        )

    def timestamp(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            ["resource.data.t", "timestamp.value(0)", "timestamp.date(2024, 12, 31)", "timestamp.value(-1)"],
            lambda: f"({part('timestamp', depth)} {rng.choice('+-')} {part('duration', depth)})",
            lambda: f"({part('duration', depth)} + {part('timestamp', depth)})",
            lambda: f"{part('timestamp', depth)}.date()",
            lambda: f"timestamp.value({part('integer', depth)})",
            lambda: f"timestamp.date({rng.choice(['1', '1999', '2000', '9999'])}, {rng.choice(['2', '12'])}, {rng.choice(['1', '29', '31'])})",
        )

    def duration(self, depth):
        part, rng = self.part, self.rng
        return self.choose(
            depth,
            ["duration.value(1, 'd')", "duration.value(-1500, 'ms')", "duration.time(1, 2, 3, 4)"],
            lambda: f"duration.value({part('integer', depth)}, {rng.choice(UNITS)})",
            lambda: f"({part('timestamp', depth)} - {part('timestamp', depth)})",
            lambda: f"({part('duration', depth)} {rng.choice('+-')} {part('duration', depth)})",
            lambda: f"-{part('duration', depth)}",
            lambda: f"duration.abs({part('duration', depth)})",
            lambda: f"{part('timestamp', depth)}.time()",
        )

    def latlng(self, depth):
        part = self.part
        return self.choose(
            depth,
            ["resource.data.place", "latlng.value(0.0, 0.0)", "latlng.value(1, 2)"],
            lambda: f"latlng.value({part('number', depth)}, {part('number', depth)})",
        )

    def null(self, depth):
        return self.rng.choice(["null", "resource.data.none", "resource.data.missing", "undefined_name"])

    def difference(self, depth):
        return f"{self.part('map', depth)}.diff({self.part('map', depth)})"


KINDS = "boolean integer float string bytes list set map path timestamp duration latlng null difference".split()
TIME_PARTS = "year month day hours minutes seconds nanos dayOfWeek dayOfYear toMillis".split()
DIFF_KEYS = "addedKeys removedKeys changedKeys unchangedKeys affectedKeys".split()
REPLACEMENTS = ["'x'", "''", "'[$0]'", "'$$'", "'\\\\$'", "'a$'"]
