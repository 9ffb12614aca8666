// sources: Sources/Basics Sources/TLS Tests/TLSTestSupport Tests/TLSTests/TLSSessionCheck.swift
// modules: Basics
// flags: -ISources/System/COpenSSLTLS -lssl -lcrypto
//
// Fuzzes the sessions of both sides, with a stranger's bytes and with changed flights.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTLSSession(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let violation = TLSSessionCheck.violation(bytes) { fatalError(violation) }
    return 0
}
