// Mathematics, places and hashes.

internal import Basics
internal import COpenSSL
internal import CZlib
internal import DocumentModel
internal import Expressions
internal import Glibc

extension Functions {
    static let mathematics: [ExpressionFunction] = [
        function(
            "math.abs",
            // The smallest integer stays itself.
            overload(.integer) { _, operands in
                guard case .integer(let value) = operands[0] else { return .null }
                return .integer(value < 0 ? 0 &- value : value)
            },
            overload(.double) { _, operands in .double((Numbers.double(operands[0]) ?? 0).magnitude) }),
        mathematical("math.ceil") { $0.rounded(.up) },
        mathematical("math.floor") { $0.rounded(.down) },
        mathematical("math.sqrt") { $0.squareRoot() },
        function(
            // An integer too is rounded as the double that it is near to.
            "math.round",
            overload(.number) { _, operands in .integer(Numbers.round(Numbers.double(operands[0]) ?? 0)) }),
        function(
            "math.pow",
            overload(.number, .number) { _, operands in
                .double(power(Numbers.double(operands[0]) ?? 0, Numbers.double(operands[1]) ?? 0))
            }),
        function(
            "math.isNaN",
            overload(.number) { _, operands in
                .boolean(Numbers.double(operands[0])?.isNaN ?? false)
            }),
        function(
            "math.isInfinite",
            overload(.number) { _, operands in
                .boolean(Numbers.double(operands[0])?.isInfinite ?? false)
            }),
    ]

    private static func mathematical(
        _ name: String, _ body: @escaping @Sendable (Double) -> Double
    ) -> ExpressionFunction {
        function(name, overload(.number) { _, operands in .double(body(Numbers.double(operands[0]) ?? 0)) })
    }

    /// Java's power, which differs from C's where the base is 1 or -1.
    private static func power(_ base: Double, _ exponent: Double) -> Double {
        if exponent.isNaN || (base.magnitude == 1 && exponent.isInfinite) { return .nan }
        return pow(base, exponent)
    }

    static let places: [ExpressionFunction] = [
        function(
            "latlng.value",
            overload(.number, .number) { _, operands throws(ExpressionError) in
                let point = GeoPointValue(
                    latitude: Numbers.double(operands[0]) ?? 0, longitude: Numbers.double(operands[1]) ?? 0)
                if !point.isValid {
                    throw .failed(
                        "Latitude should be in [-90,90] range and longitude should be in [-180,180] range.")
                }
                return .geoPoint(point)
            })
    ]

    static let placeMethods: [ExpressionFunction] = [
        method("latitude", overload(.geoPoint) { _, operands in .double(operands[0].point.latitude) }),
        method("longitude", overload(.geoPoint) { _, operands in .double(operands[0].point.longitude) }),
        method(
            "distance",
            overload(.geoPoint, .geoPoint) { _, operands in
                .double(distance(operands[0].point, operands[1].point))
            }),
    ]

    /// Metres on a sphere, by the haversine formula.
    private static func distance(_ left: GeoPointValue, _ right: GeoPointValue) -> Double {
        let radians = Double.pi / 180
        let latitudes = sin((right.latitude - left.latitude) * radians / 2)
        let longitudes = sin((right.longitude - left.longitude) * radians / 2)
        let half =
            latitudes * latitudes
            + longitudes * longitudes * cos(left.latitude * radians) * cos(right.latitude * radians)
        let earthRadius = 6_371_009.0
        return 2 * earthRadius * asin(min(1, half.squareRoot()))
    }

    static let hashes: [ExpressionFunction] = [
        hash("hashing.md5") { unsafe digest($0, EVP_md5()) },
        hash("hashing.sha256") { unsafe digest($0, EVP_sha256()) },
        hash("hashing.crc32") { bytes in littleEndian(UInt32(truncatingIfNeeded: checksum(bytes))) },
        hash("hashing.crc32c") { littleEndian(castagnoli($0)) },
    ]

    private static func hash(
        _ name: String, _ body: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) -> ExpressionFunction {
        function(
            name,
            overload([.string, .bytes]) { evaluation, operands throws(ExpressionError) in
                let bytes = operands[0].types == .string ? Array(operands[0].text.utf8) : operands[0].byteArray
                try evaluation.spendWork(4 * bytes.count + 512)
                return .bytes(body(bytes))
            })
    }

    private static func digest(_ bytes: [UInt8], _ algorithm: OpaquePointer?) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        // Both buffers live for the call; the digest has the room that the library asks for.
        let status = unsafe EVP_Digest(bytes, bytes.count, &digest, &count, algorithm, nil)
        precondition(status == 1, "the hash is available")
        return Array(digest.prefix(Int(count)))
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt {
        // The buffer lives for the call.
        unsafe crc32(0, bytes, UInt32(truncatingIfNeeded: bytes.count))
    }

    private static func littleEndian(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    /// The checksum CRC-32C.
    private static func castagnoli(_ bytes: [UInt8]) -> UInt32 {
        var remainder: UInt32 = ~0
        for byte in bytes {
            remainder ^= UInt32(byte)
            for _ in 0..<8 { remainder = remainder >> 1 ^ (remainder & 1 == 1 ? 0x82F6_3B78 : 0) }
        }
        return ~remainder
    }
}

extension Operand {
    /// The place of a latlng; 0, 0 for other types, which signatures exclude.
    fileprivate var point: GeoPointValue {
        if case .geoPoint(let point) = self { point } else { GeoPointValue(latitude: 0, longitude: 0) }
    }
}
