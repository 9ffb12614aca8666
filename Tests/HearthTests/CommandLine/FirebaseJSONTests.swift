// `hearth serve --config firebase.json`.

import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct FirebaseJSONTests {
    private func settings(_ text: String, projects: String? = nil) throws -> [String: String] {
        let found = try FirebaseJSON.settings(
            Array(text.utf8), path: "/app/firebase.json", projects: projects.map { Array($0.utf8) })
        return Dictionary(uniqueKeysWithValues: found.map { ($0.name, $0.value) })
    }

    @Test func `Host, port, rules and indexes are taken, and what is for other products is left out`() throws {
        let text = """
            {"hosting": {"public": "x"}, "firestore": {"rules": "firestore.rules", "indexes": "/etc/indexes.json"},
             "emulators": {"auth": {"port": 1}, "firestore": {"host": "0.0.0.0", "port": 8085}, "ui": {}}}
            """
        try expectEqual(
            settings(text, projects: #"{"projects": {"default": "demo-app"}}"#),
            [
                "host": "0.0.0.0", "port": "8085", "rules": "/app/firestore.rules", "indexes": "/etc/indexes.json",
                "indexes-project": "demo-app",
            ])
        try expectEqual(settings("{}"), [:])
    }

    @Test func `Of several databases the default one counts`() throws {
        let text = #"{"firestore": [{"database": "b", "rules": "b"}, {"database": "(default)", "rules": "a"}]}"#
        try expectEqual(settings(text), ["rules": "/app/a"])
        try expectEqual(settings(#"{"firestore": [{"database": "b", "rules": "b"}]}"#), [:])
    }

    @Test(arguments: [
        (#"{"firestore": "x"}"#, "/app/firebase.json: 'firestore' is not an array of objects"),
        (#"{"emulators": {"firestore": {"port": "8080"}}}"#, "'port' is not an integer"),
        (#"{"firestore": {"rules": 1}}"#, "'rules' is not a string"), ("{", "it is not a JSON object"),
    ]) func `An error has the name of the file`(text: String, message: String) {
        let error = #expect(throws: UsageError.self) { try settings(text) }
        expectEqual(error?.message.contains(message), true, "\(error?.message ?? "")")
    }

    @Test func `A server takes address, rules and indexes from the file of a project`() throws {
        let directory = TemporaryDirectory("firebase")
        func write(_ name: String, _ text: String) throws {
            try Data(text.utf8).write(to: URL(filePath: directory.path(of: name)))
        }
        try write(
            "firebase.json",
            """
            // Written by hand.
            {"firestore": {"rules": "firestore.rules", "indexes": "firestore.indexes.json"}, /* and */
             "emulators": {"firestore": {"port": 1, "host": "127.0.0.1"}}}
            """)
        try write(".firebaserc", #"{"projects": {"default": "shop"}} // the shop"#)
        // The Firebase CLI makes a file with examples in comments.
        try write(
            "firestore.indexes.json",
            """
            { // "indexes": [ {
              "indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
              {"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "DESCENDING"}]}]}
            """)
        try write(
            "firestore.rules",
            "service cloud.firestore { match /databases/{d}/documents/{p=**} { allow read, write: if true; } }")
        let data = directory.path(of: "data")
        let arguments = ["--config", directory.path(of: "firebase.json")]
        // The command line takes precedence over the port.
        let server = try ServerProcess(data: data, arguments: arguments)
        let listed = try HearthBinary.run(["indexes", "list", "--json", "--data", data, "--project", "shop"])
        expect(listed.output.hasPrefix(#"{"state":""#) && listed.output.contains(#""fieldPath":"b""#), "\(listed)")
        expectEqual(server.stop(), 0)
        expect(server.process.errors.contains("event=indexes_declared"))
        expect(server.process.errors.contains("security=closed"))
        try write("firestore.indexes.json", "[]")
        let refused = try HearthBinary.run(["serve", "--data", data] + arguments)
        expect(refused.status == 1 && refused.errors.contains("invalid firestore.indexes.json"), "\(refused.errors)")
    }
}
