// sources: Sources/Basics Sources/HTTPProtocols/HTTP1/HTTP1Parser.swift Sources/HTTPProtocols/HTTP/HTTPHead.swift
// sources: Sources/HTTPProtocols/HTTP1/HTTP1Violation.swift Sources/HTTPProtocols/HTTP/HTTPStatus.swift
// sources: Sources/HTTPProtocols/HTTP/HTTPRefusal.swift Tests/HTTPProtocolsTests/HTTP1/HTTP1ParserCheck.swift
// modules: Basics
//
// Fuzzes the HTTP/1.1 parser.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP1Parser(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count))
    if let violation = HTTP1ParserCheck.violation(bytes) { fatalError(violation) }
    return 0
}
