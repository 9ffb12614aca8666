// sources: Sources/DocumentModel Sources/Basics Sources/FirestoreMessages
// sources: Tests/FirestoreMessagesTests/MessageReadingCheck.swift
// modules: Basics
// c: Sources/CFirestoreProto
//
// Fuzzes the messages that protobuf-c unpacks: the walk before it, the arena, and the way back.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMessageReading(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // The fuzzer's buffer lives for the call.
    let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count))
    if let violation = MessageReadingCheck.violation(bytes) { fatalError(violation) }
    return 0
}
