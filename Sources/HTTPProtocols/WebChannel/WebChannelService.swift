package import Basics
package import Calls
package import EventLoops

/// What the calls of WebChannel sessions reach: the service of a loop, and the JSON form of its messages. Used on that
/// loop's thread.
package protocol WebChannelService: AnyObject {
    /// Begins a call with its first message, which is lent for the call of this function.
    func begin(_ call: Call, _ message: RawSpan)
    /// A call ended without a reply of the service. Its stream was cancelled.
    func abandoned(_ reason: CancellationReason)
    /// A session has ended.
    func ended(_ session: WebChannelConnection)

    /// Appends the part of a first message that names the database. What the page's message says counts before it.
    ///
    /// - Parameter name: from the URL; may be empty.
    func appendDatabase(_ name: String, to output: inout ByteBuffer)
    /// Appends the message that the JSON text of a page spells, and gives all to `done`: now, or for a large one later
    /// on the thread of the loop, as long as it is wanted.
    ///
    /// - Parameter done: may get INVALID_ARGUMENT or RESOURCE_EXHAUSTED.
    func readMessage(
        _ json: RawSpan, onto output: consuming ByteBuffer, on loop: EventLoop, while isWanted: @escaping () -> Bool,
        _ done: @escaping (_ message: consuming ByteBuffer, _ error: RequestError?) -> Void)
    /// Appends a response message as JSON.
    ///
    /// - Throws: INTERNAL.
    func appendJSON(_ message: RawSpan, to output: inout ByteBuffer) throws(RequestError)
}
