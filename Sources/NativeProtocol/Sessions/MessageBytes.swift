/// Where the bytes of a message that is complete stand.
enum MessageBytes: Equatable {
    /// In the frame just received, from this offset of its payload to the end.
    case inFrame(from: Int)
    /// In the session's `assembled`, because they came in parts.
    case assembled
}
