// sources: Sources/SecurityRules Sources/Expressions Sources/DocumentModel Sources/Basics Sources/DocumentJSON
// sources: Tests/SecurityRulesTests/Syntax/RulesCheck.swift
// modules: Basics DocumentModel DocumentJSON Expressions
// c: Sources/System/CRE2
// flags: -I Sources/System/COpenSSL -I Sources/System/CZlib -lcrypto -lz -lre2 -lstdc++
//
// Fuzzes texts as security rules and as conditions of rules, and requests checked by them.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSecurityRules(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let violation = RulesCheck.violation(bytes) { fatalError(violation) }
    return 0
}
