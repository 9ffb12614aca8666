// A value handed over as `Any` that no document can hold.

/// Why data given as `[String: Any]` cannot be written. The client treats it as a programming error.
package struct InvalidUserData: Error, Equatable, CustomStringConvertible {
    /// What is wrong, with the field where it was found.
    package let message: String

    package init(_ message: String) {
        self.message = message
    }

    package var description: String { message }
}
