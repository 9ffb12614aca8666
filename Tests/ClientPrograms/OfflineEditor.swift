// One of several clients that edit the same documents, are killed at any moment, and start again with their caches.

import FirebaseFirestore

/// Edits at random; the environment has its name (CLIENT), the number of its start (RUN) and a seed (SEED).
///
/// Every edit is a batch:
///
///     marks/CLIENT-RUN-N    set         the edit is there
///     totals/CLIENT         increment   how often edits were applied
///     history/CLIENT        union       in which order they were applied
///     shared/sK             set, increment or delete; all clients write these
struct OfflineEditor {
    private let firestore: Firestore
    private let client: String
    private let run: Int
    private let seed: UInt64

    /// Edits of one run: a slow test does not make the documents larger.
    private static let editsMax = 120

    /// The collections that all clients must agree on.
    static let collections = ["marks", "totals", "history", "shared"]

    init(_ firestore: Firestore) {
        let environment = ProcessInfo.processInfo.environment
        self.firestore = firestore
        client = environment["CLIENT"] ?? "c"
        run = Int(environment["RUN"] ?? "") ?? 0
        seed = UInt64(environment["SEED"] ?? "") ?? 0
    }

    private static func print(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

    /// A small generator; the same seed gives the same numbers.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return mixed ^ (mixed >> 31)
        }
    }

    /// Edits until the process is killed. Writes `acknowledged ID` for each edit that the server has acknowledged.
    func run() async throws {
        var generator = Generator(state: seed)
        for name in Self.collections {
            firestore.collection(name).addSnapshotListener(includeMetadataChanges: true) { _, _ in }
        }
        Self.print("started")
        for number in 0..<Self.editsMax {
            switch Int.random(in: 0..<20, using: &generator) {
            case 0: try await firestore.disableNetwork()
            case 1, 2, 3: try await firestore.enableNetwork()
            case 4: _ = try? await firestore.collection("shared").getDocuments()
            case 5: _ = try? await firestore.collection("marks").limit(to: 5).getDocuments(source: .cache)
            default: edit(number, &generator)
            }
            // The time between the edits of a person, shortened.
            try await Task.sleep(for: .milliseconds(Int.random(in: 0..<12, using: &generator)))
        }
        // The test kills the process before.
        try await Task.sleep(for: .seconds(600))
    }

    private func edit(_ number: Int, _ generator: inout Generator) {
        let id = "\(client)-\(run)-\(number)"
        let batch = firestore.batch()
        batch.setData(["number": number], forDocument: firestore.document("marks/\(id)"))
        batch.setData(
            ["n": FieldValue.increment(Int64(1))], forDocument: firestore.document("totals/\(client)"), merge: true)
        batch.setData(
            ["edits": FieldValue.arrayUnion([run * 1_000_000 + number])],
            forDocument: firestore.document("history/\(client)"), merge: true)
        let shared = firestore.document("shared/s\(Int.random(in: 0..<5, using: &generator))")
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: batch.deleteDocument(shared)
        case 1: batch.setData(["n": FieldValue.increment(Int64(3))], forDocument: shared, merge: true)
        default: batch.setData(["n": number, "by": client], forDocument: shared)
        }
        batch.commit { error in
            Self.print(error.map { "failed \(id): \($0)" } ?? "acknowledged \(id)")
        }
    }

    /// Waits until the server has everything, and writes what the listeners show then: `document ID DATA`, sorted.
    func drain() async throws {
        try await firestore.waitForPendingWrites()
        for name in Self.collections {
            for try await snapshot in firestore.collection(name).snapshots(includeMetadataChanges: true) {
                if snapshot.metadata.isFromCache || snapshot.metadata.hasPendingWrites { continue }
                for document in snapshot.documents { Self.print(Self.line(document)) }
                break
            }
        }
        Self.print("end")
    }

    private static func line(_ document: QueryDocumentSnapshot) -> String {
        let fields = document.data().sorted { $0.key < $1.key }.map { key, value in
            let text = (value as? [Any]).map { $0.map { "\($0)" }.joined(separator: ",") } ?? "\(value)"
            return "\(key)=\(text)"
        }
        return "document \(document.reference.path) \(fields.joined(separator: " "))"
    }
}
