internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreService

/// The services of one store on one loop. They are made again, all of them, when the store was opened again. Confined
/// to the loop.
final class LoopStore {
    /// What answers the calls for a store.
    struct Services {
        let firestore: FirestoreService
        let administration: AdminService
        let indexes: IndexAdminService
        /// The way to the server that takes the writes; nil if this server always does.
        let link: LeaderLink?
        /// Who takes the writes; nil if this server always does.
        let leader: KnownLeader?
    }

    let served: ServedStore
    private let make: (ServedStore) -> Services
    private(set) var services: Services
    /// Whether the store is closed, and not open again yet, or not open for the first time.
    private(set) var isRetired = false

    /// - Parameter make: makes the services for the store as it is now.
    init(_ served: ServedStore, _ make: @escaping (ServedStore) -> Services) {
        self.served = served
        self.make = make
        services = make(served)
        if !served.isOpen { retire() }
    }

    var firestore: FirestoreService { services.firestore }

    /// The store is about to be closed.
    func retire() {
        isRetired = true
        services.firestore.retire()
        services.link?.retire()
    }

    /// The store was opened again.
    func renew() {
        services = make(served)
        isRetired = false
    }

    /// Whether calls for a database are taken: it is neither on its way to this store nor away from it.
    func serves(_ database: DatabaseName) -> Bool { services.firestore.store.moveRefusal(of: database) == nil }

    /// Releases what the reads of a turn have shared.
    func releaseSnapshots() { services.firestore.loopWillWait() }

    /// - Throws: `UNAVAILABLE` while the store is closed.
    func checkServes() throws(RequestError) {
        if let closedRefusal { throw closedRefusal }
    }

    /// Why calls are refused while the store is closed; nil if it is open.
    var closedRefusal: RequestError? {
        guard isRetired else { return nil }
        return served.isCutOff ? .storeIsCutOff : .storeIsBeingOpened
    }
}

extension RequestError {
    /// A store is closed, and will be open again.
    static let storeIsBeingOpened = RequestError(
        .unavailable, "The store of this database is being opened again. Please try again.")

    /// A store cannot be opened, since the database with its log cannot be reached.
    static let storeIsCutOff = RequestError(
        .unavailable, "The PostgreSQL with the log of this database cannot be reached. Please try again.")
}
