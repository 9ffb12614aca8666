// What a log keeps beside the records of a group, and the chain that it forms.

package import Storage

/// The header of a group in a shared log. Groups form a chain: each has the hash of the one before.
package struct GroupHeader: Hashable, Sendable {
    package let store: StoreIdentity
    /// In which the group was appended.
    package let epoch: Epoch
    /// 1 for the first group of the store; without holes.
    package let sequence: UInt64
    /// The hash of the group before; 0 for the first.
    package let previousHash: UInt64
    /// The version of the last commit of the group, in microseconds.
    package let version: UInt64
    /// The hash of the group's records.
    package let contentHash: UInt64

    package init(
        store: StoreIdentity, epoch: Epoch, after previous: LogPlace, version: UInt64, contentHash: UInt64
    ) {
        self.store = store
        self.epoch = epoch
        sequence = previous.sequence + 1
        previousHash = previous.hash
        self.version = version
        self.contentHash = contentHash
    }

    /// A header as a database has it.
    package init(
        store: StoreIdentity, epoch: Epoch, sequence: UInt64, previousHash: UInt64, version: UInt64,
        contentHash: UInt64
    ) {
        self.store = store
        self.epoch = epoch
        self.sequence = sequence
        self.previousHash = previousHash
        self.version = version
        self.contentHash = contentHash
    }

    /// The hash of the chain up to the group. It finds what faults and restored databases do, no attack.
    package var hash: UInt64 {
        var mixed: UInt64 = 0x9E37_79B9_7F4A_7C15
        for word in [store.high, store.low, epoch.number, sequence, previousHash, version, contentHash] {
            mixed = (mixed ^ word) &* 0xBF58_476D_1CE4_E5B9
            mixed ^= mixed >> 29
            mixed = mixed &* 0x94D0_49BB_1331_11EB
            mixed ^= mixed >> 32
        }
        return mixed
    }

    /// The place of a server that has the group.
    package var place: LogPlace { LogPlace(sequence: sequence, hash: hash, version: version) }

    /// Whether the group is the next one of a server.
    package func follows(_ place: LogPlace) -> Bool {
        sequence == place.sequence + 1 && previousHash == place.hash && version > place.version
    }

    /// Whether it has the same records at the same versions, maybe in another epoch.
    package func hasContents(of other: GroupHeader) -> Bool {
        store == other.store && version == other.version && contentHash == other.contentHash
    }
}
