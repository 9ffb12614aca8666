// Revocations as a source sends them to its replicas.

internal import Basics

extension Revocations {
    /// For each user the moment (8 bytes, little-endian), the length of the identifier (4) and the identifier.
    package static func encode(_ moments: Moments) -> [UInt8] {
        var bytes = ByteBuffer()
        for (uid, moment) in moments {
            bytes.append(littleEndian: UInt64(bitPattern: moment))
            bytes.append(littleEndian: UInt32(uid.count))
            bytes.append(uid)
        }
        return bytes.copyBytes()
    }

    /// Reads what ``encode(_:)`` has written.
    ///
    /// - Throws: `PrincipalFault` for anything else.
    package static func decode(_ bytes: [UInt8]) throws(PrincipalFault) -> Moments {
        var moments: Moments = [:]
        var rest = bytes[...]
        while !rest.isEmpty {
            guard rest.count >= 12 else { throw PrincipalFault("revocations are cut") }
            let head = Array(rest.prefix(12))
            let count = Int(head.byteSpan.littleEndian32(at: 8))
            guard rest.count - 12 >= count else { throw PrincipalFault("revocations are cut") }
            let uid = Array(rest.dropFirst(12).prefix(count))
            moments[uid] = Int64(bitPattern: head.byteSpan.littleEndian64(at: 0))
            rest = rest.dropFirst(12 + count)
        }
        return moments
    }
}
