/// Every limit of WebChannel sessions, with its default and its reason.
package struct WebChannelLimits: Sendable {
    /// Open sessions; a further one gets RESOURCE_EXHAUSTED. A page has two.
    package var sessionsMax = 10_000
    /// Open sessions of one network, an IPv4 address or an IPv6 /64; a further one gets RESOURCE_EXHAUSTED. 0 sets no
    /// limit.
    package var networkSessionsMax = 0
    /// Bytes that a session keeps until its page has acknowledged them. At this mark the server ends the response of
    /// the back channel, and the page acknowledges with its next request.
    package var unacknowledgedBytesMax = 1 << 20
    /// The same while a session has no back channel: a page that is gone costs no more.
    package var unreadBytesMax = 64 << 10
    /// Bytes that all sessions hold; the session that exceeds it ends with RESOURCE_EXHAUSTED.
    package var bytesTotalMax = 1 << 30
    /// Messages of a page that wait for the service, or for a message before them; a session with more ends. A page
    /// sends a message for each of its listeners when it reconnects.
    package var waitingMessagesMax = 10_000
    /// Bytes of these messages.
    package var waitingBytesMax = 16 << 20
    /// A session ends when it has had no back channel and no request for so long.
    package var idleMilliseconds: UInt64 = 60_000
    /// Pause after which the back channel carries a no-op, and the longest hold of a long poll. The page is informed of
    /// it and gives up a back channel that is silent for 1.5 times as long.
    package var keepAliveMilliseconds: UInt64 = 30_000

    package init() {}
}
