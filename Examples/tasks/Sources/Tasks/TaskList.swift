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
        try await commit(database.batch().setData(from: TaskItem(title: title), forDocument: reference))
        print("added \(reference.documentID)")
    }

    /// Marks a task as done, or as not done.
    func toggle(_ id: String) async throws {
        let snapshot = try await tasks.document(id).getDocument(source: isOffline ? .cache : .default)
        guard snapshot.exists else { return print("there is no task \(id)") }
        let item = try snapshot.data(as: TaskItem.self)
        try await commit(database.batch().updateData(["isDone": !item.isDone], forDocument: snapshot.reference))
    }

    func delete(_ id: String) async throws {
        try await commit(database.batch().deleteDocument(tasks.document(id)))
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

    /// Makes an edit. The server has accepted it then; if the program works without the server, the cache keeps it.
    ///
    /// - Throws: why the server has refused it.
    private func commit(_ edit: WriteBatch) async throws {
        if isOffline { edit.commit(completion: nil) } else { try await edit.commit() }
    }

    private func show(_ snapshot: QuerySnapshot) {
        print("-- \(snapshot.count) tasks\(snapshot.metadata.isFromCache ? ", from the cache" : "")")
        for document in snapshot.documents {
            do {
                let item = try document.data(as: TaskItem.self, with: .estimate)
                let pending = document.metadata.hasPendingWrites ? "  (not sent yet)" : ""
                print("[\(item.isDone ? "x" : " ")] \(document.documentID)  \(item.title)\(pending)")
            } catch {
                print("[?] \(document.documentID)  is not a task: \(error)")
            }
        }
    }
}
