/// Where tests make file operations fail.
package struct FaultInjection: Sendable {
    private let fault: (@Sendable (FileOperation) -> Int32)?

    package init(fault: (@Sendable (FileOperation) -> Int32)?) { self.fault = fault }

    /// Whether a test may make operations fail.
    package var isSet: Bool { fault != nil }

    /// Throws what the operating system would have answered, if a test wants so.
    package func check(_ operation: FileOperation, file: String) throws(StorageError) {
        guard let fault else { return }
        let status = fault(operation)
        if status != 0 { throw .system(status, "injected fault in \(operation)", file: file) }
    }
}
