// What a client asks of a store in its own process. The module `InProcess` has the store; a program that only talks to
// servers is built without it.

import Basics
package import Calls
package import EventLoops

/// A store that is open in this process. Thread-safe.
package protocol OpenStore: Sendable {
    /// A service of the store for the calls of one event loop.
    ///
    /// - Parameter log: takes failures of the store itself; other errors reach the caller.
    func makeService(on loop: EventLoop, log: ClientLog?) -> any StoreService

    /// The end of one use, after the services of this use were closed. The last one writes everything to the directory
    /// and frees it.
    ///
    /// Blocks; not for the thread of a loop.
    func release()
}

/// The service of an open store on one event loop. For the loop's thread.
package protocol StoreService: ServiceHandler {
    /// Ends the service.
    func close()
}

extension HearthClient.Configuration {
    /// Opens the store of a location with ``openStore``.
    ///
    /// - Throws: `.unimplemented` if the program was built without stores in the process, and what the opener throws.
    func open(_ location: StoreLocation) throws(RequestError) -> any OpenStore {
        guard let openStore else {
            throw RequestError(
                .unimplemented,
                """
                This program cannot open \(location) itself: it was built without the trait InProcess of the package \
                Hearth. Name a server, or build the program with the trait.
                """)
        }
        return try openStore(location)
    }
}
