public import Foundation

/// The domain of every error of this library.
///
/// Errors are `NSError`s with gRPC's code. Their text is the value of `NSLocalizedDescriptionKey` and of
/// `NSLocalizedFailureReasonErrorKey`. Swift code can match codes in four ways: `FirestoreErrorCode.Code(rawValue:)`,
/// `FirestoreErrorCode.unavailable.rawValue`, `case FirestoreErrorCode.unavailable:` and `catch
/// FirestoreErrorCode.notFound`.
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

    /// The code of the error.
    public let code: Code
    /// Further details, by the keys of `NSError.userInfo`.
    public let userInfo: [String: String]

    /// Creates an error.
    public init(_ code: Code, userInfo: [String: String] = [:]) {
        self.code = code
        self.userInfo = userInfo
    }

    /// The value of ``FirestoreErrorDomain``.
    public static var errorDomain: String { FirestoreErrorDomain }
    /// The raw value of the code.
    public var errorCode: Int { code.rawValue }

    /// No error; never thrown.
    public static let OK = Code.OK
    /// The operation was cancelled, usually by the caller.
    public static let cancelled = Code.cancelled
    /// An error of unknown kind.
    public static let unknown = Code.unknown
    /// The request is malformed, independent of the state of the database.
    public static let invalidArgument = Code.invalidArgument
    /// The deadline passed. A write may have been applied.
    public static let deadlineExceeded = Code.deadlineExceeded
    /// The document does not exist.
    public static let notFound = Code.notFound
    /// The document already exists.
    public static let alreadyExists = Code.alreadyExists
    /// The caller is not allowed to do this.
    public static let permissionDenied = Code.permissionDenied
    /// A quota, a queue or the disk is full.
    public static let resourceExhausted = Code.resourceExhausted
    /// The database is not in the state that the request requires.
    public static let failedPrecondition = Code.failedPrecondition
    /// A conflict with another transaction. Running the whole transaction again may succeed.
    public static let aborted = Code.aborted
    /// A value is outside the valid range.
    public static let outOfRange = Code.outOfRange
    /// The server or the library does not implement the operation.
    public static let unimplemented = Code.unimplemented
    /// An invariant of the server or of the library is violated.
    public static let `internal` = Code.internal
    /// The server cannot be reached now. Retrying later may succeed.
    public static let unavailable = Code.unavailable
    /// Data was lost or is damaged.
    public static let dataLoss = Code.dataLoss
    /// The caller has no valid credentials.
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
