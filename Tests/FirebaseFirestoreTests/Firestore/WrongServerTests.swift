// The errors that programs get when something else than a Hearth server is at the address.

import Basics
import DocumentModel
import Foundation
import HearthClient
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct WrongServerTests {
    /// The error of a read of the SDK, and of one that waits no longer than a moment for an answer.
    private func errorOfRead(
        from address: String, connectTimeout: Duration = .seconds(5)
    ) async throws -> RequestError {
        var configuration = try HearthClient.Configuration(address: address)
        configuration.connectTimeout = connectTimeout
        let client = try HearthClient(configuration)
        defer { Task { await client.close() } }
        do throws(RequestError) {
            _ = try await client.getDocument("projects/p/databases/(default)/documents/c/d", options: .failFast)
        } catch {
            return error
        }
        throw RequestError(.ok, "no error")
    }

    @Test(
        arguments: [
            ("HTTP/1", Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8)),
            ("HTTP/2", [0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0, 0]),
            ("TLS", [0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46, 0, 0, 0, 0, 0]),
        ] as [(String, [UInt8])])
    func `Servers of other protocols are named`(name: String, bytes: [UInt8]) async throws {
        let server = RawServer(.says(bytes))
        let error = try await errorOfRead(from: server.address)
        expectEqual(error.code, .unavailable)
        let words = "\(server.address) replied in \(name): it is not a Hearth server"
        expect(error.message.contains(words))
    }

    @Test
    func `The errors for a server of an unknown protocol and for one that closes name the address`() async throws {
        let garbage = RawServer(.says(Array("220 mail.example ESMTP ready\r\n".utf8)))
        let words = "\(garbage.address) does not speak the Hearth protocol"
        try await expect(errorOfRead(from: garbage.address).message.contains(words))
        let closing = RawServer(.closes)
        let error = try await errorOfRead(from: closing.address)
        expectEqual(error.code, .unavailable)
        expect(error.message.hasPrefix("The server \(closing.address) cannot be reached: "))
    }

    @Test
    func `A silent port ends the wait for an answer`() async throws {
        let server = RawServer(.silent)
        let error = try await errorOfRead(from: server.address, connectTimeout: .seconds(2))
        expectEqual(error.code, .unavailable)
        expect(error.message.contains("\(server.address) accepted the connection but did not reply within 2000 ms"))
    }

    @Test
    func `Reads of the SDK end with the address, the reason and a remedy`() async throws {
        let server = RawServer(.says(Array("HTTP/1.1 404 Not Found\r\n\r\n".utf8)))
        let firestore = TestFirestore.make(host: server.address)
        do {
            try await firestore.document("c/d").getDocument()
            Issue.record("no error")
        } catch FirestoreErrorCode.unavailable {
        }
        do {
            try await firestore.document("c/d").getDocument()
            Issue.record("no error")
        } catch {
            let text = "\(error)"
            expect(text.contains("The server \(server.address) cannot be reached"))
            expect(text.contains("replied in HTTP/1"))
            expect(text.contains("set another one: settings.host"))
            expect(!text.contains("(null)"))
        }
        try await firestore.terminate()
    }
}
