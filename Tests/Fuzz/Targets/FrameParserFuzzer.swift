// sources: Sources/Basics Sources/Transport/Frames Sources/Transport/Sessions Sources/Transport/Server/RPCTable.swift
// Tests/TransportTests/Live/TestProcedures.swift Tests/TransportTests/Frames/FrameParserCheck.swift modules: Basics
//
// Fuzzes the frame decoder and the sessions of both sides.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFrameParser(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count))
    if let violation = FrameParserCheck.violation(bytes) { fatalError(violation) }
    return 0
}
