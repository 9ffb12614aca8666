"""Runs a scenario of listening against two servers, and compares what listeners rebuild after every step.

A document of its own, `sync/s`, marks the end of a step: when a listener has its newest content, it has the step. Two
things are compared then for each target: the documents that both listeners have, and their order. The emulator sends
documents in the order of the query; the order of Hearth is that of RunQuery, whose documents the listener must have.
"""

import cases
import wire
from watching import Broken, Watcher

SYNC = 1
SYNC_TARGET = 'documents { documents: "ROOT/sync/s" }'


class Listening:
    """One scenario on two servers."""

    def __init__(self, servers):
        self.servers = servers
        self.watchers = []
        self.steps = 0
        # Snapshots of targets that were compared, and those of them with documents.
        self.compared = self.filled = 0
        # Targets that are not compared any more: what differs once differs until the end.
        self.differing = set()
        self.is_over = False

    def close(self):
        for watcher in self.watchers:
            watcher.disconnect()

    def run(self, scenario):
        """The differences: method, request and both answers."""
        try:
            yield from self.perform(scenario)
        except Broken as problem:
            broken = [wire.Answer("BROKEN", watcher.problem or str(problem)) for watcher in self.watchers]
            yield "Listen", f"{scenario.targets}", *broken
        finally:
            self.close()

    def perform(self, scenario):
        for method, text in scenario.setting:
            yield from self.both(method, text)
        self.watchers = [Watcher(server, is_strict=number == 1) for number, server in enumerate(self.servers)]
        yield from self.add(SYNC, SYNC_TARGET)
        for number, text in scenario.targets.items():
            yield from self.add(number, text)
        yield from self.compare("the targets")
        for step in scenario.steps:
            yield from self.make(*step)
            if self.is_over:
                return
            yield from self.compare(step)

    # Steps

    def make(self, kind, *arguments):
        if kind == "commit":
            yield from self.both(*arguments[0])
        elif kind == "transaction":
            path, (method, text) = arguments
            answers = [server.transact(path, self.request(method, text, server)) for server in self.servers]
            yield from self.judged(method, text, answers)
        elif kind == "target":
            number, text = arguments
            for watcher in self.watchers:
                if number in watcher.targets:
                    watcher.remove(number)
            self.differing.discard(number)
            yield from self.add(number, text)
        elif kind == "resume":
            says_count, (method, text) = arguments
            for watcher in self.watchers:
                watcher.disconnect()
            yield from self.both(method, text)
            for watcher in self.watchers:
                watcher.resume(says_count)
        elif kind == "clear":
            yield from self.judged("clear", "", [server.clear() for server in self.servers])

    @staticmethod
    def request(method, text, server):
        return wire.parsed(wire.REQUESTS[method], text, server)

    def both(self, method, text):
        answers = [server.call(method, self.request(method, text, server)) for server in self.servers]
        if method == "BatchWrite":
            # The texts of errors are compared where they are errors of calls.
            answers = [wire.Answer(answer.code, answer.text, codes(answer.results)) for answer in answers]
        yield from self.judged(method, text, answers)

    def judged(self, method, text, answers):
        """The difference of two writes. Where the servers have not written the same, the scenario is over."""
        self.is_over |= answers[0].code != answers[1].code or answers[0].results != answers[1].results
        yield from different(method, text, answers)

    def add(self, number, text):
        answers = [watcher.add(number, text) or wire.Answer("OK") for watcher in self.watchers]
        yield from different("Listen", text, answers)
        if any(answer.code != "OK" for answer in answers):
            for watcher in self.watchers:
                if number in watcher.targets:
                    watcher.remove(number)

    # Comparing

    def compare(self, step):
        """Waits until both listeners have everything, and compares their targets."""
        self.steps += 1
        mark = cases.commit(cases.update("sync/s", {"step": self.steps}))
        yield from self.both(*mark)
        for watcher in self.watchers:
            watcher.wait(lambda: self.has_mark(watcher))
        theirs, ours = ({**watcher.snapshot} for watcher in self.watchers)
        for number, target in list(self.watchers[1].targets.items()):
            if number == SYNC or number in self.differing:
                continue
            self.compared += 1
            self.filled += bool(ours[number][0])
            text = f"{target.text} after {step}"
            found = list(differences(text, theirs[number][0], ours[number][0], self.results(target.text)))
            if found:
                self.differing.add(number)
                yield from found

    def has_mark(self, watcher):
        documents, _ = watcher.snapshot.get(SYNC, ({}, {}))
        return list(documents.values()) == [{"step": self.steps}]

    def results(self, text):
        """The results of a target's query on Hearth, in order; None for documents."""
        if not text.startswith("query"):
            return None
        request = wire.parsed(wire.Target, text, self.servers[1]).query
        query = wire.REQUESTS["RunQuery"](parent=request.parent, structured_query=request.structured_query)
        answer = self.servers[1].call("RunQuery", query)
        if answer.code != "OK":
            raise Broken(f"RunQuery: {answer}")
        return answer.results


def codes(results):
    """The codes of a BatchWrite's results."""
    return [code for code, _ in results or []]


def different(method, text, answers):
    if answers[0] != answers[1]:
        yield method, text, *answers


def differences(text, theirs, ours, results):
    """Compares the documents that the listeners have of a target."""
    if results is not None:
        yield from different(
            "Listen and RunQuery", text, [wire.Answer("OK", results=dict(results)), wire.Answer("OK", results=ours)]
        )
    # In the order of the query; of documents, by name.
    ordered = results if results is not None else sorted(ours.items())
    expected = list(theirs.items()) if results is not None else sorted(theirs.items())
    yield from different("Listen", text, [wire.Answer("OK", results=expected), wire.Answer("OK", results=ordered)])
