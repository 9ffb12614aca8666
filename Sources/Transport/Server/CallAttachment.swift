// What a connection keeps with a call that is not answered at once.

struct CallAttachment {
    /// Where the messages of a streaming reply come from.
    var source: (any ResponseSource)?
    /// What the handler left here.
    var context: AnyObject?
    var deadlineTimer: EventLoop.Timer?
    /// Loop time at which the deadline passes; nil without one.
    var deadline: UInt64?
    /// The source has nothing, until `resume`.
    var isWaiting = false
    /// `resume` came while the source was being asked.
    var resumedEarly = false
    /// Loop time since which the client's window has been shut to the source; nil while it is open.
    var stalledSince: UInt64?
    /// The source stands in the connection's list of those to ask.
    var isReady = false
}
