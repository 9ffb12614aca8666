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
    /// If the call is over by then, its client never learns the id, and the transaction is rolled back.
    func beginTransaction(
        _ call: Call, _ options: TransactionOptions, in database: DatabaseName,
        _ body: @escaping (FirestoreService, TransactionIdentifier) throws -> Void
    ) {
        let begun = { (service: FirestoreService, transaction: TransactionIdentifier) throws in
            guard call.isOpen else { return service.store.rollback(transaction) }
            try body(service, transaction)
        }
        store.beginTransaction(
            in: database, options: options, owner: owner(of: call), isStrict: reader.isStrict,
            completion: continuation(call, begun))
    }

    /// Ends a transaction whose id was not sent to the client. Nobody else can end it, and it may have locks.
    ///
    /// - Parameter transaction: empty if the request began none, or the id was sent.
    func rollBackUnsent(_ transaction: [UInt8]) {
        if let unsent = try? TransactionIdentifier(bytes: transaction.byteSpan) { store.rollback(unsent) }
    }

    /// Does a part of a read, and ends the transaction that the read has begun if it fails. A read that waits for
    /// storage is made again in the transaction, unless its call is over by then: that ends the transaction too.
    ///
    /// - Parameters:
    ///   - transaction: empty if the request began none.
    ///   - body: changes nothing before it throws `pending`.
    func rollingBack(
        _ call: Call, _ transaction: [UInt8], _ body: @escaping (FirestoreService) throws -> Void
    ) throws {
        if transaction.isEmpty { return try body(self) }
        do {
            try body(self)
        } catch {
            guard (error as? RequestError)?.isPending == true else {
                rollBackUnsent(transaction)
                throw error
            }
            whenReady(call) { service, ready in
                guard call.isOpen else { return service.rollBackUnsent(transaction) }
                do {
                    try service.rollingBack(call, transaction) { service in
                        try ready.get()
                        try body(service)
                    }
                } catch {
                    service.fail(call, error)
                }
            }
        }
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
            throw RequestError.invalidArgument("Invalid transaction.")
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
