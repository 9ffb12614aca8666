// Sentinels: values that tell the server to compute something instead of storing what the client sends.

public import Foundation

/// A sentinel that stands for a value the server computes, or for the deletion of a field.
///
/// Sentinels may replace the value of a field, in maps at any depth, but not inside arrays.
/// `delete()` is for updates and merges only.
public final class FieldValue: NSObject, Encodable, @unchecked Sendable {
    // Unchecked because `NSObject` is not Sendable and the operands are `Any`: the reference is constant, and callers
    // of `arrayUnion` and `arrayRemove` hand over values that they do not change any more, as the SDK demands.

    /// What the server is asked to do.
    package enum Operation {
        case delete
        case serverTimestamp
        case arrayUnion([Any])
        case arrayRemove([Any])
        case increment(Operand)
        case minimum(Operand)
        case maximum(Operand)
    }

    /// A number that keeps its kind.
    package enum Operand: Equatable, Sendable {
        case integer(Int64)
        case double(Double)
    }

    package let operation: Operation

    private init(_ operation: Operation) {
        self.operation = operation
    }

    private static let deleteSentinel = FieldValue(.delete)
    private static let serverTimestampSentinel = FieldValue(.serverTimestamp)

    /// Deletes the field. For `updateData` and `setData(merge: true)`.
    @discardableResult
    public static func delete() -> FieldValue { deleteSentinel }

    /// Sets the field to the time of the commit.
    @discardableResult
    public static func serverTimestamp() -> FieldValue { serverTimestampSentinel }

    /// Appends the elements that the stored array lacks. A stored value that is not an array is replaced.
    @discardableResult
    public static func arrayUnion(_ elements: [Any]) -> FieldValue { FieldValue(.arrayUnion(elements)) }

    /// Removes all elements equal to one of these. A stored value that is not an array is replaced by an empty one.
    @discardableResult
    public static func arrayRemove(_ elements: [Any]) -> FieldValue { FieldValue(.arrayRemove(elements)) }

    /// Adds to a stored number; integers saturate. A stored value that is not a number is replaced by the operand.
    @discardableResult
    public static func increment(_ operand: Int64) -> FieldValue { FieldValue(.increment(.integer(operand))) }

    /// Adds to a stored number; the result is a double. A stored value that is not a number is replaced by the operand.
    @discardableResult
    public static func increment(_ operand: Double) -> FieldValue { FieldValue(.increment(.double(operand))) }

    /// Keeps the smaller of the stored number and the operand; equal numbers keep the stored one.
    @discardableResult
    public static func minimum(_ operand: Int64) -> FieldValue { FieldValue(.minimum(.integer(operand))) }

    /// Keeps the smaller of the stored number and the operand; equal numbers keep the stored one.
    @discardableResult
    public static func minimum(_ operand: Double) -> FieldValue { FieldValue(.minimum(.double(operand))) }

    /// Keeps the larger of the stored number and the operand; equal numbers keep the stored one.
    @discardableResult
    public static func maximum(_ operand: Int64) -> FieldValue { FieldValue(.maximum(.integer(operand))) }

    /// Keeps the larger of the stored number and the operand; equal numbers keep the stored one.
    @discardableResult
    public static func maximum(_ operand: Double) -> FieldValue { FieldValue(.maximum(.double(operand))) }

    /// A vector of the given elements: a value, not a sentinel.
    @discardableResult
    public static func vector(_ array: [Double]) -> VectorValue { VectorValue(array) }

    /// A vector of the given elements, widened to doubles.
    @discardableResult
    public static func vector(_ array: [Float]) -> VectorValue { VectorValue(array.map(Double.init)) }

    /// The method that made this sentinel, for messages.
    package var methodName: String {
        switch operation {
        case .delete: "FieldValue.delete()"
        case .serverTimestamp: "FieldValue.serverTimestamp()"
        case .arrayUnion: "FieldValue.arrayUnion()"
        case .arrayRemove: "FieldValue.arrayRemove()"
        case .increment: "FieldValue.increment()"
        case .minimum: "FieldValue.minimum()"
        case .maximum: "FieldValue.maximum()"
        }
    }

    public override var description: String { "<\(methodName)>" }

    /// Only Firestore's encoder knows sentinels, and takes them before they get here.
    ///
    /// - Throws: `FirestoreEncodingError.encodingIsNotSupported`, always.
    public func encode(to encoder: any Encoder) throws {
        throw FirestoreEncodingError.encodingIsNotSupported(
            "FieldValue values can only be encoded with Firestore.Encoder")
    }
}
