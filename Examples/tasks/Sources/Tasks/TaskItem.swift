import FirebaseFirestore

/// A task of the list.
struct TaskItem: Codable {
    @DocumentID var id: String?
    var title: String
    var isDone = false
    @ServerTimestamp var created: Timestamp?
}
