// Circles on the Earth's surface.

package import DocumentModel
internal import Glibc
internal import Indexing

/// The points of a field within a distance of a point.
package struct GeoArea: Sendable, Hashable {
    package let field: FieldPath
    private let latitude: Double
    private let longitude: Double
    /// Metres.
    private let radius: Double

    package init(field: FieldPath, around center: GeoPointValue, radius: Double) {
        self.field = field
        latitude = center.latitude
        longitude = center.longitude
        self.radius = radius
    }

    /// The distance of two points on a sphere of the Earth's mean radius, in metres.
    package static func distance(_ left: GeoPointValue, _ right: GeoPointValue) -> Double {
        let (low, high) = (left.latitude * .pi / 180, right.latitude * .pi / 180)
        let upwards = sin((high - low) / 2)
        let sideways = sin((right.longitude - left.longitude) * .pi / 360)
        let half = upwards * upwards + cos(low) * cos(high) * sideways * sideways
        return 2 * earthRadius * asin(min(1, half.squareRoot()))
    }

    /// Metres.
    private static let earthRadius = 6_371_010.0

    /// Ranges of cells that together hold every point of the area, and some around it: both codes belong to the range.
    var ranges: [ClosedRange<UInt64>] {
        guard radius >= 0 else { return [] }
        // Somewhat more than the radius: neither rounding nor a cell's border may leave out a point.
        let angle = min(radius / Self.earthRadius, .pi) * (1 + 1e-9) + 1e-9
        let height = angle * 180 / .pi
        let (south, north) = (max(latitude - height, -90), min(latitude + height, 90))
        var columns = [(west: -180.0, east: 180.0)]
        if latitude + height < 90, latitude - height > -90 {
            let width = asin(min(1, sin(angle) / cos(latitude * .pi / 180))) * 180 / .pi * (1 + 1e-9) + 1e-9
            let (west, east) = (longitude - width, longitude + width)
            if width >= 180 {
                columns = [(-180, 180)]
            } else if west < -180 {
                columns = [(-180, east), (west + 360, 180)]
            } else if east > 180 {
                columns = [(west, 180), (-180, east - 360)]
            } else {
                columns = [(west, east)]
            }
        }
        return Self.merged(columns.flatMap { Self.cells(south, north, west: $0.west, east: $0.east) })
    }

    /// Cells of a rectangle, as many as it takes to follow its shape roughly.
    private static func cells(
        _ south: Double, _ north: Double, west: Double, east: Double
    ) -> [ClosedRange<UInt64>] {
        let rows = (GeoCell.row(south), GeoCell.row(north))
        let columns = (GeoCell.column(west), GeoCell.column(east))
        var bits: UInt32 = 32
        func count(_ range: (UInt32, UInt32)) -> Int { Int(range.1 >> (32 - bits)) - Int(range.0 >> (32 - bits)) + 1 }
        while bits > 1, max(count(rows), count(columns)) > 16 || count(rows) * count(columns) > 16 { bits -= 1 }
        let shift = 32 - bits
        var ranges: [ClosedRange<UInt64>] = []
        for row in (rows.0 >> shift)...(rows.1 >> shift) {
            for column in (columns.0 >> shift)...(columns.1 >> shift) {
                let first = GeoCell.code(latitude: row << shift, longitude: column << shift)
                ranges.append(first...(first | (UInt64(1) << (2 * UInt64(shift)) &- 1)))
            }
        }
        return ranges
    }

    private static func merged(_ ranges: [ClosedRange<UInt64>]) -> [ClosedRange<UInt64>] {
        var result: [ClosedRange<UInt64>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = result.last, range.lowerBound == 0 || range.lowerBound - 1 <= last.upperBound {
                result[result.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                result.append(range)
            }
        }
        return result
    }
}

extension GeoArea: CustomStringConvertible {
    package var description: String { "\(field) within \(radius) m of (\(latitude), \(longitude))" }
}
