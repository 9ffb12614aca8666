// The spellings in which programs meet the error codes.

import Basics
import DocumentModel
import Foundation
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct FirestoreErrorCodeTests {
    private func error(_ code: Int, domain: String = FirestoreErrorDomain) -> any Error {
        NSError(domain: domain, code: code, userInfo: [NSLocalizedDescriptionKey: "text"])
    }

    @Test(arguments: StatusCode.allCases)
    func `Codes are gRPC's numbers`(status: StatusCode) {
        let code = FirestoreErrorCode.Code(rawValue: Int(status.rawValue))
        expect(code != nil)
        expectEqual(FirestoreErrorCode.Code.allCases.count, StatusCode.allCases.count)
    }

    @Test
    func `catch and case match domain and code`() {
        do {
            throw error(5)
        } catch FirestoreErrorCode.notFound {
        } catch {
            Issue.record("not caught by code")
        }
        switch error(14) {
        case FirestoreErrorCode.notFound: Issue.record("wrong code matched")
        case FirestoreErrorCode.unavailable: break
        default: Issue.record("no code matched")
        }
        if case FirestoreErrorCode.notFound = error(5, domain: "other") { Issue.record("the domain was ignored") }
    }

    @Test
    func `Codes are found through NSError`() {
        let found = error(14) as NSError
        expectEqual(FirestoreErrorCode.Code(rawValue: found.code), .unavailable)
        expectEqual(found.code, FirestoreErrorCode.unavailable.rawValue)
        expectEqual(found.localizedDescription, "text")
    }

    @Test
    func `The struct bridges to an NSError of the domain`() {
        let bridged = FirestoreErrorCode(.aborted) as NSError
        expectEqual(bridged.domain, FirestoreErrorDomain)
        expectEqual(bridged.code, 10)
    }

    @Test
    func `A printed error says what happened`() {
        let failure = RequestError(.unavailable, "The server 127.0.0.1:1 cannot be reached.").asNSError
        expect("\(failure)".contains("The server 127.0.0.1:1 cannot be reached."))
        expect(!"\(failure)".contains("(null)"))
        expectEqual(failure.localizedDescription, "The server 127.0.0.1:1 cannot be reached.")
        expectEqual(failure.localizedFailureReason, "The server 127.0.0.1:1 cannot be reached.")
        expect(!"\(FirestoreErrorCode(.aborted) as NSError)".contains("(null)"))
    }
}
