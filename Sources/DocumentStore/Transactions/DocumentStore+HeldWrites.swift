// Writes that a transaction has made before its commit: those of pipelines.

package import Basics
package import DocumentModel

extension DocumentStore {
    /// Bytes of names and fields that one transaction may hold.
    package static let heldBytesMax = 10 << 20

    /// Keeps writes for the commit that ends a transaction. They are forgotten with it.
    ///
    /// - Throws: `INVALID_ARGUMENT` if the transaction is unknown or reads only, `RESOURCE_EXHAUSTED` beyond
    ///   ``heldBytesMax``.
    package func hold(_ writes: WriteList, in identifier: TransactionIdentifier) throws(RequestError) {
        try transactions.transaction(identifier).hold(writes)
    }

    /// The writes that an open transaction holds, in their order; empty for ids that name nothing.
    package func heldWrites(in identifier: TransactionIdentifier) -> [WriteList] {
        transactions.open(identifier)?.heldWrites ?? []
    }
}
