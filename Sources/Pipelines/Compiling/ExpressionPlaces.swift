// Where expressions stand in a pipeline, for errors.
//
//     The function add takes numbers, not string. (stage 2: select, field "v")

internal import Basics
internal import Expressions

/// The places of the expressions of one tree, in the order in which they were compiled.
struct ExpressionPlaces: Sendable {
    private var places: [(first: ExpressionID, text: String)] = []

    /// Says where the expressions from a node on stand.
    mutating func add(_ text: String, from first: ExpressionID) { places.append((first, text)) }

    /// The place of an expression; nil if none was said.
    subscript(expression: ExpressionID) -> String? {
        places.last { $0.first.index <= expression.index }?.text
    }
}

extension RequestError {
    /// The error with the place in the pipeline that it comes from, unless it has one.
    func placed(_ place: String?) -> RequestError {
        guard let place, !message.hasSuffix(")") || !message.contains(RequestError.placeStart) else { return self }
        return RequestError(code, "\(message) \(RequestError.placeStart)\(place))")
    }

    private static let placeStart = "(stage "
}
