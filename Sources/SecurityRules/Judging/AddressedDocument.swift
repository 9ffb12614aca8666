// The document that a path in rules names.

internal import Basics
internal import Expressions

/// A path of the database of the request, below `/databases/DATABASE/documents`.
struct AddressedDocument {
    /// Nil if no document can have the name.
    let address: DocumentAddress?
    let id: String

    /// - Throws: `failed` for a path that is not that of a document.
    init(_ path: RulesPath, database: String) throws(ExpressionError) {
        var address: [UInt8] = []
        address.reserveCapacity(path.byteCount)
        var count = 0
        var isPath = true
        var isName = true
        var id = ""
        try path.forEachValue { value in
            switch count {
            case 0: isPath = value.hasSameUTF8(as: "databases")
            case 1: isPath = isPath && value.hasSameUTF8(as: database)
            case 2: isPath = isPath && value.hasSameUTF8(as: "documents")
            default:
                if count > 3 { address.append(Self.slash) }
                address.append(contentsOf: value.utf8)
                isName = isName && !value.hasByte(Self.slash)
                id = value
            }
            isPath = isPath && !value.isEmpty
            count += 1
        }
        guard isPath, count > 3, count % 2 == 1 else {
            throw .failed("Service call error: \(path.text.prefix(200)) is not the path of a document.")
        }
        self.address = isName ? DocumentAddress(utf8: address) : nil
        self.id = id
    }

    private static let slash = UInt8(ascii: "/")
}

extension String {
    fileprivate func hasByte(_ byte: UInt8) -> Bool { withUTF8Span { $0.firstOffset(of: byte, from: 0) != nil } }
}
