// The state of one judgement.

internal import DocumentModel
internal import Expressions

/// The numbers of the inputs of expressions.
enum RulesInput {
    static let request = 0
    static let resource = 1
    static let auth = 2
    /// Members of `request` that are read without the whole.
    static let members = ["auth": auth, "method": 3, "path": 4, "time": 5, "resource": 6, "query": 7]
    /// The wildcards of the match, from the first one on.
    static let firstCapture = 16
}

/// Supplies requests and documents to expressions, and counts document accesses.
final class RulesEvaluation: EvaluationHost {
    let request: RulesRequest
    private let access: any DocumentAccess
    private let ledger: AccessLedger?

    /// The values of the wildcards of the match that is judged.
    var captures: [Operand] = []
    /// The documents of a query that is judged, in the place of a known document.
    var queried: (any UnprovenValue)?
    /// A document that a query names by `__name__`: its path below `documents`.
    var named: [String]?

    /// What was read, each once, and what was found. There are few, so that they are looked for one after the other.
    private(set) var reads: [DocumentRead] = []
    private var answers: [DocumentAnswer] = []
    private(set) var debugLines: [String] = []
    private var calls: [AccessLedger.Call] = []
    /// The calls that the ledger did not have before.
    private var newCalls: [AccessLedger.Call] = []
    private var resource: Operand?
    private var newResource: Operand?
    private(set) var hasReadNewResource = false
    /// Whether nothing was evaluated that depends on more than the caller.
    private(set) var dependsOnCallerAlone = true

    /// Lines of `debug()` that are kept, and characters of each.
    private static let debugLinesMax = 100
    private static let debugCharactersMax = 1_000

    init(_ request: RulesRequest, access: any DocumentAccess, ledger: AccessLedger?) {
        self.request = request
        self.access = access
        self.ledger = ledger
    }

    // MARK: Inputs

    func input(_ number: Int) throws(ExpressionError) -> Operand {
        if number != RulesInput.auth { dependsOnCallerAlone = false }
        switch number {
        case RulesInput.request: return .map(try requestMap())
        case RulesInput.resource: return try currentDocument()
        case RulesInput.auth: return request.auth
        case 3: return .string(request.method.rawValue)
        case 4: return .object(RulesPath(database: request.database, below: named ?? request.path))
        case 5: return .timestamp(request.time)
        case 6: return try newDocument()
        case 7:
            if request.method != .list { throw .undefinedProperty("query") }
            return .map(QueryMap.map(of: request.query, collection: request.path.last ?? ""))
        default: return captures[number - RulesInput.firstCapture]
        }
    }

    private func requestMap() throws(ExpressionError) -> OperandMap {
        var entries: [OperandMap.Entry] = []
        for (name, number) in RulesInput.members {
            if name == "resource", case .none = request.newResource { continue }
            if name == "query", request.method != .list { continue }
            entries.append((name, try input(number)))
        }
        return OperandMap(entries)
    }

    private func currentDocument() throws(ExpressionError) -> Operand {
        if let queried { return .object(queried) }
        if let resource { return resource }
        let path = named ?? request.path
        let operand: Operand
        if named == nil, case .known(let fields) = request.resource {
            operand = fields.map { document(at: path, $0) } ?? .null
        } else {
            switch try read(DocumentRead(DocumentAddress(path), .before)) {
            case .found(let fields): operand = document(at: path, fields)
            // A query that names a document has no results if there is none; its rules cannot read it.
            default:
                if named != nil { throw .failed("Variable read error. Variable: [resource].") }
                operand = .null
            }
        }
        if named == nil { resource = operand }
        return operand
    }

    private func newDocument() throws(ExpressionError) -> Operand {
        hasReadNewResource = true
        if let newResource { return newResource }
        let operand: Operand
        switch request.newResource {
        case .none: throw .undefinedProperty("resource")
        case .deleted: operand = .null
        case .fields(let fields): operand = document(at: request.path, fields)
        }
        newResource = operand
        return operand
    }

