// What tests check with. A test continues after a check that fails. These are functions: the compiler needs 1 ms for a
// call, and 12 ms for `#expect` (docs/decisions/0093-expectations-are-functions.md). `#expect(throws:)` checks errors.

package import Testing

/// Records an issue if the condition does not hold.
package func expect(
    _ condition: Bool, _ comment: @autoclosure () -> Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    if !condition { record("the condition does not hold", comment(), sourceLocation) }
}

/// Records an issue with both values if they are not equal.
package func expectEqual<Value: Equatable>(
    _ found: Value, _ expected: Value, _ comment: @autoclosure () -> Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    if !(found == expected) {
        record("\(String(reflecting: found)) is not \(String(reflecting: expected))", comment(), sourceLocation)
    }
}

/// Records an issue with the value if there is one.
package func expectNil<Value>(
    _ found: Value?, _ comment: @autoclosure () -> Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
) {
    if let found { record("\(String(reflecting: found)) is not nil", comment(), sourceLocation) }
}

private func record(_ failure: String, _ comment: Comment?, _ sourceLocation: SourceLocation) {
    Issue.record("\(failure)\(comment.map { ": \($0)" } ?? "")", sourceLocation: sourceLocation)
}
