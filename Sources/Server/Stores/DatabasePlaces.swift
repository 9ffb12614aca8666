package import Basics
package import DocumentModel
package import FirestoreMessages

/// Which of several stores has a database. Thread-safe.
///
/// Each database is in one store at all times; it can be moved to another one. Databases that no store has yet are put
/// in one when something is about to write to them.
package protocol DatabasePlaces: Sendable {
    /// The number of the store that has a database, as far as this server knows without asking. It may have moved.
    func known(_ database: DatabaseName) -> Int?

    /// Finds the store that serves a database. The completion is called once, on any thread: with nil if no store has
    /// it, with `UNAVAILABLE` if that cannot be found out now or the database is being moved, with `RESOURCE_EXHAUSTED`
    /// if there are too many databases.
    ///
    /// - Parameter creates: a database that no store has is put in one.
    func find(
        _ database: DatabaseName, creates: Bool, completion: @escaping @Sendable (Result<Int?, RequestError>) -> Void)

    /// - Parameter observer: called on any thread with databases that this server has just learnt of, or that have
    ///   moved, and their stores.
    func whenLearnt(_ observer: @escaping @Sendable ([DatabaseName: Int]) -> Void)

    /// Begins the move of a database, gives one up, or asks how far one is. The completion is called once, on any
    /// thread: with `NOT_FOUND` for a database that no store has, `INVALID_ARGUMENT` for a store that is none,
    /// `FAILED_PRECONDITION` if the database moves elsewhere, or the move cannot be given up any more.
    func move(
        _ request: MoveDatabaseRequest, of database: DatabaseName,
        completion: @escaping @Sendable (Result<MovedDatabase, RequestError>) -> Void)
}
