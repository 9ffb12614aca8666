// Cells of the Earth's surface.
//
// Latitude and longitude are 32 bits each, mixed bit by bit: the first 2 n bits name one of 4^n rectangles, and the
// points in it are one range of codes.

package import DocumentModel

/// The smallest cell around a point.
package struct GeoCell: Sendable, Equatable {
    /// The bits of latitude and longitude in turn, latitude first.
    package let code: UInt64

    package init(_ point: GeoPointValue) {
        code = Self.code(latitude: Self.row(point.latitude), longitude: Self.column(point.longitude))
    }

    /// -90 ... 90 degrees as 32 bits.
    package static func row(_ latitude: Double) -> UInt32 { bits((latitude + 90) / 180) }

    /// -180 ... 180 degrees as 32 bits.
    package static func column(_ longitude: Double) -> UInt32 { bits((longitude + 180) / 360) }

    package static func code(latitude: UInt32, longitude: UInt32) -> UInt64 {
        spread(latitude) << 1 | spread(longitude)
    }

    private static func bits(_ share: Double) -> UInt32 {
        UInt32(exactly: (min(max(share, 0), 1) * 0x1p32).rounded(.down)) ?? .max
    }

    /// The bits with a zero before each.
    private static func spread(_ bits: UInt32) -> UInt64 {
        var value = UInt64(bits)
        value = (value | value << 16) & 0x0000_FFFF_0000_FFFF
        value = (value | value << 8) & 0x00FF_00FF_00FF_00FF
        value = (value | value << 4) & 0x0F0F_0F0F_0F0F_0F0F
        value = (value | value << 2) & 0x3333_3333_3333_3333
        return (value | value << 1) & 0x5555_5555_5555_5555
    }
}
