import FirebaseFirestore

/// The tasks of a database.
struct TaskList {
    let database: Firestore
    /// Whether the program works without the server: edits are not awaited, and reads come from the cache.
    let isOffline: Bool

    /// What is listed and watched.
    static let shownMax = 50

    private var tasks: CollectionReference { database.collection("tasks") }
    private var shown: Query { tasks.order(by: "created").limit(to: Self.shownMax) }

    /// Prints the first tasks.
    func list() async throws {
        let snapshot = try await shown.getDocuments(source: isOffline ? .cache : .default)
        show(snapshot)
    }

    func add(_ title: String) async throws {
        let reference = tasks.document()
        try reference.setData(from: TaskItem(title: title))
        try await settle()
        print("added \(reference.documentID)")
    }

    /// Marks a task as done, or as not done.
    func toggle(_ id: String) async throws {
        let snapshot = try await tasks.document(id).getDocument(source: isOffline ? .cache : .default)
        let item = try snapshot.data(as: TaskItem.self)
        snapshot.reference.updateData(["isDone": !item.isDone], completion: nil)
        try await settle()
    }

    func delete(_ id: String) async throws {
        tasks.document(id).delete(completion: nil)
        try await settle()
    }

    /// Prints the first tasks now, and again after every change.
    ///
    /// - Parameter count: snapshots after which the program ends; `nil` = it does not.
    func watch(count: Int?) async throws {
        var seen = 0
        for try await snapshot in shown.snapshots(includeMetadataChanges: true) {
            show(snapshot)
            seen += 1
            if seen == count { return }
        }
    }

    /// Waits until the server has the edits, unless the program works without it.
    private func settle() async throws {
        if !isOffline { try await database.waitForPendingWrites() }
    }

    private func show(_ snapshot: QuerySnapshot) {
        print("-- \(snapshot.count) tasks\(snapshot.metadata.isFromCache ? ", from the cache" : "")")
        for document in snapshot.documents {
            guard let item = try? document.data(as: TaskItem.self, with: .estimate) else { continue }
            let pending = document.metadata.hasPendingWrites ? "  (not sent yet)" : ""
            print("[\(item.isDone ? "x" : " ")] \(document.documentID)  \(item.title)\(pending)")
        }
    }
}
