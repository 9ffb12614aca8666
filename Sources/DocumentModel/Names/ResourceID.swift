package import Basics

/// What can be wrong with a resource name.
package enum NameProblem: UInt8, Error, Sendable {
    case notAResourceName
    case emptyID
    case idTooLong
    case dotID
    case reservedID
    case invalidUTF8
    case nameTooLong
    case tooDeep
    case notADocument
    case notACollection

    /// The rule as a sentence for people.
    package var text: String {
        switch self {
        case .notAResourceName:
            "it must look like projects/{project}/databases/{database}/documents/{path}"
        case .emptyID: "an id is empty"
        case .idTooLong: "an id is longer than \(Limits.idBytes) bytes"
        case .dotID: "an id cannot be . or .."
        case .reservedID: "ids matching __.*__ are reserved"
        case .invalidUTF8: "it is not valid UTF-8"
        case .nameTooLong: "it is longer than \(Limits.documentNameBytes) bytes"
        case .tooDeep: "it lies deeper than \(Limits.collectionDepth) collections"
        case .notADocument: "it must have an even number of segments below documents, at least two"
        case .notACollection: "it must have an odd number of segments below documents"
        }
    }
}

/// How strictly ids are checked.
package enum NameRules: Sendable {
    /// The rules for names and values that a request writes or reads. Source: semantics page, sections 1 and 13.
    case request
    /// The rules for names and values that are stored already. Earlier versions accepted some that a request may not
    /// name any more: collection ids `__id<n>__`, the document id `__id0__`, vectors with NaN or inside arrays.
    case stored
    /// Reserved ids pass: for references in cursors and filters, which may name documents that cannot exist.
    case query
}

/// The rules of collection and document ids, checked on UTF-8 bytes.
package enum ResourceID {
    /// Judges one id; nil means that it may be used. UTF-8 is checked with the whole name.
    @usableFromInline
    package static func problem(_ id: RawSpan, isCollection: Bool, rules: NameRules) -> NameProblem? {
        let count = id.byteCount
        if count == 0 { return .emptyID }
        if count > Limits.idBytes { return .idTooLong }
        let first = id[byteAt: 0]
        if first == UInt8(ascii: "."), count == 1 || (count == 2 && id[byteAt: 1] == first) { return .dotID }
        if rules != .query, first == UInt8(ascii: "_"), isReserved(id) {
            // Numeric ids are for documents, and zero is not one of them.
            guard let number = numericID(id) else { return .reservedID }
            if rules == .request, isCollection || number == 0 { return .reservedID }
        }
        return nil
    }

    /// Whether the bytes match `__.*__` with at least one byte inside; `____` is an ordinary name.
    package static func isReserved(_ name: RawSpan) -> Bool {
        let count = name.byteCount
        let underscore = UInt8(ascii: "_")
        return count >= 5 && name[byteAt: 0] == underscore && name[byteAt: 1] == underscore
            && name[byteAt: count - 1] == underscore && name[byteAt: count - 2] == underscore
    }

    /// Checks a collection's or a document's id that a request gives by itself.
    ///
    /// - Throws: `INVALID_ARGUMENT`, in the cloud's words.
    package static func check(_ id: String, isCollection: Bool) throws(RequestError) {
        let kind = isCollection ? "Collection" : "Resource"
        if id.utf8.contains(UInt8(ascii: "/")) {
            throw .invalidArgument("\(kind) id \"\(id)\" is invalid because it contains \"/\".")
        }
        try id.withUTF8Span { (bytes) throws(RequestError) in
            switch problem(bytes, isCollection: isCollection, rules: .request) {
            case nil: return
            case .reservedID, .dotID: throw RequestError(reservedID: bytes, isCollection: isCollection)
            case let problem?: throw .invalidArgument("\(kind) id is invalid: \(problem.text).")
            }
        }
    }

    /// The number of an id `__id<n>__`, or nil for an ordinary id.
    ///
    /// Only the shortest decimal form of an `Int64` counts, so that a number has one spelling.
    package static func numericID(_ id: RawSpan) -> Int64? {
        let count = id.byteCount
        // The shortest is __id0__, the longest __id-9223372036854775808__.
        guard count >= 7, count <= 26, isReserved(id), id[byteAt: 2] == UInt8(ascii: "i"),
            id[byteAt: 3] == UInt8(ascii: "d")
        else { return nil }
        let end = count - 2
        let negative = id[byteAt: 4] == UInt8(ascii: "-")
        let start = negative ? 5 : 4
        guard start < end else { return nil }
        let leading = id[byteAt: start]
        if leading == UInt8(ascii: "0"), end - start > 1 || negative { return nil }
        // Counted downwards: the lowest number has no positive twin.
        var value: Int64 = 0
        for offset in start..<end {
            let digit = id[byteAt: offset] &- UInt8(ascii: "0")
            if digit > 9 { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.subtractingReportingOverflow(Int64(digit))
            if overflow || carry { return nil }
            value = sum
        }
        if negative { return value }
        return value == .min ? nil : -value
    }

    /// Order of ids: numeric ids first, by number, then all others by UTF-8 bytes; negative, 0 or positive.
    package static func compare(_ left: RawSpan, _ right: RawSpan) -> Int {
        switch (numericID(left), numericID(right)) {
        case (nil, nil): left.compareBytes(right)
        case (let left?, let right?): left < right ? -1 : left > right ? 1 : 0
        case (_?, nil): -1
        case (nil, _?): 1
        }
    }
}
