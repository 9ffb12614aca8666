package import Basics
package import DocumentModel

/// Which of several stores has a database. Thread-safe.
///
/// Each database is in one store at all times, and stays there. Databases that no store has yet are put in one when
/// something is about to write to them.
package protocol DatabasePlaces: Sendable {
    /// The number of the store that has a database, as far as this server knows without asking.
    func known(_ database: DatabaseName) -> Int?

    /// Finds the store of a database. The completion is called once, on any thread: with nil if no store has it, with
    /// `UNAVAILABLE` if that cannot be found out now, with `RESOURCE_EXHAUSTED` if there are too many databases.
    ///
    /// - Parameter creates: a database that no store has is put in one.
    func find(
        _ database: DatabaseName, creates: Bool, completion: @escaping @Sendable (Result<Int?, RequestError>) -> Void)

    /// - Parameter observer: called on any thread with databases that this server has just learnt of, and their stores.
    func whenLearnt(_ observer: @escaping @Sendable ([DatabaseName: Int]) -> Void)
}
