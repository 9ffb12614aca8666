// Nearest-neighbour search: which documents' vectors lie closest to a given one. Rules: semantics page, section 5.
//
// Exact: every document that passes the filter is measured, and the closest are kept as rows of a sorted query whose
// key is the distance, then what the query is ordered by.

import Basics
import DocumentModel
internal import Indexing

/// The last stage of a vector query.
struct NearestSearch: Sendable, Equatable {
    /// Where the vectors are, and how long those are that can be measured.
    let part: IndexShape.VectorPart
    private let vector: [Double]
    /// The square of the vector's length, added up as those of documents' vectors are.
    private let squaredNorm: Double
    private let measure: FindNearest.DistanceMeasure
    let limit: Int
    private let resultField: FieldPath?
    private let threshold: Double?
    /// The order of equal distances.
    private let order: [Order]

    /// Reads the stage.
    ///
    /// - Parameter order: that of the query, by which equal distances are ordered.
    /// - Throws: `INVALID_ARGUMENT` for an operand that is not a vector, a threshold that is not a finite number, or a
    ///   query with cursors, a limit or an offset.
    init(_ stage: FindNearest, of query: StructuredQuery, in order: EffectiveOrder) throws(RequestError) {
        guard let elements = (try? Value(wire: stage.queryVector.span))?.vectorElements else {
            throw .invalidArgument("Query Value must be of type vector.")
        }
        if elements.isEmpty {
            throw .invalidArgument("The query_vector of find_nearest must have at least one dimension.")
        }
        if let threshold = stage.distanceThreshold, !threshold.isFinite {
            throw .invalidArgument("distanceThreshold must be a finite number.")
        }
        if query.startAt != nil || query.endAt != nil {
            throw .invalidArgument("A cursor cannot be used with FindNearest")
        }
        if query.limit != nil { throw .invalidArgument("A query limit cannot be used with FindNearest") }
        if query.offset != 0 { throw .invalidArgument("A query offset cannot be used with FindNearest") }
        if stage.vectorField.isDocumentName {
            throw .invalidArgument("find_nearest cannot use __name__ as a field.")
        }
        part = IndexShape.VectorPart(field: stage.vectorField, dimension: elements.count)
        vector = elements
        squaredNorm = VectorKernel.squaredNorm(of: elements)
        measure = stage.distanceMeasure
        limit = Int(stage.limit)
        resultField = stage.distanceResultField.map { FieldPath(fieldName: $0) }
        threshold = stage.distanceThreshold
        self.order = order.components
    }

    /// Whether results carry their distance.
    var addsField: Bool { resultField != nil }

    /// How far a document lies from the query's vector.
    ///
    /// - Returns: nil if the document has no vector of the same dimension there, or if its distance lies beyond the
    ///   threshold. Not a number is the cosine of a zero vector, which lies beyond every threshold.
    func distance(of fields: RawSpan) -> Double? {
        guard let elements = part.elementBytes(in: fields) else { return nil }
        let kernel = VectorKernel(elements, vector)
        let distance =
            switch measure {
            case .euclidean: kernel.squaredDistance().squareRoot()
            case .cosine: 1 - kernel.dotProduct() / productOfLengths(squaredNorm, kernel.squaredNorm())
            case .dotProduct: kernel.dotProduct()
            }
        guard let threshold else { return distance }
        return (measure == .dotProduct ? distance >= threshold : distance <= threshold) ? distance : nil
    }

    /// The product of two lengths, given by their squares. One root of both together is that of a square if they are
    /// equal, and thus exact: the distance of a vector to itself is 0.
    private func productOfLengths(_ left: Double, _ right: Double) -> Double {
        let product = left * right
        return product.isNormal ? product.squareRoot() : left.squareRoot() * right.squareRoot()
    }

    /// Appends the sort key: closest first, which for dot products is the largest first, and not a number last; then in
    /// the order of the query.
    ///
    /// - Returns: false if the row lacks an ordered field and so is not a result; the writer then holds a part.
    func appendKey(_ distance: Double, of row: borrowing QueryRow, into writer: inout ByteBuffer) -> Bool {
        writer.append(byte: distance.isNaN ? 1 : 0)
        if !distance.isNaN {
            let start = writer.count
            KeyEncoding.append(number: .double(distance), into: &writer)
            if measure == .dotProduct { writer.invertBits(from: start) }
        }
        return SortKey.append(path: row.path, fields: row.fields, order: order, into: &writer)
    }

    /// The document's fields with the distance added, in the place of a field of that name.
    func fields(_ fields: RawSpan, with distance: Double) -> [UInt8] {
        guard let resultField else { return [UInt8](copying: fields) }
        // There are several kinds of not a number; stored documents have one.
        let value = Value.double(distance.isNaN ? .nan : distance).wireBytes
        var writer = ByteBuffer(capacity: fields.byteCount + 64)
        let edits = FieldEdits([FieldEdit(path: resultField, value: 0..<value.count)])
        // Stored documents are well formed: nothing throws.
        guard (try? edits.apply(to: fields, values: value.byteSpan, into: &writer)) != nil else {
            return [UInt8](copying: fields)
        }
        return writer.copyBytes()
    }
}

extension NearestSearch: CustomStringConvertible {
    var description: String {
        let name =
            switch measure {
            case .euclidean: "EUCLIDEAN"
            case .cosine: "COSINE"
            case .dotProduct: "DOT_PRODUCT"
            }
        let bound = threshold.map { ", \(measure == .dotProduct ? ">=" : "<=") \($0)" } ?? ""
        let result = resultField.map { ", as \($0)" } ?? ""
        return "\(limit) to \(part.field) by \(name) of \(vector.count) dimensions\(bound)\(result)"
    }
}
