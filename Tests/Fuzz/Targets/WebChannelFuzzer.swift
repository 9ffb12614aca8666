// sources: Sources/Basics Sources/HTTPProtocols/WebChannel/WebChannelSession.swift
// sources: Sources/HTTPProtocols/WebChannel/WebChannelFrame.swift
// sources: Sources/HTTPProtocols/WebChannel/WebChannelLimits.swift
// sources: Sources/HTTPProtocols/WebChannel/WebChannelRequest.swift
// sources: Tests/HTTPProtocolsTests/WebChannel/WebChannelCheck.swift
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
