internal import Calls

/// Detects a client that has a loop to itself and makes one call at a time. Its commits may be synced on the loop's
/// thread.
struct LoneClientDetector {
    /// How long no other connection may have made a call.
    private static let milliseconds: UInt64 = 10

    private var last: ObjectIdentifier?
    private var since: UInt64 = 0
    private var hasCalls = false

    /// Records a call.
    @inline(__always)
    mutating func note(_ call: Call) {
        let carrier = ObjectIdentifier(call.carrier)
        // A second call before the loop waits: another client, or one that sends many at once.
        if hasCalls || last != carrier {
            last = carrier
            since = call.loop.nowMilliseconds
        }
        hasCalls = true
    }

    /// Whether the client of the call recorded last is alone.
    func isAlone(_ call: Call) -> Bool {
        last == ObjectIdentifier(call.carrier) && call.loop.nowMilliseconds >= since + Self.milliseconds
    }

    /// The loop has handled all that had come.
    mutating func newRound() { hasCalls = false }
}
