package import Calls
package import HTTPProtocols

/// What serves the clients of one loop.
package struct LoopServices {
    package var calls: any ServiceHandler
    /// Answers HTTP requests that are not gRPC calls; nil where they are refused.
    package var http: (any HTTPHandler)?

    package init(calls: any ServiceHandler, http: (any HTTPHandler)? = nil) {
        self.calls = calls
        self.http = http
    }
}
