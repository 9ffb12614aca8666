// Functions of points on the Earth.

internal import DocumentModel
internal import Expressions
internal import QueryEngine

enum GeoFunctions {
    static let all = [PipelineFunction("geo_distance", 2, .strict(distance))]

    /// The distance of two points in metres.
    private static let distance: FunctionBody = { (_, operands) throws(ExpressionError) in
        guard let left = point(operands[0]), let right = point(operands[1]) else {
            let other = point(operands[0]) == nil ? operands[0] : operands[1]
            throw .mismatch("geo_distance", "geo points", other)
        }
        return .double(GeoArea.distance(left, right))
    }

    private static func point(_ operand: Operand) -> GeoPointValue? {
        if case .geoPoint(let point) = operand { point } else { nil }
    }
}
