// What became of one write: `google.firestore.v1.WriteResult`.

/// The answer to one write of a commit.
package struct WriteResult: Sendable, Equatable {
    /// When the document last changed, in microseconds since 1970; nil after a delete or a verify.
    /// A write that changed nothing reports the time of the change before it.
    package var updateMicroseconds: UInt64?

    /// One value for each transform of the write, in order; null for the two array transforms.
    package var transformResults: [EncodedValue]

    package init(updateMicroseconds: UInt64?, transformResults: [EncodedValue] = []) {
        self.updateMicroseconds = updateMicroseconds
        self.transformResults = transformResults
    }
}
