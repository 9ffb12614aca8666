// Serializable transfers: read two accounts, write both; what pgbench does to PostgreSQL in the same run.

import DocumentModel
import FirebaseFirestore
import FirestoreMessages
import Foundation
import HearthClient

struct Transfers {
    let address: String
    let clients: Int
    let accounts: Int
    private static let database = try! DatabaseName(project: "bench")

    /// Prints transfers a second: median, least and most of the runs.
    func run(seconds: Double, runs: Int) async throws {
        let client = try HearthClient(HearthClient.Configuration(address: address))
        let names = (0..<accounts).map { "\(Self.database.documentsRoot)/accounts/\($0)" }
        var opening = CommitWrites(database: Self.database)
        for name in names { opening.set(name, fields: Self.fields(1000)) }
        try await client.commit(opening)

        var rates: [Double] = []
        for run in -1..<runs {
            let rate = try await measure(client, names, seconds: run < 0 ? 0.5 : seconds)
            if run >= 0 { rates.append(rate) }
        }
        rates.sort()
        print(
            String(
                format: "median\t%.0f\tleast\t%.0f\tmost\t%.0f\ttransfers/s", rates[rates.count / 2], rates[0],
                rates[rates.count - 1]))

        var total: Int64 = 0
        let reply = try await client.batchGet(
            BatchGetDocumentsRequest(database: Self.database.description, documents: names))
        for (_, content) in reply.results { total += try Self.balance(content) }
        guard total == Int64(accounts) * 1000 else { fatalError("the transfers changed the total to \(total)") }
        await client.close()
    }

    private func measure(_ client: HearthClient, _ names: [String], seconds: Double) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        let end = start.advanced(by: .seconds(seconds))
        let done = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<clients {
                group.addTask {
                    var transfers = 0
                    while clock.now < end {
                        let from = names.randomElement()!
                        let to = names.randomElement()!
                        if from == to { continue }
                        try await client.runTransaction(database: Self.database, attemptsMax: 1000) { transaction in
                            let reply = try await transaction.get([from, to])
                            for (name, content) in reply.results {
                                let balance = try Self.balance(content)
                                transaction.writes.set(name, fields: Self.fields(balance + (name == from ? -1 : 1)))
                            }
                        }
                        transfers += 1
                    }
                    return transfers
                }
            }
            return try await group.reduce(0, +)
        }
        let elapsed = (clock.now - start).components
        return Double(done) / (Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18)
    }

    private static func fields(_ balance: Int64) -> [UInt8] { MapValue([("balance", .integer(balance))]).documentBytes }

    private static func balance(_ document: StoredDocument?) throws -> Int64 {
        guard let document,
            case .integer(let balance)? = try MapValue(documentBytes: document.fields.span.bytes)["balance"]
        else {
            fatalError("an account without balance")
        }
        return balance
    }
}
