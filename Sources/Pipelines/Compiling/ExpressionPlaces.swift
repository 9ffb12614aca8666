// Where expressions stand in a pipeline, for errors.
//
//     The function add takes numbers, not string. (stage 2: select, field "v")

internal import Basics
internal import Expressions

/// A place in a pipeline. Most are never shown, so the text is made when an error needs it.
struct PipelinePlace: Sendable {
    /// The stages around it, the outermost first.
    private var stages: [(number: Int, name: String)] = []
    private var field: String?

    /// The place of a stage in a pipeline that stands here.
    func stage(_ number: Int, _ name: String) -> PipelinePlace {
        var place = self
        place.stages.append((number, name))
        return place
    }

    /// The place of another stage of the same pipeline.
    func beside(_ number: Int, _ name: String) -> PipelinePlace {
        var place = self
        place.stages[place.stages.count - 1] = (number, name)
        return place
    }

    /// The place of a field of the stage.
    func field(_ name: String) -> PipelinePlace {
        var place = self
        place.field = name
        return place
    }

    /// As in `2: union, stage 1: select, field "v"`.
    var text: String {
        let path = stages.map { "\($0.number): \($0.name.prefix(40))" }.joined(separator: ", stage ")
        return field.map { "\(path), field \"\($0.prefix(100))\"" } ?? path
    }
}

/// The places of the expressions of one tree, in the order in which they were compiled.
struct ExpressionPlaces: Sendable {
    private var places: [(first: ExpressionID, place: PipelinePlace)] = []

    /// Says where the expressions from a node on stand.
    mutating func add(_ place: PipelinePlace, from first: ExpressionID) { places.append((first, place)) }

    /// The place of an expression; nil if none was said.
    subscript(expression: ExpressionID) -> PipelinePlace? {
        places.last { $0.first.index <= expression.index }?.place
    }
}

extension RequestError {
    /// The error with the place in the pipeline that it comes from, unless it has one.
    func placed(_ place: PipelinePlace?) -> RequestError {
        guard let place, !message.hasSuffix(")") || !message.contains(RequestError.placeStart) else { return self }
        return RequestError(code, "\(message) \(RequestError.placeStart)\(place.text))")
    }

    private static let placeStart = "(stage "
}
