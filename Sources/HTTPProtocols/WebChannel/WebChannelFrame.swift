internal import Basics

/// The text of what a server sends over WebChannel: a length, a line feed, and JSON.
///
/// The length counts UTF-16 code units, as the strings of JavaScript do.
enum WebChannelFrame {
    /// One array of the server: its number and the JSON text of its payload.
    struct Numbered: Equatable {
        /// Counted from 1 over the life of the session; 0 is the handshake.
        let id: UInt64
        let payload: [UInt8]
    }

    /// The frame of `json`.
    static func text(_ json: [UInt8]) -> [UInt8] { Array("\(utf16Count(json))\n".utf8) + json }

    /// The frame `[[id,payload],...]`.
    static func text(_ arrays: ArraySlice<Numbered>) -> [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(arrays.reduce(16) { $0 + $1.payload.count + 16 })
        for array in arrays {
            json.append(contentsOf: "\(json.isEmpty ? "[" : ",")[\(array.id),".utf8)
            json += array.payload
            json.append(UInt8(ascii: "]"))
        }
        json.append(UInt8(ascii: "]"))
        return text(json)
    }

    /// The reply to the request that opens a session. The numbers: protocol, server version, keep-alive interval.
    static func handshake(_ id: String, keepAliveMilliseconds: UInt64) -> [UInt8] {
        let payload = Array("[\"c\",\"\(id)\",\"\",8,12,\(keepAliveMilliseconds)]".utf8)
        return text([Numbered(id: 0, payload: payload)])
    }

    /// The code units that valid UTF-8 has in UTF-16: one for each character, two for those of four bytes.
    static func utf16Count(_ text: [UInt8]) -> Int {
        var count = 0
        for byte in text where byte & 0xC0 != 0x80 { count += byte >= 0xF0 ? 2 : 1 }
        return count
    }
}
