"""Writes the tables of docs/compatibility.md that come from browsers."""

BEGIN, END = "<!-- measured: Tools/compat web -->", "<!-- end of what browsers measured -->"
WORDS = {True: "passed", False: "**failed**", None: "not run"}


def write(page, results):
    text = page.read_text()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    page.write_text(before + "\n".join(lines(results)) + after)


def lines(results):
    """The table of cases and the table of latencies; `results` has the reports of each server by its name."""
    servers = list(results)
    cases = {}
    latencies = {}
    for server, reports in results.items():
        for report in reports:
            if report["kind"] == "case":
                cases.setdefault((report["group"], report["name"]), {})[server] = report
            elif report["kind"] == "latency":
                latencies.setdefault(report["name"], {})[server] = report
    yield BEGIN
    yield ""
    yield "| case | " + " | ".join(servers) + " |"
    yield "|---|" + "---|" * len(servers)
    notes = []
    for (group, name), found in cases.items():
        yield f"| {group}: {name} | " + " | ".join(WORDS[found[server]["passed"]] for server in servers) + " |"
        notes += [f"- {server}, {group}: {name}: {found[server]['text']}" for server in servers if found[server]["text"]]
    yield ""
    if notes:
        yield from sorted(set(notes))
        yield ""
    yield "| latency, ms: median (90th percentile) | " + " | ".join(servers) + " |"
    yield "|---|" + "---|" * len(servers)
    for name, found in latencies.items():
        texts = [f"{found[s]['median']} ({found[s]['p90']})" if s in found else "" for s in servers]
        yield f"| {name} | " + " | ".join(texts) + " |"
    yield ""
    yield END
