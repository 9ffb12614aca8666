// Errors in the words of the person who ran a command.

import Basics
import Storage

enum ErrorText {
    /// What happened, without names of types and cases of this program.
    static func describe(_ error: any Error) -> String {
        switch error {
        case let error as UsageError: error.message
        case let error as RequestError: describe(error)
        case let error as StorageError where error.code == .locked:
            "\(error): stop that process first, or use a copy, which hearth backup makes meanwhile"
        // The interpolation of other types is made of the names of their cases.
        default: type(of: error) is any CustomStringConvertible.Type ? "\(error)" : "the command could not be completed"
        }
    }

    private static func describe(_ error: RequestError) -> String {
        let document = error.documentName.map { ", document \($0)" } ?? ""
        return "\(error.message) (\(error.code)\(document))"
    }
}
