/// How many messages each side of a call sends.
package enum RPCShape: Sendable {
    /// One message each way.
    case unary
    /// One message from the client, any number from the server.
    case serverStreaming
    /// Any number each way.
    case bidirectional
}

/// A remote procedure as a transport sees it: a number and a shape. What it means is the business of the layers above.
package struct RPC: Hashable, Sendable {
    /// Its number in the native protocol; never zero.
    package let number: UInt16
    package let shape: RPCShape

    package init(number: UInt16, shape: RPCShape) {
        self.number = number
        self.shape = shape
    }
}
