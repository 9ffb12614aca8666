// sources: Sources/ManagedExport Sources/DocumentModel Sources/Basics Sources/DocumentJSON Sources/Storage
// sources: Sources/FileSystem Tests/ManagedExportTests/ManagedExportCheck.swift
// modules: Basics DocumentModel DocumentJSON Storage FileSystem
// flags: -I Sources/System/CLinux -enable-experimental-feature SuppressedAssociatedTypes
//
// Fuzzes bytes as files of a managed export.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzManagedExport(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let violation = ManagedExportCheck.violation(bytes) { fatalError(violation) }
    return 0
}