    /// A document as rules see it: `data`, `id` and `__name__`.
    private static func document(_ path: RulesPath, id: String, _ fields: [UInt8]) -> Operand {
        .map(
            OperandMap(sorted: [
                ("__name__", .object(path)), ("data", .encodedMap(EncodedSlice(documentFields: fields))),
                ("id", .string(id)),
            ]))
    }

    private func document(at path: [String], _ fields: [UInt8]) -> Operand {
        Self.document(RulesPath(database: request.database, below: path), id: path.last ?? "", fields)
    }

    static func root(_ database: String) -> [String] { ["databases", database, "documents"] }

    // MARK: The language

    func member(_ name: String, of operand: Operand) throws(ExpressionError) -> Operand {
        try Subscripts.member(name, of: operand)
    }

    func truth(of operand: Operand) throws(ExpressionError) -> Bool {
        if case .boolean(let value) = operand { return value }
        if operand.unproven != nil { throw .unproven }
        throw .failed("Type error. Received: [\(RulesType(operand).rawValue)] Expected: [bool].")
    }

    func key(_ operand: Operand) throws(ExpressionError) -> String {
        if case .string(let key) = operand { return key }
        if operand.unproven != nil { throw .unproven }
        throw .failed("Type error. Received: [\(RulesType(operand).rawValue)] Expected: [string].")
    }

    func list(_ elements: [Operand]) -> Operand {
        elements.contains { $0.unproven != nil } ? .object(UnprovenList(elements)) : .list(elements)
    }

    func map(_ map: OperandMap) throws(ExpressionError) -> Operand {
        if map.entries.contains(where: { $0.value.unproven != nil }) { throw .unproven }
        return .map(map)
    }

    // MARK: Documents

    private func read(_ read: DocumentRead) throws(ExpressionError) -> DocumentAnswer {
        let answer: DocumentAnswer
        if let known = reads.firstIndex(of: read) {
            answer = answers[known]
        } else {
            answer = access.document(read)
            reads.append(read)
            answers.append(answer)
        }
        if case .pending = answer {
            throw ExpressionError(.pending, "The document \(read.address) is not read yet.")
        }
        return answer
    }

    /// What was asked for and is not known yet.
    var needed: [DocumentRead] {
        zip(reads, answers).compactMap { read, answer in if case .pending = answer { read } else { nil } }
    }

    /// Reads the document of `get`, `exists` and so on.
    ///
    /// - Returns: the document, null if the commit deletes it, or nil if there is none.
    func access(
        _ path: RulesPath, _ state: DocumentState, asksExistence: Bool
    ) throws(ExpressionError) -> Operand? {
        dependsOnCallerAlone = false
        let named = try AddressedDocument(path, database: request.database)
        // No document has such a name.
        guard let address = named.address else { return nil }
        try count(AccessLedger.Call(asksExistence: asksExistence, address: address))
        // Before a commit and without one both states are the same.
        let isWrite = request.method != .get && request.method != .list
        switch try read(DocumentRead(address, isWrite ? state : .before)) {
        case .found(let fields): return Self.document(path.unnamed, id: named.id, fields)
        case .deleted: return .null
        default: return nil
        }
    }

    private func count(_ call: AccessLedger.Call) throws(ExpressionError) {
        if calls.contains(call) { return }
        let max = request.method == .list ? RulesLimits.accessCallsOfMany : RulesLimits.accessCalls
        let isNew = ledger?.has(call) == false
        guard calls.count < max, ledger?.count(call) ?? true else {
            throw .failed("Service call error: more than \(max) documents are read.")
        }
        calls.append(call)
        if isNew { newCalls.append(call) }
    }

    /// Takes back what the judgement has counted: it is made again, with other calls.
    func forgetCalls() {
        ledger?.forget(newCalls)
        newCalls = []
    }

    func debug(_ operand: Operand) {
        // Each judgement has its lines.
        dependsOnCallerAlone = false
        if debugLines.count < Self.debugLinesMax {
            debugLines.append(OperandText.text(operand, max: Self.debugCharactersMax))
        }
    }
}
