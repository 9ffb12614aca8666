// sources: Sources/Basics Sources/Calls Sources/Connections/StreamTable.swift Sources/Connections/MessageAssembly.swift
// sources: Sources/Connections/ArrivalTime.swift Sources/HTTPProtocols/HTTP/HTTPHead.swift
// sources: Sources/HTTPProtocols/HTTP/HTTPStatus.swift Sources/HTTPProtocols/HTTP/HTTPRefusal.swift
// sources: Sources/HTTPProtocols/HTTP/HTTPReply.swift Sources/HTTPProtocols/HTTP/ReplyForm.swift
// sources: Sources/HTTPProtocols/HTTP2/HTTP2Callbacks.swift Sources/HTTPProtocols/HTTP2/HTTP2Limits.swift
// sources: Sources/HTTPProtocols/HTTP2/HTTP2Preface.swift Sources/HTTPProtocols/HTTP2/HTTP2Session.swift
// sources: Sources/HTTPProtocols/HTTP2/HTTP2Session+Answers.swift Sources/HTTPProtocols/HTTP2/HTTP2Session+HTTP.swift
// sources: Sources/HTTPProtocols/HTTP2/HTTP2Session+Requests.swift Sources/HTTPProtocols/HTTP2/HTTP2Stream.swift
// sources: Sources/HTTPProtocols/HTTP2/MessageEncoding.swift Sources/HTTPProtocols/HTTP2/MessageReader.swift
// sources: Sources/HTTPProtocols/HTTP/ForwardedFields.swift
// sources: Sources/HTTPProtocols/HTTP2/RequestFields.swift Sources/HTTPProtocols/HTTP2/StatusFields.swift
// sources: Tests/ConnectionTestSupport/TestProcedures.swift
// sources: Tests/HTTPProtocolsTests/HTTP2/HTTP2SessionCheck.swift
// modules: Basics Calls Connections
// flags: -ISources/System/CNGHTTP2 -ISources/System/CZlib -lnghttp2 -lz
//
// Fuzzes the HTTP/2 session with all that gRPC and plain HTTP do in it. Inputs are what follows the client's preface.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP2Session(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe HTTP2Preface.bytes + UnsafeRawBufferPointer(start: start, count: count)
    if let violation = HTTP2SessionCheck.violation(bytes.span.bytes) { fatalError(violation) }
    return 0
}
