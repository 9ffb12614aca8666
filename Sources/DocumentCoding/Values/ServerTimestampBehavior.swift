// What a server timestamp that the server has not yet set reads as.

/// How a read treats `FieldValue.serverTimestamp()` of a write that is not yet acknowledged.
public enum ServerTimestampBehavior: Int, Sendable {
    /// As null.
    case none
    /// As the local time at which the write was made.
    case estimate
    /// As the last value that the server acknowledged, of whatever type, or null if there was none.
    case previous
}
