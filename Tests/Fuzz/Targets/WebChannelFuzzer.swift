// sources: Sources/Basics Sources/HTTPProtocols/WebChannel/WebChannelSession.swift Sources/HTTPProtocols/WebChannel/WebChannelFrame.swift Sources/HTTPProtocols/WebChannel/WebChannelLimits.swift Sources/HTTPProtocols/WebChannel/WebChannelRequest.swift Tests/HTTPProtocolsTests/WebChannel/WebChannelCheck.swift
// modules: Basics
//
// Fuzzes WebChannel: the parser of requests, and a session under a page whose requests and responses get lost.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzWebChannel(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count))
    if let violation = WebChannelCheck.violation(bytes) { fatalError(violation) }
    return 0
}
