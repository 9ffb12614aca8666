// The errors of methods that are not served.

import FirestoreMessages
import TestSupport
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20))) struct UnservedMethodTests {
    private func text(_ path: String) -> String? { UnimplementedMethod(path: path)?.text }

    @Test(arguments: Method.allCases.filter { !$0.isServedOverTCP })
    func `A method of the socket says where it is served`(method: Method) throws {
        let text = try #require(self.text(method.paths[0]))
        expectEqual(text, "\(method.name) is served on the socket admin.sock in the server's data directory only")
    }

    @Test func `An unknown method of the admin API says which ones there are`() throws {
        let text = try #require(self.text("/google.firestore.admin.v1.FirestoreAdmin/Nonsense"))
        for method in Method.allCases where method.service == .firestoreAdmin { expect(text.contains(method.name)) }
        expect(text.hasPrefix("Nonsense is not implemented by this server, which has CreateDatabase, CreateIndex, "))
    }

    @Test(arguments: [
        ("ExportDocuments", "hearth export"), ("ImportDocuments", "hearth import"), ("ListBackups", "hearth backup"),
        ("RestoreDatabase", "hearth restore"),
        ("CreateUserCreds", "it has no users"),
    ]) func `A method of the cloud's admin API says what does its work`(name: String, text: String) {
        expectEqual(self.text("/google.firestore.admin.v1.FirestoreAdmin/\(name)")?.contains(text), true)
    }

    @Test(arguments: [
        "", "/", "//", "/a.B/C", "/google.firestore.v1.Firestore/Nothing", "google.longrunning.Operations/GetOperation",
        "/google.longrunning.Operations", "/google.longrunning/Operations/GetOperation",
    ]) func `Of other paths nothing is known`(path: String) {
        expectNil(text(path))
    }
}
