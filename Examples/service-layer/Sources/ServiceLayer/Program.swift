import FirebaseFirestore

struct Book: FirebaseIdentifiable {
    var id = ""
    var title: String
    var author: String
    var pages: Int
}

@main struct Program {
    static func main() async throws {
        let service = FirestoreService()
        let shelf = "service-layer-\(UUID().uuidString)"

        var ulysses = try await service.post(Book(title: "Ulysses", author: "Joyce", pages: 730), to: shelf)
        let dubliners = try await service.post(Book(title: "Dubliners", author: "Joyce", pages: 152), to: shelf)
        print("stored: \(try await service.getMany(Book.self, in: shelf).count) books")

        ulysses.pages = 732
        try await service.put(ulysses, in: shelf)
        print("pages: \(try await service.getOne(Book.self, id: ulysses.id, in: shelf).pages)")

        let long = try await service.getMany(Book.self, in: shelf) { $0.whereField("pages", isGreaterThan: 200) }
        print("long: \(long.map(\.title))")

        try await service.delete(ulysses, in: shelf)
        try await service.delete(dubliners, in: shelf)
        do {
            _ = try await service.getOne(Book.self, id: ulysses.id, in: shelf)
        } catch FirestoreServiceError.documentNotFound {
            print("deleted")
        }
    }
}
