// The surface of the SDK compiles in both language modes, without a warning.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct SurfaceTests {
    @Test(arguments: SwiftCompiler.LanguageMode.allCases, ["Surface", "PipelineSurface"])
    func `Code with every call of the SDK compiles without a warning`(
        mode: SwiftCompiler.LanguageMode, file: String
    ) throws {
        let compiler = SwiftCompiler()
        let source = try String(
            contentsOfFile: "\(compiler.repository)/Tests/UserCodeSwift6Tests/\(file).swift", encoding: .utf8)
        let outcome = try compiler.check(source, mode)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test(arguments: ["Firebase", "FirebaseFirestoreSwift"])
    func `The older modules of the SDK bring the same names`(module: String) throws {
        let needed = module == "Firebase" ? "" : "import FirebaseFirestore\n"
        let outcome = try SwiftCompiler().check(
            """
            \(needed)import \(module)
            func f() -> (Firestore, Timestamp, FirebaseApp?) { (Firestore.firestore(), Timestamp(), FirebaseApp.app()) }
            """)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test(arguments: SwiftCompiler.LanguageMode.allCases)
    func `Classes of the SDK conform to protocols of applications, which tests replace`(
        mode: SwiftCompiler.LanguageMode
    ) throws {
        let outcome = try SwiftCompiler().check(
            #"""
            import FirebaseFirestore
            protocol Storing {
                associatedtype Snapshot
                var documentID: String { get }
                func setData(_ documentData: [String: Any], merge: Bool, completion: ((Error?) -> Void)?)
                func setData(_ documentData: [String: Any]) async throws
                func updateData(_ fields: [AnyHashable: Any]) async throws
                func delete() async throws
                func getDocument() async throws -> Snapshot
                func addSnapshotListener(_ listener: @escaping (Snapshot?, Error?) -> Void) -> ListenerRegistration
            }
            protocol Searching {
                func whereField(_ field: String, isEqualTo value: Any) -> Query
                func getDocuments() async throws -> QuerySnapshot
                func getDocuments(completion: @escaping (QuerySnapshot?, Error?) -> Void)
            }
            protocol Finding {
                func collection(_ collectionPath: String) -> CollectionReference
                func batch() -> WriteBatch
                func terminate() async throws
            }
            extension DocumentReference: Storing {}
            extension Query: Searching {}
            extension Firestore: Finding {}
            final class Fake: ListenerRegistration { func remove() {} }
            extension Query {
                func values<T: Decodable>(of type: T.Type) async throws -> [T] {
                    try await getDocuments().documents.map { try $0.data(as: type) }
                }
                func starting(after last: DocumentSnapshot?) -> Query {
                    guard let last else { return self }
                    return start(afterDocument: last)
                }
            }
            func f(_ db: Finding) async throws -> [String] {
                let paths = ["a", "b"].map(db.collection).map(\.path)
                let found = try await db.collection("c").starting(after: nil).getDocuments()
                return found.documents.map(\.documentID) + paths
            }
            """#, mode)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test
    func `Code for the optional data(as:) of SDK 8 compiles beside newer code, with an overload of its module`() throws
    {
        let outcome = try SwiftCompiler().check(
            #"""
            import Firebase
            import FirebaseFirestore
            import FirebaseFirestoreSwift
            extension DocumentSnapshot {
                func data<T: Decodable>(as type: T.Type) throws -> T? {
                    try data(as: type, with: .none, decoder: Firestore.Decoder())
                }
            }
            struct Entry: Codable, Identifiable { @DocumentID var id: String?; var name: String; var place: GeoPoint? }
            final class Model {
                var entry = Entry(name: "")
                var entries: [Entry] = []
                var registration: ListenerRegistration?
                var message: String?
                func fetch(_ db: Firestore) {
                    db.collection("entries").document("e").getDocument { document, error in
                        if let error = error as NSError? { return self.message = error.localizedDescription }
                        do {
                            if let document = document { self.entry = try document.data(as: Entry.self) }
                        } catch {
                            print(error)
                        }
                    }
                }
                func subscribe(_ db: Firestore) {
                    registration = db.collection("entries").addSnapshotListener { [weak self] snapshot, error in
                        self?.entries = snapshot?.documents.compactMap { document in
                            let result = Result { try document.data(as: Entry.self) }
                            switch result {
                            case .success(let entry):
                                if let entry = entry { return entry }
                                return nil
                            case .failure(let error):
                                self?.message = "\(error)"
                                return nil
                            }
                        } ?? []
                    }
                }
            }
            """#, .v5)
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }

    @Test
    func `FirebaseCore has the app and Timestamp`() throws {
        let outcome = try SwiftCompiler().check(
            "import FirebaseCore\nfunc f() -> (Timestamp, FirebaseApp?) { (Timestamp(), FirebaseApp.app()) }")
        expect(outcome.isAccepted, "\(outcome.diagnostics)")
    }
}
