// sources: Sources/DocumentModel Sources/Basics Sources/DocumentJSON Tests/DocumentJSONTests/JSONLineCheck.swift
// modules: Basics DocumentJSON
//
// Fuzzes lines of JSON to documents and back.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSONLine(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let violation = JSONLineCheck.violation(bytes) { fatalError(violation) }
    return 0
}
