// What a store cannot do at present, for example because its disk is full.

import Basics
import FirebaseCore

/// Logs that a store cannot do something that is tried again and again: once for each reason, and once at the end.
struct LastingFailure {
    /// What the store does, for the log.
    private let what: String
    /// The error that was logged last; nil if the store can do it.
    private var logged: RequestError?

    init(_ what: String) { self.what = what }

    /// Whether the store could not do it when it was tried last.
    var isLasting: Bool { logged != nil }

    /// The store could not do it.
    mutating func occurred(_ error: RequestError) {
        if logged != error {
            FirebaseLog.write(.error, "The local cache cannot \(what), and tries again: \(error.message)")
        }
        logged = error
    }

    /// The store has done it.
    mutating func ended() {
        if logged == nil { return }
        logged = nil
        FirebaseLog.write(.notice, "The local cache can \(what) again.")
    }
}
