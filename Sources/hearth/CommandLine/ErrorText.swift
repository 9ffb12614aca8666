// Errors in the words of the person who ran a command.

import Basics
import Foundation

enum ErrorText {
    /// What happened, without names of types and cases of this program.
    static func describe(_ error: any Error) -> String {
        switch error {
        case let error as UsageError: error.message
        case let error as RequestError: describe(error)
        case let error as DecodingError: describe(error)
        case let error as CocoaError: describe(error as NSError)
        case let error as POSIXError: describe(error as NSError)
        default:
            if type(of: error) is NSError.Type {
                describe(error as NSError)
            } else {
                // The interpolation of other types is made of the names of their cases.
                type(of: error) is any CustomStringConvertible.Type ? "\(error)" : error.localizedDescription
            }
        }
    }

    private static func describe(_ error: RequestError) -> String {
        let document = error.documentName.map { ", document \($0)" } ?? ""
        return "\(error.message) (\(error.code)\(document))"
    }

    /// The path and the system's words, where Foundation has them.
    private static func describe(_ error: NSError) -> String {
        let reason = (error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error).localizedDescription
        return (error.userInfo[NSFilePathErrorKey] as? String).map { "\($0): \(reason)" } ?? reason
    }

    private static func describe(_ error: DecodingError) -> String {
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
            .dataCorrupted(let context):
            let path = context.codingPath.map { $0.intValue.map { "\($0)" } ?? $0.stringValue }
            return (path.isEmpty ? "" : "at \(path.joined(separator: ".")): ") + context.debugDescription
        @unknown default: return error.localizedDescription
        }
    }
}
