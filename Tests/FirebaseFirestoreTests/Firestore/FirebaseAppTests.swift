// Apps, their options, and the instances that belong to them.

import Basics
import ClientTestSupport
import FirebaseCore
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct FirebaseAppTests {
    private func options(_ project: String?) -> FirebaseOptions {
        let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
        options.projectID = project
        return options
    }

    @Test
    func `An app is found by its name until it is deleted`() async {
        let name = "app-\(UUID().uuidString)"
        expectNil(FirebaseApp.app(name: name))
        FirebaseApp.configure(name: name, options: options("p"))
        expectEqual(FirebaseApp.app(name: name)?.options.projectID, "p")
        expect(FirebaseApp.allApps?[name] != nil)
        expectEqual(
            FirebaseApp.register(name: name, options: options("p")), "App named \(name) has already been configured.")
        let app = FirebaseApp.app(name: name)!
        await expect(app.delete())
        expectNil(FirebaseApp.app(name: name))
        await expect(!app.delete())
    }

    @Test
    func `An app keeps its own copy of the options`() {
        let name = "app-\(UUID().uuidString)"
        let given = options("before")
        FirebaseApp.configure(name: name, options: given)
        given.projectID = "after"
        FirebaseApp.app(name: name)!.options.projectID = "changed"
        expectEqual(FirebaseApp.app(name: name)?.options.projectID, "before")
    }

    @Test
    func `An empty name is refused`() {
        expectEqual(FirebaseApp.register(name: "", options: options("p")), "App name cannot be empty")
    }

    @Test
    func `The environment names the project before the property list, and there is always one`() throws {
        let directory = TemporaryDirectory()
        let path = directory.path(of: "GoogleService-Info.plist")
        let list: [String: Any] = ["PROJECT_ID": "listed", "API_KEY": "k", "GOOGLE_APP_ID": "g", "GCM_SENDER_ID": "s"]
        try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
            .write(to: URL(fileURLWithPath: path))
        func project(_ environment: [String: String], _ paths: [String]) -> String? {
            DefaultOptions(environment: environment, propertyListPaths: paths).resolve().projectID
        }
        expectEqual(project([:], [path]), "listed")
        expectEqual(project(["GCLOUD_PROJECT": "e"], [path]), "e")
        expectEqual(project(["GCLOUD_PROJECT": "e", "HEARTH_PROJECT": "h"], []), "h")
        expectEqual(project(["HEARTH_PROJECT": ""], ["/nowhere"]), DefaultOptions.fallbackProjectID)
        expectEqual(FirebaseOptions(contentsOfFile: path)?.apiKey, "k")
    }

    @Test
    func `Equal arguments give the same Firestore object, until the app goes`() async {
        let name = "app-\(UUID().uuidString)"
        FirebaseApp.configure(name: name, options: options("p"))
        let app = FirebaseApp.app(name: name)!
        let firestore = Firestore.firestore(app: app)
        expect(firestore === Firestore.firestore(app: app))
        expect(firestore === Firestore.firestore(app: app, database: "(default)"))
        expect(firestore !== Firestore.firestore(app: app, database: "other"))
        expect(firestore.app === app)
        await app.delete()
        expect(firestore !== Firestore.firestore(app: app))
    }

    @Test
    func `Databases that are terminated and opened again leave nothing at their app`() async throws {
        let name = "app-\(UUID().uuidString)"
        FirebaseApp.configure(name: name, options: options("p"))
        let app = FirebaseApp.app(name: name)!
        for _ in 0..<100 {
            for database in ["(default)", "other"] {
                try await Firestore.firestore(app: app, database: database).terminate()
            }
        }
        expectEqual(app.deletionActionCount, 2)
        let last = Firestore.firestore(app: app)
        await app.delete()
        expect(last !== Firestore.firestore(app: app), "the last one is ended with the app")
    }

    @Test
    func `The default options are those that configure() takes`() {
        expectEqual(FirebaseOptions.defaultOptions(), DefaultOptions.ofThisProcess.resolve())
        expectEqual(FirebaseOptions.defaultOptions()?.projectID?.isEmpty, false)
    }

    @Test
    func `The version is that of the changelog's newest release or of the one to come`() {
        expectEqual(FirebaseVersion().split(separator: ".").compactMap { Int($0) }.count, 3)
    }
}

/// The log is one for the process, so these run one after the other.
@Suite(.serialized, .timeLimit(.minutes(20))) struct FirebaseLogTests {
    @Test(arguments: FirebaseLoggerLevel.allCases)
    func `The logger level decides what is written`(level: FirebaseLoggerLevel) {
        let written = Mutex<[FirebaseLoggerLevel]>([])
        FirebaseLog.setSink { level, message in
            if message.hasPrefix("FirebaseLogTests") { written.withLock { $0.append(level) } }
        }
        defer {
            FirebaseLog.setSink(nil)
            FirebaseConfiguration.shared.setLoggerLevel(.notice)
        }
        FirebaseConfiguration.shared.setLoggerLevel(level)
        for level in FirebaseLoggerLevel.allCases { FirebaseLog.write(level, "FirebaseLogTests") }
        expectEqual(written.withLock { $0 }, FirebaseLoggerLevel.allCases.filter { $0 <= level })
        expect(FirebaseLoggerLevel.min == .error && FirebaseLoggerLevel.max == .debug)
    }

    @Test
    func `The log has the errors of writes that have no completion`() async throws {
        let id = "d-\(UUID().uuidString)"
        let written = Mutex<[String]>([])
        FirebaseLog.setSink { level, message in
            if level == .warning, message.contains(id) { written.withLock { $0.append(message) } }
        }
        defer { FirebaseLog.setSink(nil) }
        let scripted = try ScriptedFirestore()
        let firestore = scripted.firestore
        let refusal = RequestError(.permissionDenied, "Missing or insufficient permissions.")
        scripted.database.failCommits([refusal, refusal, refusal])
        let document = firestore.document("books/\(id)")
        await #expect("the caller has the error") { try await document.setData(["n": 1]) } throws: { _ in true }
        document.setData(["n": 1], completion: nil)
        firestore.batch().setData([:], forDocument: document).deleteDocument(firestore.document("a/b")).commit(
            completion: nil)
        try await eventually("both are in the log") { written.withLock { $0.count } >= 2 }
        expectEqual(
            written.withLock { $0 },
            [
                "A write of books/\(id) failed: Missing or insufficient permissions. (PERMISSION_DENIED)",
                "A write of books/\(id) and 1 more failed: Missing or insufficient permissions. (PERMISSION_DENIED)",
            ])
        try await firestore.terminate()
    }

    @Test
    func `The log has the error of a call that has no completion when the settings are wrong`() async throws {
        let id = "d-\(UUID().uuidString)"
        let written = Mutex<[String]>([])
        FirebaseLog.setSink { level, message in
            if level == .warning, message.contains(id) { written.withLock { $0.append(message) } }
        }
        defer { FirebaseLog.setSink(nil) }
        let firestore = TestFirestore.make(host: "http://127.0.0.1:8080")
        firestore.document("books/\(id)").setData([:], completion: nil)
        expectEqual(written.withLock { $0 }.count, 1)
        expect(written.withLock { $0 }.first?.contains("not an address of the form HOST:PORT") ?? false)
        try await firestore.terminate()
    }

    @Test
    func `enableLogging switches between everything and troubles`() {
        defer { Firestore.enableLogging(false) }
        Firestore.enableLogging(true)
        expectEqual(FirebaseLog.level, .debug)
        Firestore.enableLogging(false)
        expectEqual(FirebaseLog.level, .notice)
    }
}
