// Why an entity cannot become a document.

internal import DocumentModel

/// What is wrong with one entity: damage, or something that Firestore lacks. Other entities are not affected.
package struct EntityProblem: Error, Equatable, CustomStringConvertible {
    /// A clause for people.
    package let reason: String
    /// The property, with dots before those of maps; empty if it is the entity itself.
    package private(set) var property = ""

    init(_ reason: String) { self.reason = reason }

    init(_ invalid: InvalidDocument) {
        reason = invalid.reason.text
        property = invalid.fieldPath
    }

    /// The same within the property of that name.
    func within(_ name: RawSpan) -> EntityProblem {
        var problem = self
        let name = String(repairingUTF8: name.extracting(first: 200))
        problem.property = property.isEmpty ? name : "\(name).\(property)"
        return problem
    }

    package var description: String { property.isEmpty ? reason : "property \(property): \(reason)" }
}
