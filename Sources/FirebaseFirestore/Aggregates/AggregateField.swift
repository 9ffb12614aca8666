// What an aggregation computes.

import DocumentCoding
import DocumentModel
public import Foundation

/// One total over the results of a query. Equal fields compute the same. Immutable and thread-safe.
public final class AggregateField: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the property is a constant of a Sendable type.

    enum Operation: Hashable, Sendable, CustomStringConvertible {
        case count
        case sum(DocumentModel.FieldPath)
        case average(DocumentModel.FieldPath)

        var description: String {
            switch self {
            case .count: "count()"
            case .sum(let path): "sum(\(path))"
            case .average(let path): "avg(\(path))"
            }
        }
    }
    let operation: Operation

    private init(_ operation: Operation) { self.operation = operation }

    /// The number of documents.
    @discardableResult
    public class func count() -> AggregateField { AggregateField(.count) }

    /// The sum of a field's numbers; other values count as nothing.
    @discardableResult
    public class func sum(_ field: String) -> AggregateField { sum(.ofDotted(field)) }

    /// The sum of a field's numbers; other values count as nothing.
    @discardableResult
    public class func sum(_ path: DocumentCoding.FieldPath) -> AggregateField {
        AggregateField(.sum(enforcing { () throws(RuleViolation) in try path.model() }))
    }

    /// The mean of a field's numbers; other values count as nothing.
    @discardableResult
    public class func average(_ field: String) -> AggregateField { average(.ofDotted(field)) }

    /// The mean of a field's numbers; other values count as nothing.
    @discardableResult
    public class func average(_ path: DocumentCoding.FieldPath) -> AggregateField {
        AggregateField(.average(enforcing { () throws(RuleViolation) in try path.model() }))
    }

    public override func isEqual(_ object: Any?) -> Bool { (object as? AggregateField)?.operation == operation }
    public override var hash: Int { operation.hashValue }
    public override var description: String { "<AggregateField: \(operation)>" }
}
