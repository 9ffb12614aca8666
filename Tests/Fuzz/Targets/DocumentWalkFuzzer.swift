// sources: Sources/DocumentModel Sources/Basics Tests/TestSupport/DocumentWalkCheck.swift
// modules: Basics
//
// Fuzzes everything that walks document bytes: validation, canonical form, lookup, order, keys, names.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDocumentWalk(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count))
    if let violation = DocumentWalkCheck.violation(bytes) { fatalError(violation) }
    return 0
}
