"""Why Hearth and the emulator may differ."""

import datetime
import decimal
import re

KINDS = {
    "query: emulator is wrong": "the emulator allows a query that returns a document which the rules refuse",
    "query: no documents": "no document meets the conditions, which contradict each other or nearly so",
    "query: hearth proves more": "Hearth allows a query of which the emulator does not prove that it is allowed",
}


def explain(difference):
    """The reason of a difference, or None."""
    if difference.kind in KINDS:
        return KINDS[difference.kind]
    if "INTERNAL ERROR" in difference.theirs or '"code":500' in difference.theirs:
        return "the emulator fails with an internal error"
    # No document of the search is refused, but one of another form could be.
    if difference.kind == "query: emulator proves more" and re.search(r"\.get\('| in resource\.data\)", difference.case):
        return "the emulator takes a field without conditions for one that no document has"
    if difference.kind == "query: emulator proves more" and re.search(r"(\S+) is \w+ && \1 ==", difference.case):
        return "the emulator sees that a type and a value of one field contradict each other in a rule"
    if difference.kind == "compiles":
        return explain_text(difference)
    if difference.kind == "value":
        return explain_value(difference)
    return None


def explain_text(difference):
    """The reason why one of both refuses a text."""
    if re.search(r"^service (?!cloud\.firestore \{)", difference.case, re.M):
        return "names of services that do not exist"
    if re.search(r"\.(if|in|is|let|match|allow|function|return|true|null)\s*\(", difference.case):
        return "a method may have the name of a keyword; it does not exist"
    if re.search(r"\.(service|rules_version)\b", difference.case):
        return "a field may have the name service; the emulator takes what follows it for the name of a service"
    if re.search(r"/ +/|\$[A-Za-z]", difference.case):
        return "a path is divided, or a name has a $: the expression fails when it is evaluated"
    return None


def explain_value(difference):
    """The reason of two different values."""
    if ".values()" in difference.case:
        return "values() has the order of the keys; in the emulator it has none"
    if re.search(r"[\U00010000-\U0010ffff]", difference.case):
        return "the emulator splits between the halves of a surrogate pair"
    if ".date()" in difference.case and is_next_day_before_1970(difference):
        return "in the first second of a day before 1970 the emulator's date() is the next day"
    if ".time()" in difference.case and is_time_before_the_day(difference):
        return "in the first second of a day before 1970 the emulator's time() is negative"
    if difference.theirs == "not evaluated":
        return "the emulator answers 500 and evaluates nothing"
    return None


def is_next_day_before_1970(difference):
    """Whether days differ, and each is equal on both sides or a day later in the emulator, up to 1970."""
    theirs, ours = (
        [datetime.date.fromisoformat(day) for day in re.findall(r'"(\d{4}-\d\d-\d\d)T00:00:00Z"', side)]
        for side in (difference.theirs, difference.ours))
    epoch, day = datetime.date(1970, 1, 1), datetime.timedelta(days=1)
    return len(theirs) == len(ours) and theirs != ours and all(
        their == our or their == our + day <= epoch for their, our in zip(theirs, ours))


def is_time_before_the_day(difference):
    """Whether durations differ, and each is equal on both sides or negative and a day less in the emulator."""
    theirs, ours = (
        [decimal.Decimal(seconds) for seconds in re.findall(r'"durationValue": "(-?[\d.]+)s"', side)]
        for side in (difference.theirs, difference.ours))
    return len(theirs) == len(ours) and theirs != ours and all(
        their == our or their == our - 86_400 < 0 for their, our in zip(theirs, ours))
