// Groups as they travel between servers.
//
//     length, 4 | epoch, 8 | sequence, 8 | hash before, 8 | version, 8 | hash of the contents, 8
//               | length of what follows, 4 | hashes of what was derived | records
//
// Numbers are little-endian. The length is that of what follows it. The store is that of the stream.

internal import Basics
internal import Replication
package import Storage

extension LoggedGroup {
    private static let headBytes = 44

    /// Appends the group to others.
    func encode(into bytes: inout [UInt8]) {
        func append(_ number: UInt64, _ count: UInt64) {
            for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
        }
        let length = Self.headBytes + derived.count + records.count
        bytes.reserveCapacity(bytes.count + 4 + length)
        append(UInt64(length), 4)
        for word in [header.epoch.number, header.sequence, header.previousHash, header.version, header.contentHash] {
            append(word, 8)
        }
        append(UInt64(derived.count), 4)
        bytes += derived
        bytes += records
    }

    /// Reads groups that a server of the cluster has sent.
    /// - Returns: nil if the bytes are not whole groups with the contents that their headers name.
    package static func decode(_ bytes: [UInt8], of store: StoreIdentity) -> [LoggedGroup]? {
        let span = bytes.byteSpan
        var groups: [LoggedGroup] = []
        var offset = 0
        while offset < span.byteCount {
            guard span.byteCount - offset >= 4 + headBytes else { return nil }
            let length = Int(span.littleEndian32(at: offset))
            let start = offset + 4
            guard length >= headBytes, length <= span.byteCount - start else { return nil }
            let derivedBytes = Int(span.littleEndian32(at: start + 40))
            guard derivedBytes <= length - headBytes else { return nil }
            let recordsStart = start + headBytes + derivedBytes
            let group = LoggedGroup(
                header: GroupHeader(
                    store: store, epoch: Epoch(span.littleEndian64(at: start)),
                    sequence: span.littleEndian64(at: start + 8), previousHash: span.littleEndian64(at: start + 16),
                    version: span.littleEndian64(at: start + 24), contentHash: span.littleEndian64(at: start + 32)),
                records: [UInt8](copying: span.extracting(recordsStart..<start + length)),
                derived: [UInt8](copying: span.extracting(start + headBytes..<recordsStart)))
            guard contentHash(group.records) == group.header.contentHash else { return nil }
            groups.append(group)
            offset = start + length
        }
        return groups
    }
}

extension MemberDriver.PendingAppend {
    /// The group as it is in the log.
    func group(_ header: GroupHeader) -> LoggedGroup {
        LoggedGroup(header: header, records: records, derived: derived)
    }
}
