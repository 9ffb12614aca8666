// sources: Sources/Basics Sources/Transport/Frames Sources/Transport/Sessions Sources/Transport/HTTP/HTTPHead.swift
// Sources/Transport/HTTP/HTTPStatus.swift Sources/Transport/HTTP/HTTPRefusal.swift
// Sources/Transport/HTTP/HTTPReply.swift Sources/Transport/HTTP/ReplyForm.swift
// Sources/Transport/HTTP2/HTTP2Callbacks.swift Sources/Transport/HTTP2/HTTP2Limits.swift
// Sources/Transport/HTTP2/HTTP2Session.swift Sources/Transport/HTTP2/HTTP2Session+Answers.swift
// Sources/Transport/HTTP2/HTTP2Session+HTTP.swift Sources/Transport/HTTP2/HTTP2Session+Requests.swift
// Sources/Transport/HTTP2/HTTP2Stream.swift Sources/Transport/HTTP2/MessageEncoding.swift
// Sources/Transport/HTTP2/MessageReader.swift Sources/Transport/HTTP2/RequestFields.swift
// Sources/Transport/HTTP2/StatusFields.swift Sources/Transport/HTTP2/TokenBucket.swift
// Sources/Transport/Server/RPCTable.swift Tests/TransportTests/Live/TestProcedures.swift
// Tests/TransportTests/HTTP2/HTTP2SessionCheck.swift modules: Basics flags: -ISources/System/CNGHTTP2
// -ISources/System/CZlib -lnghttp2 -lz
//
// Fuzzes the HTTP/2 session with all that gRPC and plain HTTP do in it. Inputs are what follows the client's preface.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP2Session(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe Preface.http2 + UnsafeRawBufferPointer(start: start, count: count)
    if let violation = HTTP2SessionCheck.violation(bytes.span.bytes) { fatalError(violation) }
    return 0
}
