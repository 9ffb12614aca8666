// Bytes that version 528 of the official emulator wrote.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import ManagedExport

enum GoldenExport {
    /// The data file of an export of three documents: c/__id7__/s/k, c/d and c/e.
    static let data = bytes(
        """
        b05a62dc2400016a186a056465767e70720f0b12016318070c0b12017322016b0c8201070b12016318070cba30eca9bc01016a116a056465
        767e7072080b1201632201640c7a091a016120012a0208017a0a1a016120012a031a01717a1d08131a016120012a141a126a046a0072007a
        071a017820002a008201007a0b1a0361206220002a0210017a141a03612e6220002a0b08fbffffffffffffffff017a0f080e1a0262792000
        2a051a030001027a101a016420002a092100000000000004407a1508131a02656d20002a0b1a096a046a0072008201007a1d08091a016720
        002a142b31000000000000f83f3900000000000000c02c7a3e08131a016d20002a351a336a046a007200720908181a017a20002a007a091a
        016220002a0210007a12081f1a017620012a0921000000000000f03f8201007a071a016e20002a007a091a016f20012a0208077a301a0172
        20002a29636a0b6465767e6f746865722d70737a016380010774737a01738a01016b74ba01067365636f6e64647a1a1a02723220002a1263
        6a056465767e70737a01638a01016474647a0a1a017320002a031a01787a1408071a017420002a0b0880c0caffffffffffff017a12081f1a
        017620012a0921000000000000f03f7a12081f1a017620012a092100000000000004408201080b1201632201640c254d4fbc2900016a116a
        056465767e7072080b1201632201650c720908181a016520002a008201080b1201632201650c
        """)

    /// `N.overall_export_metadata` of another export, of two documents.
    static let overall = bytes(
        """
        b86d444e010001332449fc3f5000010a4e0a04080218031241616c6c5f6e616d657370616365732f616c6c5f6b696e64732f616c6c5f6e61
        6d657370616365735f616c6c5f6b696e64732e6578706f72745f6d65746164617461180220d602
        """)

    /// Its `all_namespaces_all_kinds.export_metadata`.
    static let part = bytes("0a150a014e10ed9d93dd82a498031888c494dd82a49803120c0a0012086f75747075742d30")

    static let database = "projects/p/databases/(default)"

    /// The documents of ``data`` in its order.
    static let documents: [(path: String, fields: MapValue)] = [
        ("c/__id7__/s/k", MapValue()),
        (
            "c/d",
            [
                "a": .array([1, "q", .map(["x": .null])]), "a b": .boolean(true), "a.b": .integer(-5),
                "by": .bytes([0, 1, 2]), "d": .double(2.5), "em": .map([:]),
                "g": .geoPoint(GeoPointValue(latitude: 1.5, longitude: -2)),
                "m": .map(["b": .boolean(false), "v": .vector([1]), "z": .array([])]), "n": .null,
                "o": .array([7]), "r": .reference("projects/other-p/databases/second/documents/c/__id7__/s/k"),
                "r2": .reference("\(database)/documents/c/d"), "s": "x",
                // The emulator drops the nanoseconds.
                "t": .timestamp(TimestampValue(microseconds: -876_544)), "v": .vector([1, 2.5]),
            ]
        ),
        ("c/e", ["e": .array([])]),
    ]

    private static func bytes(_ text: String) -> [UInt8] {
        Hexadecimal.bytes(text.filter { !$0.isWhitespace }) ?? []
    }
}
