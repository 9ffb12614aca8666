// BeginTransaction, Rollback, and transactions that begin with a read.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages

extension FirestoreService {
    func beginTransaction(_ call: Call, _ request: RawSpan) throws {
        let message = try BeginTransactionRequest(wire: request)
        let database = try message.database.withUTF8Span { (name) throws(RequestError) in
            _ = try admit(call, name)
            return try self.database(name)
        }
        beginTransaction(call, message.options ?? .readWrite, in: database) { service, transaction in
            service.succeed(call) { BeginTransactionResponse(transaction: transaction.bytes).encode(into: &$0) }
        }
    }

    /// Begins a transaction and continues on the loop's thread; a begin that retries may have to wait for its turn.
    func beginTransaction(
        _ call: Call, _ options: TransactionOptions, in database: DatabaseName,
        _ body: @escaping (FirestoreService, TransactionIdentifier) throws -> Void
    ) {
        store.beginTransaction(
            in: database, options: options, owner: owner(of: call), isStrict: reader.isStrict,
            completion: continuation(call, body))
    }

    /// Ends the transaction of a read that has begun it and has failed: nobody has its id. A read that waits for
    /// storage is made again in it.
    func rollBackUnknown(_ transaction: TransactionIdentifier, after error: any Error) {
        if (error as? RequestError)?.isPending != true { store.rollback(transaction) }
    }

    /// The connection of a call, as one that begins transactions.
    private func owner(of call: Call) -> TransactionOwner {
        let owners = call.carrier.connectionContext as? TransactionOwners ?? TransactionOwners()
        call.carrier.connectionContext = owners
        return owners.owner(in: store)
    }

    func rollback(_ call: Call, _ request: RawSpan) throws {
        let message = try RollbackRequest(wire: request)
        try message.database.withUTF8Span { (name) throws(RequestError) in
            _ = try admit(call, name)
            _ = try database(name)
        }
        guard !message.transaction.isEmpty else {
            throw RequestError.invalidArgument("A rollback must name a transaction.")
        }
        // Clients roll back after every failure, and an error here would hide the first one: ids that name nothing are
        // fine.
        if let id = try? TransactionIdentifier(bytes: message.transaction.span.bytes) { store.rollback(id) }
        succeed(call) { _ in }
    }
}

/// A connection as one that begins transactions, in each store that it has called. Confined to the loop.
private final class TransactionOwners {
    private var owners: [TransactionOwner] = []

    /// Stores whose owners are kept; those called last.
    private static let storesMax = 64

    func owner(in store: DocumentStore) -> TransactionOwner {
        if let known = owners.last(where: { $0.begins(in: store) }) { return known }
        if owners.count >= Self.storesMax { owners.removeFirst() }
        let owner = store.makeTransactionOwner()
        owners.append(owner)
        return owner
    }
}
