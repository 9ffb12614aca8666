// What the compiler says about code that would race: errors in the Swift 6 language mode, and what the SDK allows in
// the Swift 5 mode.

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ConcurrencyTests {
    /// A class of the main actor with a transaction.
    private static func model(_ call: String) -> String {
        """
        import FirebaseFirestore
        @MainActor final class Model {
            var count = 0
            let db = Firestore.firestore()
            func load() async throws {
                let document = db.document("c/d")
                \(call)
            }
        }
        """
    }
    private static let changing = [
        "the form that throws": """
        _ = try await db.runTransaction { transaction in
            self.count += 1
            transaction.setData(["n": 1], forDocument: document)
        }
        """,
        "the SDK's form": """
        _ = try await db.runTransaction { transaction, _ in
            self.count += 1
            transaction.setData(["n": 1], forDocument: document)
            return nil
        }
        """,
    ]

    @Test(arguments: changing.keys.sorted())
    func `A class of the main actor cannot change itself in a transaction`(form: String) throws {
        let outcome = try SwiftCompiler().check(Self.model(Self.changing[form]!))
        expect(!outcome.isAccepted)
        expect(outcome.diagnostics.contains("main actor-isolated property 'count'"), "\(outcome.diagnostics)")
    }

    @Test
    func `In the Swift 5 mode the SDK's form gets a warning`() throws {
        let outcome = try SwiftCompiler().checkWithWarnings(Self.model(Self.changing["the SDK's form"]!), .v5)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
        expect(outcome.diagnostics.contains("warning: main actor-isolated property 'count'"), "\(outcome.diagnostics)")
    }

    @Test(arguments: [0, 1])
    func `What a transaction returns may be used by the class of the main actor`(form: Int) throws {
        let calls = [
            """
            count = try await db.runTransaction { transaction in
                let next = (try transaction.getDocument(document).get("n") as? Int ?? 0) + 1
                transaction.setData(["n": next], forDocument: document)
                return next
            }
            """,
            """
            let next = try await db.runTransaction { transaction, errorPointer -> Any? in
                transaction.setData(["n": 1], forDocument: document)
                return 1
            }
            count = next as? Int ?? 0
            """,
        ]
        let outcome = try SwiftCompiler().check(Self.model(calls[form]))
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test
    func `A local variable cannot be changed in a transaction, which may run on another thread`() throws {
        let outcome = try SwiftCompiler().check(
            """
            import FirebaseFirestore
            func f(_ db: Firestore) async throws -> Int {
                var attempts = 0
                try await db.runTransaction { _ in attempts += 1 }
                return attempts
            }
            """)
        expect(!outcome.isAccepted)
        expect(outcome.diagnostics.contains("mutation of captured var 'attempts'"), "\(outcome.diagnostics)")
    }

    @Test
    func `Registrations of listeners and coders may go to other actors`() throws {
        let outcome = try SwiftCompiler().check(
            """
            import FirebaseFirestore
            actor Store {
                let encoder = Firestore.Encoder(), decoder = Firestore.Decoder()
                var registration: (any ListenerRegistration)?
                func hold(_ new: any ListenerRegistration) { registration = new }
                func end() { registration?.remove() }
            }
            @MainActor func f(_ document: DocumentReference, _ store: Store) async throws {
                let registration = document.addSnapshotListener { _, _ in }
                await store.hold(registration)
                registration.remove()
                let encoder = store.encoder
                encoder.dateEncodingStrategy = .iso8601
                let decoder = store.decoder
                let task = Task.detached { try encoder.encode(["a": 1]).count + decoder.decode(Int.self, from: 1) }
                print(try await task.value)
            }
            """)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }
}
