// Documents that are looked up so that a later read or commit need not wait for them.

internal import Basics
package import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat

extension StoreReader {
    /// Looks up documents that are going to be read at a point.
    ///
    /// - Parameter names: full resource names; malformed ones are left out.
    /// - Returns: whether something is not in memory: then ``whenReady(_:)`` gets it.
    @discardableResult
    package func prefetch(_ names: some Sequence<[UInt8]>, at point: ReadPoint) -> Bool {
        let point = point.withoutTransaction
        var isPending = false
        for name in names {
            do throws(RequestError) {
                try withDocument(name.byteSpan, at: point, .pends) { _ in }
            } catch {
                // Others are met again by the read itself.
                if error.isPending { isPending = true }
            }
        }
        return isPending
    }

    /// Looks up the documents that writes are about, so that the commit thread need not wait for them.
    ///
    /// - Returns: whether some are not in memory: then ``whenReady(_:)`` gets them.
    package func prefetch(_ writes: WriteList) -> Bool {
        var isPending = false
        for write in writes.writes {
            do throws(RequestError) {
                try withLatestDocument(try ResourceNameView(resource: writes.name(of: write)), .pends) { _ in }
            } catch {
                if error.isPending { isPending = true }
            }
        }
        return isPending
    }

    /// Documents of one transaction that are looked up, at most: the loop serves others too.
    private static let prefetchedReadsMax = 2_000

    /// Looks up the newest state of the documents that a transaction has read by name, which its commit compares.
    ///
    /// - Returns: whether some are not in memory: then ``whenReady(_:)`` gets them.
    package func prefetchReads(of identifier: TransactionIdentifier) -> Bool {
        do throws(RequestError) {
            let transaction = try store.transactions.transaction(identifier)
            let point = try readPoint(.latest, in: transaction.database)
            return try transaction.withReads { (reads) throws(RequestError) in
                try isPending(reads, in: snapshot(at: point, .pends))
            }
        } catch {
            // The commit meets it again.
            return false
        }
    }

    private func isPending(_ reads: borrowing ReadSet, in snapshot: borrowing EngineSnapshot) -> Bool {
        var isPending = false
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        for position in 0..<min(reads.documents.count, Self.prefetchedReadsMax) {
            key.reset()
            reads.documents.appendKey(at: position, to: &key)
            do throws(StorageError) {
                _ = try snapshot.value(forKey: key.bytes)
            } catch {
                if error.code == .pending { isPending = true }
            }
        }
        return isPending
    }
}
