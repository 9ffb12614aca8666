// sources: Sources/Basics Sources/DocumentModel Sources/DocumentJSON Sources/Storage Sources/FileSystem
// sources: Sources/Identity Tests/IdentityTests/CredentialCheck.swift
// modules: Basics DocumentModel DocumentJSON Storage FileSystem
// flags: -ISources/System/COpenSSL -ISources/System/CLinux -enable-experimental-feature SuppressedAssociatedTypes
//
// Fuzzes tokens, keys of issuers and files of principals.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCredential(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let violation = CredentialCheck.violation(bytes) { fatalError(violation) }
    return 0
}
