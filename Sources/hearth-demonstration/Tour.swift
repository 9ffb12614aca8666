// What the demonstration does with the loaded packages: an ordinary Firestore app on Linux, timed.

import FirebaseFirestore
import Foundation

struct Tour {
    let database: Firestore
    var packages: CollectionReference { database.collection("packages") }

    func run() async throws {
        try await readAsStructs()
        try await listAndFilter()
        try await writeBatch()
        try await contendedTransaction()
    }

    private func readAsStructs() async throws {
        heading("Read documents back as Codable structs")
        let snapshot = try await packages.whereField("name", isEqualTo: "bash").limit(to: 1).getDocuments()
        guard let found = snapshot.documents.first else { throw Failure("bash is not in the index") }
        let bash = try await timed("getDocument(as: DebianPackage.self)") {
            try await found.reference.getDocument(as: DebianPackage.self)
        }
        print("  \(bash.name) \(bash.version): \(bash.summary)")
        print("  maintained by \(bash.maintainer.name), needs \(bash.depends.map(\.package).joined(separator: ", "))")
    }

    private func listAndFilter() async throws {
        heading("List and filter a collection")
        let largest = try await timed("section == games, largest five archives") {
            try await packages.whereField("section", isEqualTo: "games").order(by: "archiveBytes", descending: true)
                .limit(to: 5).getDocuments()
        }
        for document in largest.documents {
            let package = try document.data(as: DebianPackage.self)
            let name = package.name.padding(toLength: 28, withPad: " ", startingAt: 0)
            print("  \(name) \(package.archiveBytes / 1_000_000) MB")
        }
        let games = try await timed("tags array-contains game::strategy") {
            try await packages.whereField("tags", arrayContains: "game::strategy").getDocuments()
        }
        print("  \(games.count) packages")
    }

    private func writeBatch() async throws {
        heading("Write a batch: all of it or nothing")
        let favourites = database.collection("favourites")
        let batch = database.batch()
        for name in ["bash", "git", "vim", "tmux", "postgresql"] {
            batch.setData(
                ["name": name, "added": FieldValue.serverTimestamp(), "stars": Int64(0)],
                forDocument: favourites.document(name))
        }
        try await timed("commit of 5 documents") { try await batch.commit() }
        print("  \(try await favourites.getDocuments().count) documents in favourites")
    }

    private func contendedTransaction() async throws {
        heading("One document, many writers")
        let counter = database.collection("favourites").document("git")
        let writers = 16
        try await timed("\(writers) concurrent transactions that each add a star") {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<writers {
                    group.addTask { [database] in try await Tour.addStar(to: counter, in: database) }
                }
                try await group.waitForAll()
            }
        }
        let stars = try await counter.getDocument().get("stars") as? Int
        print("  \(stars ?? -1) stars")
        guard stars == writers else { throw Failure("expected \(writers) stars") }
    }

    private static func addStar(to counter: DocumentReference, in database: Firestore) async throws {
        _ = try await database.runTransaction { transaction, errorPointer in
            do {
                let stars = try transaction.getDocument(counter).get("stars") as? Int64 ?? 0
                transaction.updateData(["stars": stars + 1], forDocument: counter)
            } catch {
                errorPointer?.pointee = error as NSError
            }
            return nil
        }
    }

    private func heading(_ text: String) { print("\n\(text)") }

    private func timed<Result>(_ what: String, _ body: () async throws -> Result) async throws -> Result {
        let clock = ContinuousClock()
        let start = clock.now
        let result = try await body()
        let milliseconds =
            Double((clock.now - start).components.attoseconds) / 1e15 + Double((clock.now - start).components.seconds)
            * 1000
        print("  \(what): \(String(format: "%.1f", milliseconds)) ms")
        return result
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }
}
