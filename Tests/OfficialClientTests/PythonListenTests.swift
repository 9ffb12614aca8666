// Listeners of the official Python client. What they do and expect is in Tests/Interop/official_listening.py, which has
// a function for each test here. It starts the servers, because it kills and replaces them while listeners continue.

import Foundation
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct PythonListenTests {
    @Test(arguments: [
        (scenario: "watches", "gets the changes of a document, a collection and a query with a limit"),
        ("kills", "continues after its server was killed and replaced, and misses and repeats nothing"),
        ("sources", "gets batch writes, transactions, loads, expired documents, and a cleared database"),
        ("restores", "comes to the state of a restored backup"),
    ])
    func `A listener`(scenario: String, promise: String) throws {
        let directory = TemporaryDirectory("hearth-official-listener")
        let outcome = try OfficialClient.run(
            [HearthBinary.path, directory.path(of: ""), scenario], program: "official_listening.py")
        expectEqual(outcome.status, 0, "A listener \(promise): \(outcome.text)")
    }
}
