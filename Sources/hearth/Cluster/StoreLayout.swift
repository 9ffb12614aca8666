// In which PostgreSQL database the log of each store lies, as the home database has it (hearth cluster place).
//
//     DIR/STORES/DATABASES     what this server found there last, for a start while the home database is away
//
//     store NAME HIGH LOW DATABASE-HIGH DATABASE-LOW ADDRESS      a store that lies elsewhere
//     home NAME                                                   one that lies in the home database
//     end

import Basics
import FileSystem
import FirestoreService
import PostgreSQLLog
import Storage

/// A plain value.
struct StoreLayout: Equatable {
    /// The stores that lie elsewhere, by their names.
    private(set) var places: [String: StorePlace]
    /// Whether it is what this server found there last, since the home database cannot be reached.
    private(set) var isRemembered = false

    private static let fileName = "DATABASES"
    private static let connectMilliseconds: UInt64 = 5_000

    /// Asks the home database. While it cannot be reached, what this server found there last counts, and otherwise the
    /// home database is waited for.
    ///
    /// - Parameters:
    ///   - names: of the stores of this server.
    ///   - folder: the directory of the stores.
    /// - Throws: a `CommandFailure` if the database is not the home of its stores.
    static func find(_ names: [String], home: String, in folder: String, _ log: Log) throws -> StoreLayout {
        var report = RepeatedReport()
        while true {
            do {
                let session = try PostgreSQLSession(address: home, withinMilliseconds: connectMilliseconds)
                defer { session.close() }
                let layout = try StoreLayout(names, session)
                if let before = remembered(names, in: folder) { try layout.checkKeeps(before) }
                return layout
            } catch let error as SQLFailure where error.isConnectionLost {
                if var layout = remembered(names, in: folder) {
                    layout.isRemembered = true
                    log(.error, "cluster_home_away", ["message": "\(error); the stores lie where they lay before"])
                    return layout
                }
                if report.isDue(error.description, at: SystemClock.monotonicMilliseconds()) {
                    log(.warning, "cluster_waiting", ["message": error.description])
                }
                if Shutdown.isRequested {
                    throw CommandFailure("ended while waiting for the home database of the cluster: \(error)")
                }
                SystemThread.sleep(microseconds: 200_000)
            }
        }
    }

    init(places: [String: StorePlace]) { self.places = places }

    private init(_ names: [String], _ session: PostgreSQLSession) throws {
        try Self.checkIsHome(session)
        let places = try StorePlace.all(session).filter { names.contains($0.store) }
        self.init(places: Dictionary(places.map { ($0.store, $0) }) { first, _ in first })
    }

    /// - Throws: a `CommandFailure` if a store does not lie elsewhere any more, which it never ceases to do.
    func checkKeeps(_ before: StoreLayout) throws(CommandFailure) {
        let lost = before.places.values.filter { places[$0.store] == nil }.min { $0.store < $1.store }
        guard let lost else { return }
        throw CommandFailure(
            "the home database does not say any more that the store \(lost.store) lies in \(lost.address): it was "
                + "restored to a time before hearth cluster place, or is another database. Restore it to a later time, "
                + "or give hearth cluster place again")
    }

    /// - Throws: a `CommandFailure` if a database has stores of a cluster whose home database is another one.
    static func checkIsHome(_ session: PostgreSQLSession) throws {
        guard let owner = try DatabaseOwner(session), !owner.isHome else { return }
        throw CommandFailure(
            "the database that --cluster names has stores of a cluster and is not its home database: name the one "
                + "with which hearth cluster place was run")
    }

    // MARK: The file

    /// Notes for later starts where some stores lie.
    func remember(_ names: [String], in folder: String) throws {
        if isRemembered { return }
        let path = "\(folder)/\(Self.fileName)"
        if places.isEmpty {
            if Directory.exists(path) { try Directory.removeFile(path) }
            return
        }
        let lines = names.map { name in
            guard let place = places[name] else { return "home \(name)" }
            let numbers = [place.identity.high, place.identity.low, place.database.high, place.database.low]
            return "store \(name) \(numbers.map(String.init).joined(separator: " ")) \(place.address)"
        }
        try Directory.create(folder)
        let text = (lines + ["end"]).joined(separator: "\n") + "\n"
        try Directory.replaceFile(path, with: text)
    }

    /// - Returns: nil if the file is missing, cut off, or lacks one of the stores.
    static func remembered(_ names: [String], in folder: String) -> StoreLayout? {
        guard let bytes = try? InputFile.contents(of: "\(folder)/\(fileName)") else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard lines.last == "end" else { return nil }
        var places: [String: StorePlace] = [:]
        var known: Set<String> = []
        for line in lines.dropLast() {
            let words = line.split(separator: " ", maxSplits: 6).map(String.init)
            guard words.count >= 2 else { return nil }
            known.insert(words[1])
            if words[0] == "home" { continue }
            let numbers = words.dropFirst(2).prefix(4).compactMap(UInt64.init)
            guard words.count == 7, numbers.count == 4 else { return nil }
            places[words[1]] = StorePlace(
                store: words[1], identity: StoreIdentity(high: numbers[0], low: numbers[1]), address: words[6],
                database: DatabaseIdentity(high: numbers[2], low: numbers[3]))
        }
        return known.isSuperset(of: names) ? StoreLayout(places: places.filter { names.contains($0.key) }) : nil
    }
}
