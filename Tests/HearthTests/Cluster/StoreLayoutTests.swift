// What a server remembers of where its stores lie.

import Foundation
import PostgreSQLLog
import Storage
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(5)))
struct StoreLayoutTests {
    private let directory = TemporaryDirectory("layout")
    private var folder: String { directory.path(of: "STORES") }
    private var file: String { "\(folder)/DATABASES" }

    private let layout = StoreLayout(
        places: [
            "orders": StorePlace(
                store: "orders", identity: StoreIdentity(high: .max, low: 1),
                address: "host=10.0.0.10 user=hearth dbname='a b'", database: DatabaseIdentity(high: 2, low: 3))
        ])

    private func remembered(_ names: [String]) -> StoreLayout? { StoreLayout.remembered(names, in: folder) }

    @Test
    func `What was remembered is found again, for the stores that it has`() throws {
        expectNil(remembered(["main"]))
        try layout.remember(["main", "orders"], in: folder)
        expectEqual(remembered(["main", "orders"]), layout)
        expectEqual(remembered(["orders"]), layout)
        expectEqual(remembered(["main"])?.places.isEmpty, true)
        // It is not known where this one lies.
        expectNil(remembered(["main", "orders", "c"]))
        // All lie in the home database: it is waited for.
        try StoreLayout(places: [:]).remember(["main"], in: folder)
        expectNil(remembered(["main"]))
    }

    @Test
    func `A home database that does not know any more where a store lies is refused`() throws {
        try layout.checkKeeps(StoreLayout(places: [:]))
        try layout.checkKeeps(layout)
        let refusal = #expect(throws: CommandFailure.self) { try StoreLayout(places: [:]).checkKeeps(layout) }
        expectEqual(refusal?.description.contains("the store orders lies in host=10.0.0.10"), true)
    }

    @Test
    func `A file that is cut off at any place, or damaged, counts as none`() throws {
        try layout.remember(["main", "orders"], in: folder)
        let whole = try Data(contentsOf: URL(fileURLWithPath: file))
        for count in 0..<whole.count - 1 {
            try whole.prefix(count).write(to: URL(fileURLWithPath: file))
            expectNil(remembered(["main", "orders"]), "after \(count) bytes")
        }
        for text in ["store orders 1 2 x 4 a\nend\n", "store orders\nend\n", "home\nend\n", "end"] {
            try text.write(toFile: file, atomically: false, encoding: .utf8)
            expectNil(remembered(["orders"]), "\(text)")
        }
    }
}
