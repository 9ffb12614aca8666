// sources: Sources/Basics Sources/Calls Sources/Connections/StreamTable.swift Sources/Connections/MessageAssembly.swift
// sources: Sources/Connections/ArrivalTime.swift
// sources: Sources/NativeProtocol/Frames Sources/NativeProtocol/Sessions
// sources: Tests/ConnectionTestSupport/TestProcedures.swift Tests/NativeProtocolTests/Frames/FrameParserCheck.swift
// modules: Basics Calls Connections
//
// Fuzzes the frame decoder and the sessions of both sides.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFrameParser(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count))
    if let violation = FrameParserCheck.violation(bytes) { fatalError(violation) }
    return 0
}
