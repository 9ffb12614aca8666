// The order in which a client uses its documents and queries.

/// Numbers of uses, which grow: each call that changes a store has one, and each read of documents. Records of
/// documents and queries have the number of their last change; the uses of documents that were read only are noted
/// here.
///
/// Numbers that a commit reserves on the disk are given before the next reservation, so no number is given twice:
///
///     given ───► current ······· reserved
struct LocalUses {
    /// Above all numbers: what is in use.
    static let now = UInt32.max
    private static let reservedAtOnce: UInt32 = 1024

    /// The number of the use that is under way.
    private(set) var current: UInt32
    /// Numbers from here on have to be reserved by a commit before they are stored.
    private(set) var reservedEnd: UInt32

    /// The last uses of documents by the hashes of their keys, the newer ones and those before. Documents that share a
    /// hash share their uses.
    private var recent: [Int: UInt32] = [:]
    private var earlier: [Int: UInt32] = [:]
    /// Notes in `recent`, at most.
    private let notesMax: Int

    /// - Parameters:
    ///   - reservedEnd: as it is stored; 0 for a new store.
    ///   - floor: a number above those of stores of earlier builds, which counted minutes.
    init(reservedEnd: UInt32, floor: UInt32, notesMax: Int = 1 << 16) {
        self.reservedEnd = reservedEnd
        self.notesMax = notesMax
        current = min(max(reservedEnd, floor), Self.now - 1)
    }

    /// A use begins. After 4,000,000,000 of them all further ones have the same number.
    mutating func begin() { current = min(current + 1, Self.now - 1) }

    /// Whether the current number has to be reserved.
    var needsReservation: Bool { current >= reservedEnd && reservedEnd < Self.now }

    /// The end of the next reservation.
    var nextReservedEnd: UInt32 {
        let (end, hasOverflown) = current.addingReportingOverflow(Self.reservedAtOnce)
        return hasOverflown ? Self.now : end
    }

    /// A reservation was committed.
    mutating func reserved(upTo end: UInt32) { reservedEnd = end }

    /// Notes that the current use reads a document.
    mutating func note(_ key: [UInt8]) {
        recent[key.hashValue] = current
        if recent.count < notesMax { return }
        earlier = recent
        recent = [:]
    }

    /// The last use of a document that was noted; 0 if none is known.
    func lastUse(of key: [UInt8]) -> UInt32 {
        if recent.isEmpty && earlier.isEmpty { return 0 }
        return recent[key.hashValue] ?? earlier[key.hashValue] ?? 0
    }
}
