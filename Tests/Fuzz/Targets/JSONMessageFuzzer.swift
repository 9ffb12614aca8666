// sources: Sources/DocumentModel Sources/Basics Sources/DocumentJSON Sources/FirestoreJSON
// sources: Tests/FirestoreJSONTests/JSON/JSONMessageCheck.swift
// modules: Basics DocumentJSON
// c: Sources/CFirestoreProto
//
// Fuzzes messages from JSON and to JSON.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSONMessage(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count))
    if let violation = JSONMessageCheck.violation(bytes) { fatalError(violation) }
    return 0
}
