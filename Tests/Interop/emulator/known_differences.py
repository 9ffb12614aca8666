"""Where Hearth answers differently from the official emulator on purpose, and why.

The page docs/compatibility.md tells users.

An entry explains a difference if its patterns match: `request` the method and the request, `emulator` and `hearth` the
answers, each as text ("OK [...]", "INVALID_ARGUMENT text"). Entries of TEXTS explain only errors of one code with
different texts.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Difference:
    reason: str
    request: str = ""
    emulator: str = ""
    hearth: str = ""

    def explains(self, request, emulator, hearth):
        pairs = [(self.request, request), (self.emulator, emulator), (self.hearth, hearth)]
        return all(re.search(pattern, text, re.DOTALL) for pattern, text in pairs)


ANSWERS = [
    Difference(
        "queries by name in descending order need no index here",
        emulator="does not support descending key scans",
        hearth="^OK|This query requires an index that has fields",
    ),
    Difference(
        "NOT_IN may stand beside an OR here", emulator="'NOT_IN' cannot be used in the same query", hearth="^OK"
    ),
    Difference(
        "equality on the name may stand beside inequalities here",
        emulator="Equality on key is not allowed if there are other",
        hearth="^OK",
    ),
    Difference(
        "filters and orders are counted in disjunctive normal form, as in the cloud",
        emulator="^OK",
        hearth=r"may not have more than 100 filters \+ sort orders",
    ),
    Difference(
        "operands above 1,500 bytes are compared as a whole", emulator="too large to be used in a query", hearth="^OK"
    ),
    Difference(
        "the operators EQUAL and NOT_EQUAL with null or NaN mean IS_NULL, IS_NAN and their opposites here",
        request=r"op: (NOT_)?EQUAL value \{ (null_value|double_value: nan)",
        emulator="^OK|This query requires an index that has fields",
        hearth="^OK|order by clause cannot contain more fields after the key",
    ),
    Difference("NOT_IN with NaN leaves NaN out", request=r"NOT_IN.*double_value: nan", emulator="^OK", hearth="^OK"),
    Difference(
        "empty vectors are written by the official Node client's tests", emulator="zero length vector", hearth="^OK"
    ),
    Difference(
        "listeners of all collections, and of a group below a document, are refused as in the cloud",
        request="^Listen",
        hearth="not supported by real-time queries",
    ),
    Difference(
        "a listener gets the same code as RunQuery for a second ARRAY_CONTAINS",
        request="^Listen",
        emulator="^FAILED_PRECONDITION Only a single array-contains clause",
        hearth="^INVALID_ARGUMENT",
    ),
    Difference(
        "an update time ahead of the clock is invalid in the cloud too",
        request="update_time",
        emulator="^FAILED_PRECONDITION",
        hearth="^INVALID_ARGUMENT The update_time of a precondition cannot be in the future",
    ),
    Difference(
        "the zeros of points and of vectors are equal, as those of numbers are",
        request='"zeros"',
        emulator="^OK",
        hearth="^OK",
    ),
    Difference(
        "times in conditions and cursors are rounded down to microseconds, as in the cloud",
        request='"instants"',
        emulator="^OK",
        hearth="^OK",
    ),
    Difference(
        "a projection without fields selects all fields, as the schema says", request=r"select \{\s*\}", hearth="^OK"
    ),
    Difference(
        "conditions that nothing meets count as conditions here",
        request="op: (ARRAY_CONTAINS|NOT_IN) value .*(null_value|double_value: nan)",
        emulator=r"^OK( \[\]| \[\{'field_1': 0.*)?$",
        hearth="A maximum of 1 'ARRAY_CONTAINS'|order by clause cannot contain more fields after the key",
    ),
    Difference(
        "locks of the emulator time out without a conflict",
        emulator=r"^ABORTED Transaction lock timeout|^OK \[(\d+, )*10[],]",
    ),
    Difference(
        "a document may be written and then created in one commit", emulator="Cannot upsert then insert an entity"
    ),
    Difference(
        "a commit may delete a document and then update it", emulator="Cannot (delete|update|insert|upsert) then"
    ),
]

OWN_NAMES = (
    r"Invalid resource name|The parent .* must be a document|A reference value is not a valid document name|"
    r"cannot be \. or \.\.|an id is "
)

# Which of several broken rules is named first is nobody's promise.
RULES = (
    r"kind is required for|order by clause cannot contain|Only a single|cannot be used in the same query|"
    r"cannot be combined with|"
    r"A maximum of 1 'ARRAY_CONTAINS'|This query requires an index that has fields|Too many disjunctions|"
    r"supports up to|distinct inequality fields|may not have more than 100 filters|"
    r"only allowed at the root parent|Cursor has too many|Equality on key is not allowed|descending key scans"
)

TEXTS = [
    Difference("another of several broken rules is named", emulator=RULES, hearth=RULES),
    Difference(
        "the cloud's text and not the emulator's", emulator="no entity to update", hearth="No document to update: "
    ),
    Difference(
        "the cloud's text and not the emulator's", emulator="entity already exists", hearth="Document already exists: "
    ),
    Difference(
        "the cloud's text and not the emulator's",
        emulator="read_time",
        hearth="read_time cannot be in the future|too old",
    ),
    Difference("own words for malformed names", hearth=OWN_NAMES),
    Difference(
        "own words for malformed times",
        emulator="timestamp|Timestamp",
        hearth="Invalid (read_time|update_time)|A timestamp must",
    ),
    Difference(
        "own words for values that cannot be stored, with the field and the place",
        hearth=r"\((field .*, byte|at byte) \d+\)$",
    ),
    Difference(
        "own words for orders of listings",
        request="^ListDocuments",
        emulator="order by clause",
        hearth="property path|order_by",
    ),
    Difference(
        "own words for operators that do not go with the name",
        request="__name__",
        hearth="cannot be applied to __name__",
    ),
]


def explain(method, request, emulator, hearth):
    """The reason of a known difference, or None."""
    entries = ANSWERS + (TEXTS if emulator.code == hearth.code != "OK" else [])
    texts = (f"{method} {request}", str(emulator), str(hearth))
    return next((entry.reason for entry in entries if entry.explains(*texts)), None)
