// The three forms in which issuers publish keys.

internal import DocumentJSON

extension KeySetBuilder {
    /// Adds the keys of a text: a JSON Web Key Set (RFC 7517), Google's object of identifiers and certificates, or a
    /// public key or certificate in PEM.
    ///
    /// - Parameter name: the identifier of a PEM key.
    /// - Throws: `KeyFault` if the text has another form, or a key in it is damaged, weak or private.
    mutating func add(text: [UInt8], name: String) throws(KeyFault) {
        if text.count > KeyLimits.fileBytesMax { throw KeyFault("a text of keys has too many bytes") }
        let start = text.first { !" \t\r\n".utf8.contains($0) }
        guard start == UInt8(ascii: "{") else { return try add(try VerificationKey(pem: text), name) }
        let value: JSONValue
        do throws(JSONValue.Fault) {
            value = try JSONValue.read(text)
        } catch {
            throw KeyFault("a text of keys is not valid JSON")
        }
        if let set = value["keys"] { try add(webKeys: set) } else { try add(certificates: value) }
    }

    private mutating func add(webKeys set: JSONValue) throws(KeyFault) {
        guard let elements = set.elements else { throw KeyFault("the member 'keys' is not an array") }
        for element in elements {
            guard let key = try VerificationKey.of(webKey: element) else { continue }
            guard let identifier = element["kid"]?.text else { throw KeyFault("a key of a set has no 'kid'") }
            try add(key, identifier)
        }
    }

    private mutating func add(certificates map: JSONValue) throws(KeyFault) {
        guard case .object(let members) = map else { throw KeyFault("a text of keys is not an object") }
        for (identifier, member) in members {
            guard let text = member.text, text.hasPrefix("-----BEGIN ") else {
                throw KeyFault("a text of keys is neither a key set nor an object of certificates")
            }
            try add(try VerificationKey(pem: Array(text.utf8)), identifier)
        }
    }
}
