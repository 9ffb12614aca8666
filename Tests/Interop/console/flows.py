"""What people do with the console, as flows. Each has a server of its own."""

import json
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

import accessibility
import devtools

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "web"))
import servers  # noqa: E402

DATABASE = "projects/demo/databases/(default)"
CONTROL = 2


def short(flow):
    """Marks a flow for Tools/test."""
    flow.is_short = True
    return flow


class ClosedHearth(servers.Hearth):
    """A server with principals."""

    name = "closed Hearth"

    def command(self):
        return [*super().command(), "--principals", str(self.scratch / "principals.json")]


class Context:
    """A server, pages, and requests beside them."""

    def __init__(self, chromium, binary, scratch, images):
        self.chromium, self.binary, self.scratch, self.images = chromium, binary, pathlib.Path(scratch), images
        self.server = None
        self.pages = []

    def start(self, kind=servers.Hearth):
        self.server = kind(self.binary, self.scratch)
        self.server.start()
        self.base = f"http://127.0.0.1:{self.server.port}"

    def page(self, address="", width=1280, height=800):
        page = devtools.Page(self.chromium, width, height)
        page.theme("light")
        self.pages.append(page)
        page.open(f"{self.base}/console{address}")
        return page

    def check(self):
        for page in self.pages:
            page.check()
            outside = [url for url in page.requests if not url.startswith((self.base, "data:", "blob:", "about:"))]
            assert not outside, f"requests to other servers: {outside}"

    def close(self):
        for page in self.pages:
            page.close()
        if self.server:
            self.server.stop()

    def request(self, method, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method, headers=headers or {})
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read() or b"{}")

    def set(self, path, fields):
        """Writes a document over REST; fields are in its JSON."""
        return self.request("POST", f"/v1/{DATABASE}/documents:commit", {
            "writes": [{"update": {"name": f"{DATABASE}/documents/{path}", "fields": fields}}]})

    def query(self, collection, field, least):
        """Runs a query for documents with a field of at least a number."""
        return self.request("POST", f"/v1/{DATABASE}/documents:runQuery", {"structuredQuery": {
            "from": [{"collectionId": collection}], "where": {"fieldFilter": {
                "field": {"fieldPath": field}, "op": "GREATER_THAN_OR_EQUAL", "value": {"integerValue": str(least)}}}}})

    def get(self, path):
        """The fields of a document; None without one."""
        try:
            return self.request("GET", f"/v1/{DATABASE}/documents/{urllib.request.quote(path)}").get("fields", {})
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def fill(self, collection, count):
        """Stores documents with an increasing number."""
        lines = self.scratch / "lines.jsonl"
        with open(lines, "w") as file:
            for number in range(count):
                file.write(json.dumps({"__name__": f"d{number:07}", "n": number, "name": f"number {number}"}) + "\n")
        subprocess.run(
            [self.binary, "load", "--to", f"127.0.0.1:{self.server.port}", "--project", "demo", "--collection", collection, str(lines)],
            check=True, capture_output=True)

    def image(self, page, name, themes=("light", "dark")):
        """Writes a screenshot in each theme, without focus and messages."""
        if not self.images:
            return
        page.run("(() => { document.querySelector('.toasts')?.remove(); if (!document.querySelector('dialog')) document.activeElement.blur(); })()")
        for theme in themes:
            page.theme(theme)
            # Until the colours have been drawn.
            page.run("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
            page.screenshot(f"{self.images}/console-{name}-{theme}.png")
        page.theme("light")


def text(value):
    return {"stringValue": value}


def until(condition, what):
    end = time.monotonic() + devtools.WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


# Flows.


def busy_seconds(context, seconds):
    """Writes and reads for a while, so that the charts have lines."""
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        context.set(f"books/busy{number % 20}", {"title": text(f"Edition {number}")})
        context.get("books/dune")
        time.sleep(0.02 + 0.03 * (number // 60 % 3))


@short
def flow_sample_to_live_edit(context):
    """From the first page with its sample to a document, whose changes come by themselves."""
    context.start()
    page = context.page()
    page.text("Nothing is wrong.")
    accessibility.check(page)
    context.image(page, "start")
    page.click("button", "Load the sample")
    page.text("12 documents")
    page.click(".row", "dune")
    page.text("inPrint")
    page.text("reviews")
    accessibility.check(page)
    context.image(page, "data")
    # Another writer's change is shown.
    context.set("books/dune", {"title": text("Dune, again")})
    page.text("Dune, again")
    # A new document appears in its place.
    context.set("books/aaa", {"title": text("First")})
    page.until("[...document.querySelectorAll('.row')].some(row => row.innerText.includes('aaa'))", "the new document")
    page.text("13 documents")


@short
def flow_counts_are_of_the_last_change(context):
    """An empty collection fills up, and a change during a count is counted too."""
    context.start()
    page = context.page(f"#/data?db={DATABASE}&path=things")
    page.text("This collection is empty.")
    page.text("0 documents")
    # A count that has been read is not shown until the second document is.
    page.run(
        "(() => { const plain = window.fetch; window.counts = 0; window.fetch = async (path, ...more) => {"
        " const answer = await plain(path, ...more);"
        " if (String(path).includes('runAggregationQuery') && ++window.counts === 1)"
        " await new Promise((shown) => { window.show = shown; });"
        " return answer; }; })()")
    context.set("things/one", {"title": text("First")})
    page.until("window.counts === 1", "a count")
    assert not page.run("document.body.innerText.includes('This collection is empty.')")
    context.set("things/two", {"title": text("Second")})
    page.until("[...document.querySelectorAll('.row')].some(row => row.innerText.includes('two'))", "the second document")
    page.run("window.show()")
    page.text("2 documents")


@short
def flow_a_project_may_begin_with_documents(context):
    """The path of a document is found in its name, whatever its project and database are called."""
    context.start()
    database = "projects/documents-shop/databases/documents-db"
    context.request("POST", f"/v1/{database}/documents:commit", {
        "writes": [{"update": {"name": f"{database}/documents/books/dune", "fields": {"title": text("Dune")}}}]})
    page = context.page(f"#/data?db={database}&path=books")
    page.click(".row", "dune")
    page.text("title")
    page.text("Dune")


@short
def flow_elements_of_arrays_are_not_taken_for_others(context):
    """What is deleted from an array, or added to it, is what the page shows, whatever others do meanwhile."""
    def array(*texts):
        return {"list": {"arrayValue": {"values": [text(element) for element in texts]}}}

    context.start()
    context.set("things/one", array("first", "second"))
    page = context.page(f"#/data?db={DATABASE}&path=things/one")
    page.text("2 elements")
    page.click("button", "▸")
    page.text("second")
    # Another element comes to the place of the one that is to be deleted.
    page.run("document.querySelector('[aria-label=\"Delete [0]\"]').click()")
    page.until("document.querySelector('dialog[open]') !== null", "the dialog")
    context.set("things/one", array("zeroth", "first", "second"))
    page.text("3 elements")
    page.click("dialog[open] button", "Delete")
    page.text("Nothing was deleted.")
    assert context.get("things/one") == array("zeroth", "first", "second")
    # An array becomes longer while an element is added to it.
    page.run("document.querySelector('[aria-label=\"Add to list\"]').click()")
    page.fill("dialog[open] textarea", "last")
    context.set("things/one", array("zeroth", "first", "second", "third"))
    page.text("4 elements")
    page.click("dialog[open] button", "Save")
    until(lambda: context.get("things/one") == array("zeroth", "first", "second", "third", "last"), f"{context.get('things/one')}")
    # Without others an element is deleted.
    page.text("5 elements")
    page.run("document.querySelector('[aria-label=\"Delete [0]\"]').click()")
    page.click("dialog[open] button", "Delete")
    until(lambda: context.get("things/one") == array("first", "second", "third", "last"), f"{context.get('things/one')}")


@short
def flow_values_are_edited_as_their_types(context):
    """Each type is added with the editor and stored as itself."""
    context.start()
    context.set("things/one", {"first": text("x")})
    page = context.page(f"#/data?db={DATABASE}&path=things/one")
    page.text("first")
    added = [
        ("s", "string", "two\nlines", text("two\nlines")), ("i", "integer", "9223372036854775807", {"integerValue": "9223372036854775807"}),
        ("d", "double", "2.5", {"doubleValue": 2.5}), ("t", "timestamp", "2026-01-31T12:00:00.000001+01:00", {"timestampValue": "2026-01-31T11:00:00.000001Z"}),
        ("b", "bytes", "00ff10", {"bytesValue": "AP8Q"}), ("g", "geo point", "52.5, 13.4", {"geoPointValue": {"latitude": 52.5, "longitude": 13.4}}),
        ("r", "reference", "users/ada", {"referenceValue": f"{DATABASE}/documents/users/ada"}),
        ("m", "map", '{"a": {"b": 1}}', {"mapValue": {"fields": {"a": {"mapValue": {"fields": {"b": {"integerValue": "1"}}}}}}}),
        ("l", "array", '[1, 2.0, "x"]', {"arrayValue": {"values": [{"integerValue": "1"}, {"doubleValue": 2}, text("x")]}}),
        ("v", "vector", "1, 2", {"mapValue": {"fields": {"__type__": text("__vector__"), "value": {"arrayValue": {"values": [{"doubleValue": 1}, {"doubleValue": 2}]}}}}}),
    ]
    for name, kind, value, stored in added:
        page.click("button", "+ Field")
        page.until("document.querySelector('dialog[open]') !== null", "the dialog")
        page.fill("dialog[open] input", name)
        page.run(f"(() => {{ const s = document.querySelector('dialog[open] select'); s.value = {json.dumps(kind)}; s.dispatchEvent(new Event('change')); }})()")
        page.fill("dialog[open] textarea", value)
        page.click("dialog[open] button", "Save")
        until(lambda: (context.get("things/one") or {}).get(name) == stored, f"{name} is stored: {context.get('things/one')}")
        page.until("document.querySelector('dialog[open]') === null", "the end of the dialog")
    # A wrong text is refused with its reason, and nothing is stored.
    page.click("button", "+ Field")
    page.fill("dialog[open] input", "wrong")
    page.run("(() => { const s = document.querySelector('dialog[open] select'); s.value = 'integer'; s.dispatchEvent(new Event('change')); })()")
    page.fill("dialog[open] textarea", "1.5")
    page.click("dialog[open] button", "Save")
    page.text("Write a whole number.")
    page.click("dialog[open] button", "Cancel")
    assert "wrong" not in context.get("things/one")
    # One field is deleted.
    page.click(".field-row button", "Delete s")
    page.click("dialog[open] button", "Delete")
    until(lambda: "s" not in context.get("things/one"), "s is deleted")


@short
def flow_values_that_are_saved_unchanged_stay_the_same(context):
    """The editor, and a copy of a document, keep values that JavaScript or a path alone do not have."""
    context.start()

    def vector(*numbers):
        return {"mapValue": {"fields": {
            "__type__": text("__vector__"), "value": {"arrayValue": {"values": [{"doubleValue": number} for number in numbers]}}}}}

    fields = {
        "other": {"referenceValue": "projects/demo/databases/other/documents/users/ada"},
        "looks": {"referenceValue": f"{DATABASE}/documents/projects/one"}, "zero": {"doubleValue": -0.0},
        "vector": vector(-0.0, 1.5), "list": {"arrayValue": {"values": [{"doubleValue": -0.0}, text("x")]}},
        "place": {"geoPointValue": {"latitude": -0.0, "longitude": 1.5}}, "infinite": {"doubleValue": "-Infinity"}}
    context.set("things/one", fields)
    # Python loses the sign of a zero in JSON too.
    def stored(path):
        command = [context.binary, "get", "--address", f"127.0.0.1:{context.server.port}", "--project", "demo", path]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(",", 1)[1]

    expected = stored("things/one")
    assert expected.count("-0.0") == 4, expected
    page = context.page(f"#/data?db={DATABASE}&path=things/one")
    page.text("projects/demo/databases/other/documents/users/ada")
    commits = "performance.getEntriesByType('resource').filter(({ name }) => name.includes(':commit')).length"
    for number, name in enumerate(("other", "looks", "zero", "vector", "list"), 1):
        page.click(".field-row button", f"Edit {name}")
        page.until("document.querySelector('dialog[open]') !== null", "the dialog")
        page.click("dialog[open] button", "Save")
        page.until(f"{commits} === {number}", f"the answer to the commit of {name}")
    assert stored("things/one") == expected, stored("things/one")
    # A copy is made of what the page has read.
    page.click("button", "Duplicate, rename, export, delete")
    page.click("dialog[open] button", "Duplicate")
    page.fill("dialog[open] input", "copy")
    page.click("dialog[open] button", "Save")
    until(lambda: context.get("things/copy") is not None, "the copy")
    assert stored("things/copy") == expected, stored("things/copy")
    # What no double and no day has is refused, with its cause.
    refused = page.run(
        "import('/console/values.js').then(({ parse }) => [['double', '1e999'], ['map', '{\"a\": 1e999}'], ['timestamp', '2026-02-30T00:00:00Z']]"
        ".map(([kind, text]) => { try { return parse(kind, text, 'projects/p/databases/d'); } catch (error) { return error.message; } }))")
    assert refused[0] == refused[1] == "1e999 is too large for a double." and refused[2].startswith("Write a time"), refused


@short
def flow_conflict_is_shown(context):
    """A value that another writer changes while it is edited is shown beside one's own."""
    context.start()
    context.set("things/one", {"word": text("old")})
    page = context.page(f"#/data?db={DATABASE}&path=things/one")
    page.click(".field-row button", "Edit word")
    page.fill("dialog[open] textarea", "mine")
    context.set("things/one", {"word": text("theirs")})
    page.text("Someone has changed this value while you edit it.")
    page.text("theirs")
    context.image(page, "conflict")
    page.click("dialog[open] button", "Write mine")
    until(lambda: context.get("things/one") == {"word": text("mine")}, "mine is stored")


@short
def flow_hostile_data_is_text(context):
    """Names and strings with markup, control characters and great sizes are shown as text; nothing runs."""
    context.start()
    bad = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    identifier = "<b>bold<b> \u202eevil"
    context.set(f"<i>c<i>/{identifier}", {
        bad: text(bad), "control": text("a\u0000b\u001b[31m"), "long": text("y" * 900_000), "javascript:alert(1)": text("\u2028</script>"),
        "deep": nested(18)})
    # The longest string and the deepest map that a document may have.
    context.set("large/one", {"long": text("<b>" + "y" * 1_048_000)})
    context.set("large/deep", {"deep": nested(20)})
    context.set("wide/one", {f"f{number:05}": {"integerValue": str(number)} for number in range(10_000)})
    page = context.page(f"#/data?db={DATABASE}")
    page.click(".item", "<i>c<i>")
    page.click(".row", "<b>bold<b>")
    page.text("onerror")
    page.text("\\u{202e}")
    assert page.run("document.querySelectorAll('main img, main script, main b, main i:not(.dot)').length") == 0
    for _ in range(18):
        page.run("[...document.querySelectorAll('.disclosure')].filter(b => b.getClientRects().length && b.innerText === '▸')[0]?.click()")
    page.text("bottom")
    page.run(f"location.hash = '#/query?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, q: \"'<i>c<i>'\"}})")
    page.text("1 document in")
    assert page.run("document.querySelectorAll('main img, main script').length") == 0
    page.run(f"location.hash = '#/data?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, path: 'wide/one'}})")
    page.text("Show more of 10,000 fields")
    assert page.run("document.querySelectorAll('.field-row').length") <= 300
    for path, shown in (("large/one", "yyyy"), ("large/deep", "deep")):
        page.run(f"location.hash = '#/data?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, path: '{path}'}})")
        page.until(f"document.querySelector('.document')?.innerText.includes('{shown}')", path)
    page.until(
        "(() => { [...document.querySelectorAll('.disclosure')].filter(b => b.getClientRects().length && b.innerText === '▸')[0]?.click();"
        " return document.body.innerText.includes('bottom'); })()", "the deepest map")
    for view in ("query", "watch", "time", "indexes"):
        page.run(f"location.hash = '#/{view}?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, q: 'large --limit 10'}})")
        page.until(f"location.hash.startsWith('#/{view}') && document.querySelector('h1') !== null", view)
    assert page.run("document.querySelectorAll('main img, main script, main b:not(.legend b)').length") == 0


def nested(levels):
    value = text("bottom")
    for level in range(levels):
        value = {"mapValue": {"fields": {f"l{level}": value}}}
    return value


@short
def flow_query_words_plan_and_link(context):
    """A query as text, its results, totals, and its plan; the builder says the same."""
    context.start()
    page = context.page()
    page.click("button", "Load the sample")
    page.text("12 documents")
    page.run(f"location.hash = '#/query?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, q: \"books --where 'year >= 1965' --order-by year:desc --limit 5\"}})")
    page.text("5 documents in")
    page.until("document.querySelectorAll('.condition').length === 1 && document.querySelector('.condition input').value === 'year'", "the builder")
    page.until("document.querySelector('.table-row .id')?.innerText === 'sower'", "the first row")
    accessibility.check(page)
    context.image(page, "query")
    page.click("button", "Run and explain")
    page.until("document.querySelectorAll('.plan-box').length >= 2", "the plan")
    # Each operator but the first has the rows that it gave to the one above it, and all have their time.
    page.until("[...document.querySelectorAll('.plan-rows')].every(e => /[0-9]+ rows?$/.test(e.textContent))", "the rows of operators")
    boxes, times = (page.run(f"document.querySelectorAll('.{name}').length") for name in ("plan-box", "plan-time"))
    assert boxes == times, (boxes, times)
    page.run("document.querySelector('.plan-place').scrollIntoView({block: 'end'})")
    context.image(page, "plan")
    page.fill(".query-text", "books --where 'tags array-contains politics' --count --avg stars")
    page.click("button", "Run")
    page.text("avg stars")
    page.until("document.querySelector('.totals')?.innerText.includes('2')", "the totals")
    page.fill(".query-text", "books --where nonsense")
    page.text("is not a condition")
    # One click makes the index that a plan lacks.
    page.fill(".query-text", "books --where 'inPrint == true' --order-by year:desc")
    page.click("button", "Explain")
    page.text("would make the query cheaper")
    page.click("button", "Make this index")
    page.text("inPrint asc, year desc")
    page.run("history.back()")
    page.until("document.querySelector('.query-text') !== null", "the query again")
    # Live results.
    page.fill(".query-text", "books --where 'year > 2000'")
    page.click(".check", "Live")
    page.text("Live: 0 documents")
    context.set("books/new", {"title": text("New"), "year": {"integerValue": "2001"}})
    page.text("Live: 1 document")


@short
def flow_pipeline_with_its_plan(context):
    """A pipeline as text: groups without names, its operators with what each did, and writes that wait for a word."""
    context.start()
    page = context.page()
    page.click("button", "Load the sample")
    page.text("12 documents")
    groups = "collection(books) | aggregate(n: count(), newest: maximum(year) by inPrint) | sort(n desc)"
    page.run(f"location.hash = '#/query?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, q: {json.dumps(groups)}}})")
    page.text("2 results in")
    page.until("document.querySelectorAll('.table-row').length === 2", "the rows")
    assert page.run("document.querySelectorAll('.table-row a').length") == 0
    page.text("A pipeline.")
    page.click("button", "Explain")
    page.until("[...document.querySelectorAll('.plan-name')].map(e => e.textContent).join() === 'Sort,Aggregate,CollectionScan'", "the operators")
    assert page.run("document.querySelectorAll('.plan-time').length") == 0
    page.click("button", "Run and explain")
    page.until("document.querySelectorAll('.plan-time').length === 3", "the times of the operators")
    rows = page.run("[...document.querySelectorAll('.plan-rows')].map(e => e.textContent).join()")
    assert rows == "↑ 2 rows,↑ 12 rows", rows
    page.text("documents read")
    accessibility.check(page)
    page.run("document.querySelector('.plan-place').scrollIntoView({block: 'end'})")
    context.image(page, "pipeline")
    # Results that are documents lead to them.
    page.fill(".query-text", "collection(books) | where(year > 1965) | select(title)")
    page.click("button", "Run")
    page.until("document.querySelectorAll('.table-row a').length > 0", "the documents")
    page.fill(".query-text", "collection(books) | where(year >")
    page.click("button", "Run")
    page.text("at column")
    # An address never writes, and the button asks.
    before = context.get("books/dune")
    page.run(f"location.hash = '#/query?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, q: 'collection(books) | update(seen: true)'}})")
    page.text("It has not been run.")
    for answer in ("Cancel", "Run it"):
        assert context.get("books/dune") == before
        page.click("button", "Run")
        page.click("dialog[open] button", answer)
    page.text("1 result in")
    assert context.get("books/dune") == {**before, "seen": {"booleanValue": True}}


@short
def flow_closed_server_asks_for_a_token(context):
    """A closed server shows nothing before a credential; the token is in no storage, and ends with the page."""
    start_closed(context)
    page = context.page()
    page.allowed = ["401"]
    page.text("This server is closed")
    assert "Databases" not in page.run("document.querySelector('main').innerText")
    accessibility.check(page)
    page.fill("input[type=password]", "hearth_0000000000000000_wrong")
    page.click("button", "Open the console")
    page.until("document.querySelector('.problem').innerText !== ''", "the refusal")
    page.fill("input[type=password]", context.key)
    page.click("button", "Open the console")
    page.text("Connect to")
    page.click("button", "Load the sample")
    page.text("12 documents")
    page.click(".row", "solaris")
    page.text("Solaris")
    stored = page.run("JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])")
    assert "hearthat_" not in stored and context.key not in stored, stored
    page.send("Page.reload")
    page.text("This server is closed")


def start_closed(context):
    principals = context.scratch / "principals.json"
    made = subprocess.run(
        [context.binary, "token", "create", "operator", "--principals", str(principals), "--role", "admin", "--project", "*", "--api-key"], check=True, capture_output=True, text=True)
    context.key = next(word for word in made.stdout.split() if word.startswith("hearth_"))
    context.start(ClosedHearth)


def flow_lists_of_any_length(context):
    """100,000 documents: the first rows come at once, and scrolling keeps few elements."""
    context.start()
    context.fill("many", 100_000)
    page = context.page(f"#/data?db={DATABASE}&path=many")
    page.text("d0000000")
    page.text("100,000 documents")
    page.until("(() => { const rows = document.querySelector('.rows'); rows.scrollTop = rows.scrollHeight; return rows.scrollTop > 60000; })()", "later rows")
    assert page.run("document.querySelectorAll('.row').length") < 120
    page.run("document.querySelector('.rows').scrollTop = 0")
    page.text("d0000000")
    page.fill(".filter", "d0077")
    page.text("d0077000")
    page.until("!document.querySelector('.rows').innerText.includes('d0000000')", "the filter")


def flow_watch_shows_what_happens(context):
    """Figures, listeners and changes with before and after."""
    context.start()
    page = context.page()
    page.click("button", "Load the sample")
    page.text("12 documents")
    page.click("a", "Watch")
    page.text("No document has changed.")
    context.set("books/dune", {"title": text("Dune"), "year": {"integerValue": "1966"}})
    page.text("books/dune")
    page.click(".change summary", "books/dune")
    page.until("document.querySelectorAll('.chart .line').length >= 9", "the charts")
    # The values of an earlier time, with the arrow keys.
    page.until("document.querySelector('.chart-place').querySelector('.line') !== null", "two rates of commits")
    page.run("document.querySelector('.chart-place').focus()")
    page.key("ArrowLeft", number=37)
    page.until("document.querySelector('.chart .cross') !== null && /^[0-9]{2}:/.test(document.querySelector('.chart-card .hint').innerText)", "the values of a time")
    context.query("books", "year", 1960)
    page.text("books --where 'year >= ?'")
    row = "[...document.querySelectorAll('tr')].find(e => e.innerText.includes('year >= ?'))"
    page.until(f"{row}.querySelectorAll('.number')[1].innerText === '1'", "the query has run once")
    accessibility.check(page)
    if context.images:
        busy_seconds(context, 40)
        page.run("document.querySelector('main').scrollTop = 0")
        context.image(page, "watch")


def flow_rules_are_judged_in_place(context):
    """Messages at their lines, cases with the line that decided, and applying."""
    context.start()
    page = context.page(f"#/rules?db={DATABASE}")
    page.text("The rules can be used.")
    page.until("document.querySelectorAll('.verdict .created').length === 2", "the verdicts")
    page.text("line 5")
    accessibility.check(page)
    # What is shown is the text of the editor, with its words coloured.
    assert page.run("document.querySelector('.code-colours').textContent === document.querySelector('.code-input').value + '\\n'")
    assert page.run("document.querySelector('.code-word').textContent") == "rules_version"
    assert page.run("document.querySelector('.code-string').textContent") == "'2'"
    context.image(page, "rules")
    page.run("(() => { const e = document.querySelector('.code-input'); e.value = e.value.replace('request.auth.uid', 'request.auth.uid ='); e.dispatchEvent(new Event('input')); })()")
    page.until("document.querySelector('.message.error')?.innerText.startsWith('5:')", "the message at its line")


def flow_time_shows_the_past(context):
    """A document as it was, with what differs from now."""
    context.start()
    written = context.set("things/one", {"word": text("before"), "same": text("x")})
    context.set("things/one", {"word": text("after"), "same": text("x")})
    page = context.page(f"#/time?db={DATABASE}&q=things/one")
    page.text("The same as now")
    # Ten steps of an hour are 36 seconds: the document was not there.
    page.run("(() => { const e = document.querySelector('.slider'); e.value = 990; e.dispatchEvent(new Event('input')); })()")
    page.text("differs from now")
    page.text("created since")
    name, time_text = f"{DATABASE}/documents/things/one", written["commitTime"]
    then = page.run(f"import('/console/rest.js').then((rest) => rest.getDocument({json.dumps(name)}, {json.dumps(time_text)}))")
    assert then["fields"]["word"] == text("before"), then
    context.image(page, "time")


def flow_indexes_are_made_and_deleted(context):
    """An index is made by the form, becomes ready, and is deleted."""
    context.start()
    context.set("books/one", {"a": text("x"), "b": text("y")})
    page = context.page(f"#/indexes?db={DATABASE}")
    page.text("No index over several fields.")
    page.click("button", "Make an index")
    page.fill("dialog[open] input", "books")
    page.fill("dialog[open] textarea", "a\nb desc")
    page.click("dialog[open] button", "Make")
    page.text("a asc, b desc")
    page.until("[...document.querySelectorAll('.state')].some(e => e.innerText.includes('ready'))", "the index is ready")
    accessibility.check(page)
    page.click("td button", "Delete")
    page.click("dialog[open] button", "Delete")
    page.text("No index over several fields.")


@short
def flow_a_failed_build_shows_its_cause(context):
    """The cause of an index build that failed is in the list of all that is declared."""
    context.start()
    page = context.page()
    page.send("Page.addScriptToEvaluateOnNewDocument", {"source": (
        "const send = window.fetch; window.fetch = async (path, options) => {"
        " if (!String(path).endsWith('hearth.admin.v1.Admin/ListIndexes')) return send(path, options);"
        " const entries = [{ entry: '{\"collection\":\"books\"}', state: 'FAILED', failure: 'The disk is full.' }];"
        " return new Response(JSON.stringify({ entries })); };")})
    page.open(f"{context.base}/console#/indexes?db={DATABASE}")
    page.run("location.reload()")
    page.text("The disk is full.")
    accessibility.check(page)


@short
def flow_integers_keep_their_digits(context):
    """Numbers in JSON keep their texts, with a JSON.parse that has no source text and without JSON.rawJSON too."""
    context.start()
    page = context.page()
    page.text("Nothing is wrong.")
    check = (
        "import('/console/values.js').then(({ readJSON, writeJSON, fromLine, toLine }) => {"
        " const line = String.raw`{\"a 12\":[9007199254740993,-9223372036854775808,3,3.0,-0.0,1e+300,\"x\\\\\",\"\\\"5\"],\"b\":0,\"v\":{\"$vector\":[1.5,{\"$double\":\"NaN\"}]}}`;"
        " const value = fromLine(readJSON(line), 'projects/p/databases/d');"
        " return [line, writeJSON(readJSON(line)), writeJSON(toLine(value)), value.mapValue.fields['a 12'].arrayValue.values[0].integerValue];"
        " })")
    for source in ("", (
            "const parse = JSON.parse; delete JSON.rawJSON;"
            " JSON.parse = (text, revive) => parse(text, revive && function (name, value) { return revive.call(this, name, value); });")):
        page.run(f"(() => {{ {source} }})()")
        line, same, again, first = page.run(check)
        assert line == same == again, (line, same, again)
        assert first == "9007199254740993", first
    problem = page.run("import('/console/values.js').then(({ readJSON }) => { try { readJSON('[01]'); } catch (error) { return error.message; } })")
    assert problem.startswith("This is not JSON"), problem
    problems = page.run(
        "import('/console/values.js').then(({ readJSON, fromLine }) => ['{\"$geoPoint\":1}', '{\"$vector\":{}}', '{\"$map\":5}'].map((line) => {"
        " try { return JSON.stringify(fromLine(readJSON(line), 'projects/p/databases/d')); } catch (error) { return error.message; } }))")
    assert problems == [
        "Write the numbers of $geoPoint as a JSON list.", "Write the numbers of $vector as a JSON list.",
        "Write the members of $map as a JSON object."], problems


class HearthWithoutSweeps(servers.Hearth):
    """A server on which expired documents stay."""

    def command(self):
        return [*super().command(), "--ttl-interval", "0s", "--backup-directory", str(self.scratch)]


def flow_expiry_shows_what_waits(context):
    """Expiry is started by the form; the view shows how many documents have expired, and when the next one does."""
    context.start(HearthWithoutSweeps)
    for name, year in [("a", 2001), ("b", 2002), ("c", 2101)]:
        context.set(f"sessions/{name}", {"until": {"timestampValue": f"{year}-02-03T04:05:06Z"}})
    page = context.page(f"#/indexes?db={DATABASE}")
    page.text("Documents do not expire.")
    page.click("button", "Let documents expire")
    page.run("document.querySelectorAll('dialog[open] input').forEach((input, index) => { input.value = ['sessions', 'until'][index]; })")
    page.click("dialog[open] button", "Start")
    page.text("2101-02-03T04:05:06Z")
    row = page.run("document.querySelector('section[aria-label=Expiry] tbody tr').innerText")
    assert row.split()[:4] == ["sessions", "until", "active", "2"], row
    page.text("0 expired documents deleted since the server started.")
    accessibility.check(page)
    context.image(page, "indexes")
    page.click("section[aria-label=Expiry] td button", "Stop")
    page.text("Documents do not expire.")


class HearthWithBackups(servers.Hearth):
    """A server whose operator has named a directory for backups."""

    def command(self):
        return [*super().command(), "--backup-directory", str(self.scratch / "backups")]


def flow_backups_are_started_and_cancelled(context):
    """A backup goes into the directory that the operator has named, with its progress; one that is cancelled leaves nothing."""
    context.start()
    page = context.page(f"#/indexes?db={DATABASE}")
    page.text("--backup-directory")
    context.close()
    context.pages.clear()
    backups = context.scratch / "backups"
    backups.mkdir()
    context.start(HearthWithBackups)
    context.fill("many", 60_000)
    page = context.page(f"#/indexes?db={DATABASE}")
    page.text("No backup is there.")
    page.click("button", "Start a backup")
    page.text("is complete")
    names = [path.name for path in backups.iterdir()]
    assert len(names) == 1 and names[0].startswith("backup-"), names
    page.text(names[0])
    accessibility.check(page)
    # A name has seconds: the next one is another.
    until(lambda: time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime()) not in names[0], "the next second")
    page.click("button", "Start a backup")
    page.until("document.querySelector('progress') !== null || document.querySelectorAll('main li').length === 2", "the next backup")
    if page.run("document.querySelector('progress') !== null"):
        page.click("button", "Cancel the backup")
    page.until("document.querySelector('progress') === null", "its end")
    left = [path for path in backups.iterdir()]
    assert all((path / "FORMAT").exists() for path in left), left
    checked = subprocess.run([context.binary, "check", "--data", str(backups / names[0])], capture_output=True, text=True)
    assert checked.returncode == 0, checked
    page.click(f"button[aria-label='Restore {names[0]}']", "Restore…")
    page.text("hearth restore --data NEW-DIRECTORY")
    page.text(str(backups / names[0]))
    page.click("dialog[open] button", "Close")
    page.click(f"button[aria-label='Delete {names[0]}']", "Delete…")
    page.fill("dialog[open] input", "something else")
    page.click("dialog[open] button.danger", "Delete")
    assert (backups / names[0] / "FORMAT").exists()
    page.fill("dialog[open] input", names[0])
    page.click("dialog[open] button.danger", "Delete")
    page.until(f"document.querySelector('[aria-label=\"Delete {names[0]}\"]') === null", "the backup is gone")
    until(lambda: not (backups / names[0]).exists(), "the files are gone")


def flow_packages_of_the_demonstration(context):
    """The index of Debian's packages: lists, a query with its plan, totals, an edit, and the past."""
    context.start()
    packages = context.scratch / "packages.jsonl"
    index = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True).stdout
    assert index, "the package index of this machine is empty; run: apt-get update"
    with open(packages, "wb") as file:
        subprocess.run([str(pathlib.Path(context.binary).parent / "hearth-demonstration"), "convert"], input=index, stdout=file, check=True)
    subprocess.run(
        [context.binary, "load", "--to", f"127.0.0.1:{context.server.port}", "--project", "demo", "--collection", "packages", str(packages)],
        check=True, capture_output=True)
    count = sum(1 for _ in open(packages, "rb"))
    assert count > 50_000, count
    page = context.page(f"#/data?db={DATABASE}&path=packages")
    page.text(f"{count:,} documents")
    page.fill(".filter", "bash_")
    page.click(".row", "bash_")
    page.text("installedKibibytes")
    name = page.run("new URLSearchParams(location.hash.split('?')[1]).get('path')")
    page.run(f"location.hash = '#/query?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, q: \"packages --where 'section == shells' --order-by installedKibibytes:desc --limit 20\"}})")
    page.text("documents in")
    page.click("button", "Run and explain")
    page.until("document.querySelectorAll('.plan-time').length >= 3", "the plan")
    page.fill(".query-text", "packages --count")
    page.click("button", "Run")
    page.text(f"{count}")
    page.run(f"location.hash = '#/time?' + new URLSearchParams({{db: {json.dumps(DATABASE)}, q: {json.dumps(name)}}})")
    page.text("The same as now")


def flow_palette_and_keys(context):
    """The palette goes to views and paths by the keyboard alone."""
    context.start()
    context.set("users/ada", {"name": text("Ada")})
    page = context.page()
    page.text("Nothing is wrong.")
    page.key("k", CONTROL, "KeyK", 75)
    page.until("document.querySelector('dialog.palette[open]') !== null", "the palette")
    page.type("users/ada")
    page.text("Open users/ada")
    page.key("Enter", number=13)
    page.text("Ada")
    page.until("document.activeElement !== null", "a focus")
    page.size(390, 800)
    page.until("document.documentElement.scrollWidth <= 390", "the page fits a narrow screen")


@short
def flow_large_documents_are_imported(context):
    """The lines of a file are stored in requests that a server takes, whatever their size."""
    context.start()
    page = context.page(f"#/data?db={DATABASE}")
    page.until("document.querySelector('h1, h2') !== null", "the page")
    page.run(
        "import('/console/view-data.js').then(({ importFile }) => {"
        " const line = (_, n) => JSON.stringify({ __name__: `d${n}`, text: 'y'.repeat(60_000) });"
        f" return importFile({{ database: {json.dumps(DATABASE)} }}, 'large', new Blob([Array.from({{ length: 250 }}, line).join('\\n')]));"
        " })")
    page.text("250 documents imported.")
    assert context.get("large/d0") is not None and context.get("large/d249") is not None


def flow_recursive_delete_asks_for_the_path(context):
    """A document with collections below it is deleted after its path was typed."""
    context.start()
    for path in ("a/x", "a/x/b/1", "a/x/b/2", "a/x/b/2/c/3", "a/y"):
        context.set(path, {"n": text(path)})
    page = context.page(f"#/data?db={DATABASE}&path=a/x")
    page.click(".document button", "Duplicate, rename, export, delete")
    page.click("dialog[open] button", "Delete the document")
    page.text("4 documents will be deleted")
    page.fill("dialog[open] input", "a/")
    page.click("dialog[open] button.danger", "Delete")
    assert context.get("a/x") is not None
    page.fill("dialog[open] input", "a/x")
    page.click("dialog[open] button.danger", "Delete")
    page.text("4 documents deleted.")
    assert context.get("a/x/b/2/c/3") is None and context.get("a/y") is not None


CHANNEL_CHECK = r"""
(async () => {
  const { FrameReader, WebChannel } = await import('/console/webchannel.js');
  const frame = (arrays) => { const json = JSON.stringify(arrays); return `${json.length}\n${json}`; };
  const found = {};
  // Frames that are cut anywhere, with characters of one to four bytes.
  const text = frame([[1, ['é😀']], [2, ['noop']]]) + frame([[3, [{ x: '\n' }]]]);
  const reader = new FrameReader();
  found.cut = [];
  for (let at = 0; at < text.length; at += 1) found.cut.push(...reader.take(text[at]).map(([number]) => number));
  // A back channel that breaks is asked for again with the last number, and what comes twice is dropped.
  const requests = [];
  const answers = [
    () => new Response(frame([[1, [{ n: 1 }]], [2, [{ n: 2 }]]])),
    () => { throw new TypeError('broken'); },
    () => new Response(frame([[2, [{ n: 2 }]], [3, [{ n: 3 }]]])),
    () => new Response(frame([[4, [{ error: { status: 'NOT_FOUND', message: 'gone' } }]]])),
  ];
  const messages = [];
  const end = await new Promise((resolve) => {
    const channel = new WebChannel('projects/p/databases/d', { Authorization: 'Bearer t' }, { onMessage: (message) => messages.push(message.n), onEnd: resolve },
      async (url, options) => { requests.push([options.method, new URL(url, location.href).searchParams, options.headers.Authorization, options.body]); return options.method === 'GET' ? answers.shift()() : new Response(frame([[0, ['c', 'session', '', 8, 12, 30000]]])); });
    channel.send({ addTarget: 1 });
    channel.send({ addTarget: 2 });
  });
  found.messages = messages;
  found.end = end.status;
  found.methods = requests.map(([method]) => method).join();
  found.acknowledged = requests.filter(([method]) => method === 'GET').map(([, query]) => query.get('AID')).join();
  found.authorized = requests.every(([, , authorization]) => authorization === 'Bearer t');
  // A session that the server does not know ends the channel with an error that leads to a new one.
  const lost = await new Promise((resolve) => new WebChannel('projects/p/databases/d', {}, { onMessage() {}, onEnd: resolve }, async () => new Response('Unknown SID', { status: 400 })).send({}));
  found.lost = lost.status;
  return found;
})()
"""


@short
def flow_channel_loses_and_repeats_nothing(context):
    """The WebChannel client: frames that are cut, a channel that breaks, a session that ended."""
    context.start()
    page = context.page()
    page.text("Nothing is wrong.")
    found = page.run(CHANNEL_CHECK)
    assert found["cut"] == [1, 2, 3], found
    assert found["messages"] == [1, 2, 3], found
    assert found["end"] == "NOT_FOUND" and found["lost"] == "UNAVAILABLE", found
    assert found["acknowledged"].startswith("0,2,2,3"), found
    assert found["methods"].startswith("POST") and found["authorized"], found


HUB_CHECK = r"""
(async () => {
  const { ListenHub } = await import('/console/listen-hub.js');
  const channels = [];
  class Channel {
    constructor(database, headers, handler) { this.handler = handler; this.sent = []; channels.push(this); }
    send(message) { this.sent.push(message); }
    close() {}
  }
  const snapshots = [];
  new ListenHub(Channel).listen('projects/p/databases/d', { documents: {} }, { snapshot: (one) => snapshots.push(one), failed() {} });
  const document = (name) => ({ documentChange: { document: { name }, targetIds: [1] } });
  const take = (channel, ...messages) => messages.forEach((message) => channel.handler.onMessage(message));
  const current = (resumeToken) => ({ targetChange: { targetChangeType: 'CURRENT', targetIds: [1], resumeToken } });
  const end = (resumeToken) => ({ targetChange: { resumeToken, readTime: 't' } });
  const lost = async () => {
    channels.at(-1).handler.onEnd(null);
    while (channels.at(-1).isSeen) await new Promise((resolve) => setTimeout(resolve, 20));
    channels.at(-1).isSeen = true;
  };
  channels[0].isSeen = true;
  // The channel breaks before the snapshot is complete: its documents come again.
  take(channels[0], document('a'), current('1'));
  await lost();
  take(channels[1], document('a'), current('2'), end('3'), document('b'), current('4'));
  await lost();
  take(channels[2], document('b'), current('5'), end('6'));
  return {
    tokens: channels.map((channel) => channel.sent[0].addTarget.resumeToken ?? ''),
    names: snapshots.map((one) => one.changes.map((change) => change.name).join()),
  };
})()
"""


@short
def flow_broken_snapshots_are_asked_for_again(context):
    """A listener continues after the last snapshot that it has had, whatever came of the next one."""
    context.start()
    page = context.page()
    page.text("Nothing is wrong.")
    found = page.run(HUB_CHECK)
    assert found == {"tokens": ["", "", "3"], "names": ["a", "b"]}, found


WORKER_CHECK = r"""
(async () => {
  const plain = { now: Date.now, setInterval: window.setInterval };
  const ticks = [];
  window.setInterval = (tick) => ticks.push(tick);
  await import('/console/worker.js');
  const { port1: tab, port2: worker } = new MessageChannel();
  const answers = [];
  tab.onmessage = ({ data }) => answers.push(data.kind ?? (data.snapshot ? 'snapshot' : data));
  window.onconnect({ ports: [worker] });
  const answered = async (count) => { while (answers.length < count) await new Promise((resolve) => setTimeout(resolve, 20)); };
  const listen = () => tab.postMessage({ kind: 'listen', id: 1, database: 'DATABASE', request: { documents: { documents: ['DATABASE/documents/things/one'] } } });
  listen();
  await answered(1);
  // The tab sleeps.
  Date.now = () => plain.now() + 1_000_000;
  ticks.forEach((tick) => tick());
  tab.postMessage({ kind: 'here' });
  await answered(2);
  listen();
  await answered(3);
  [Date.now, window.setInterval] = [plain.now, plain.setInterval];
  return answers;
})()
"""


@short
def flow_tabs_that_slept_listen_again(context):
    """The worker tells a tab that was silent that its listeners have ended. What the tab gets then is all that there is."""
    context.start()
    for name in ("one", "two"):
        context.set(f"things/{name}", {"word": text(name)})
    page = context.page()
    page.text("Nothing is wrong.")
    found = page.run(WORKER_CHECK.replace("DATABASE", DATABASE))
    assert found == ["snapshot", "forgotten", "snapshot"], found
    page = context.page(f"#/data?db={DATABASE}&path=things/two")
    page.text("word")
    page.send("Page.addScriptToEvaluateOnNewDocument", {"source": (
        "window.SharedWorker = class extends SharedWorker { constructor(...all) { super(...all); window.workerPort = this.port; } };")})
    page.run("location.reload()")
    page.until("'workerPort' in window", "the page again")
    page.text("word")
    page.until("[...document.querySelectorAll('.row')].some(row => row.innerText.includes('two'))", "the document in its list")
    until(lambda: sum(len(one["targets"]) for one in context.request("GET", "/console/data/listeners")["listeners"]) >= 2, "both listeners")
    page.run("(() => { window.handler = workerPort.onmessage; workerPort.onmessage = () => { window.missed = true; }; })()")
    context.request("POST", f"/v1/{DATABASE}/documents:commit", {
        "writes": [{"delete": f"{DATABASE}/documents/things/two"}]})
    page.until("window.missed", "what the tab does not take")
    time.sleep(0.5)
    page.run("(() => { workerPort.onmessage = handler; handler({ data: { kind: 'forgotten' } }); })()")
    page.text("There is no document with this name.")
    page.until("![...document.querySelectorAll('.row')].some(row => row.innerText.includes('two'))", "the document's removal from its list")


def flow_listeners_survive_a_restart(context):
    """After the server was killed and started again the page shows what was written meanwhile."""
    context.start()
    context.set("things/one", {"word": text("before")})
    page = context.page(f"#/data?db={DATABASE}&path=things/one")
    page.allowed = ["ERR_"]
    page.text("before")
    until(lambda: context.request("GET", "/console/data/listeners")["listeners"], "the listener")
    context.server.kill()
    context.server.start()
    context.set("things/one", {"word": text("after the restart")})
    page.text("after the restart")


def flow_one_channel_for_all_tabs(context):
    """Eight tabs with live documents use one channel, so that other requests find a connection."""
    context.start()
    context.set("things/one", {"word": text("x")})
    pages = [context.page(f"#/data?db={DATABASE}&path=things/one") for _ in range(8)]
    for page in pages:
        page.text("word")
    listeners = context.request("GET", "/console/data/listeners")["listeners"]
    assert len(listeners) == 1, listeners
    context.set("things/one", {"word": text("seen by all")})
    for page in pages:
        page.text("seen by all")


@short
def flow_clients_light_up(context):
    """The light of a client turns green at its first call."""
    context.start()
    page = context.page()
    page.text("Nothing is wrong.")
    assert page.run("document.querySelectorAll('.tab .dot.good').length") == 0
    context.set("things/one", {"word": text("x")})
    page.until("document.querySelector('#client-rest .dot.good') !== null", "the light of REST")
    subprocess.run([context.binary, "get", "things/one", "--address", f"127.0.0.1:{context.server.port}", "--project", "demo"], check=True, capture_output=True)
    page.until("document.querySelector('#client-swift .dot.good') !== null", "the light of Swift")
    assert page.run("document.querySelectorAll('.tab .dot.good').length") == 2
