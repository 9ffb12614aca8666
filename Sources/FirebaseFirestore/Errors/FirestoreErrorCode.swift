// The error domain and codes of the SDK. The codes are gRPC's; Swift code meets them in four spellings, all of which
// compile: `FirestoreErrorCode.Code(rawValue:)`, `FirestoreErrorCode.unavailable.rawValue`, `case
// FirestoreErrorCode.unavailable:` and `catch FirestoreErrorCode.notFound`.

public import Foundation

/// The domain of every error this library delivers: always an `NSError`, its text under `NSLocalizedDescriptionKey`
/// and `NSLocalizedFailureReasonErrorKey`.
public let FirestoreErrorDomain = "FIRFirestoreErrorDomain"

/// The error codes of `FirestoreErrorDomain`.
///
/// On Linux an `NSError` cannot be cast to this type (`error as? FirestoreErrorCode` is always `nil`): match with
/// `catch FirestoreErrorCode.notFound`, or build a `Code` of `(error as NSError).code`.
public struct FirestoreErrorCode: Error, Equatable, Hashable, Sendable {
    /// A gRPC status code.
    public enum Code: Int, Sendable, CaseIterable {
        /// No error; never delivered.
        case OK = 0
        /// The operation was cancelled, usually by the caller.
        case cancelled = 1
        /// An error of unknown kind.
        case unknown = 2
        /// The request is malformed, whatever the state of the database.
        case invalidArgument = 3
        /// The deadline passed first. A write may or may not have been applied.
        case deadlineExceeded = 4
        /// The document does not exist.
        case notFound = 5
        /// The document exists already.
        case alreadyExists = 6
        /// The caller may not do this.
        case permissionDenied = 7
        /// A quota, a queue or the disk is full.
        case resourceExhausted = 8
        /// The database is not in the state the request requires.
        case failedPrecondition = 9
        /// A conflict with another transaction; trying the whole transaction again may succeed.
        case aborted = 10
        /// A value past the valid range.
        case outOfRange = 11
        /// The operation does not exist here.
        case unimplemented = 12
        /// An invariant of the server or the library is broken.
        case `internal` = 13
        /// The server cannot be reached now; trying again later may succeed.
        case unavailable = 14
        /// Data was lost or is corrupted.
        case dataLoss = 15
        /// The caller has no valid credentials.
        case unauthenticated = 16
    }

    public let code: Code
    public let userInfo: [String: String]

    public init(_ code: Code, userInfo: [String: String] = [:]) {
        self.code = code
        self.userInfo = userInfo
    }

    public static var errorDomain: String { FirestoreErrorDomain }
    public var errorCode: Int { code.rawValue }

    public static let OK = Code.OK
    public static let cancelled = Code.cancelled
    public static let unknown = Code.unknown
    public static let invalidArgument = Code.invalidArgument
    public static let deadlineExceeded = Code.deadlineExceeded
    public static let notFound = Code.notFound
    public static let alreadyExists = Code.alreadyExists
    public static let permissionDenied = Code.permissionDenied
    public static let resourceExhausted = Code.resourceExhausted
    public static let failedPrecondition = Code.failedPrecondition
    public static let aborted = Code.aborted
    public static let outOfRange = Code.outOfRange
    public static let unimplemented = Code.unimplemented
    public static let `internal` = Code.internal
    public static let unavailable = Code.unavailable
    public static let dataLoss = Code.dataLoss
    public static let unauthenticated = Code.unauthenticated
}

extension FirestoreErrorCode: CustomNSError {
    /// With the code's name as the failure reason unless one is given: on Linux an error without one is printed as
    /// "(null)".
    public var errorUserInfo: [String: Any] {
        userInfo.merging([NSLocalizedFailureReasonErrorKey: "\(code)"]) { given, _ in given }
    }
}

/// Matches an error of `FirestoreErrorDomain` with the given code, in `catch` and `case` patterns.
public func ~= (code: FirestoreErrorCode.Code, error: any Error) -> Bool {
    let error = error as NSError
    return error.domain == FirestoreErrorDomain && error.code == code.rawValue
}
