// sources: Sources/Pipelines Sources/QueryEngine Sources/Indexing Sources/StoreFormat Sources/Storage
// sources: Sources/StorageEngines Sources/EmbeddedEngine Sources/MemoryEngine Sources/CommitLog Sources/FileSystem
// sources: Sources/TextAnalysis Sources/Expressions Sources/DocumentModel Sources/Basics
// sources: Tests/PipelinesTests/Execution/PipelineCheck.swift
// modules: Basics DocumentModel Expressions Storage StoreFormat Indexing TextAnalysis QueryEngine
// modules: StorageEngines EmbeddedEngine MemoryEngine CommitLog FileSystem
// c: Sources/System/CRE2 Sources/System/CText
// flags: -I Sources/System/COpenSSL -I Sources/System/CZlib -lcrypto -lz -lre2 -lstdc++
// flags: -I Sources/System/CXXHash -I Sources/System/CPrefetch -I Sources/System/CLMDB -I Sources/System/CLinux
// flags: -lxxhash -llmdb -enable-experimental-feature SuppressedAssociatedTypes
//
// Fuzzes bytes as pipelines, which run over a database without documents, and over some rows.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPipelines(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let violation = PipelineCheck.violation(bytes) { fatalError(violation) }
    return 0
}
