// Firestore objects for tests, each with its own app and project.

import FirebaseCore
import Foundation

@testable import FirebaseFirestore

enum TestFirestore {
    /// An object without a server.
    static func detached() -> Firestore { make(host: "127.0.0.1:1") }

    /// An object that talks to a server at `HOST:PORT`; callbacks run on their own queue, because tests have no
    /// main loop.
    ///
    /// - Parameter cache: the directory of a persistent cache; objects with the same one stand for one program that
    ///   is started several times.
    static func make(
        host: String, project: String = "test-\(UUID().uuidString.prefix(8))", cache: String? = nil
    ) -> Firestore {
        let options = FirebaseOptions(googleAppID: "", gcmSenderID: "")
        options.projectID = project
        let name = "test-\(UUID().uuidString)"
        FirebaseApp.configure(name: name, options: options)
        let firestore = Firestore.firestore(app: FirebaseApp.app(name: name)!)
        let settings = firestore.settings
        settings.host = host
        settings.dispatchQueue = DispatchQueue(label: "test.callbacks")
        if cache != nil { settings.cacheSettings = PersistentCacheSettings() }
        settings.cacheDirectory = cache
        firestore.settings = settings
        return firestore
    }
}
