// Index builds, changes of fields and changes of databases as long-running operations.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import Indexing

extension IndexAdminService {
    func operation(_ operation: AdminOperation) throws(RequestError) -> LongRunningOperation {
        switch operation {
        case .index(let database, _, _):
            let found = builds(in: database).first { $0.operation(in: database).name == operation.name }
            guard let found else { throw RequestError(.notFound, "There is no operation \(operation.name).") }
            return Self.build(of: found, in: database)
        case .field(let name, let version): return try change(of: name, version, settings(of: name.group))
        case .database(let name, let change, let version): return try self.operation(name, change, version)
        }
    }

    /// The indexes that operations are about, each once: one whose entries other libraries made may still be dropped
    /// beside its successor.
    private func builds(in database: DatabaseName) -> [DocumentStore.PresentIndex] {
        var builds: [String: DocumentStore.PresentIndex] = [:]
        for index in declaredIndexes(in: database) {
            let name = index.operation(in: database).name
            if index.state != .dropping || builds[name] == nil { builds[name] = index }
        }
        return Array(builds.values)
    }

    /// The operation of the index that was declared last with a shape.
    func newestBuild(of shape: IndexShape, in database: DatabaseName) throws(RequestError) -> LongRunningOperation {
        let newest = builds(in: database).filter { $0.shape == shape }.max { $0.created < $1.created }
        guard let newest else { throw RequestError(.notFound, "The index was deleted.") }
        return Self.build(of: newest, in: database)
    }

    /// A build that cannot continue is tried again, so its operation is in progress: one that has ended may never be in
    /// progress again. The state of the index says it.
    private static func build(
        of present: DocumentStore.PresentIndex, in database: DatabaseName
    ) -> LongRunningOperation {
        let index = present.shape.adminMessage(in: database, AdminIndex.State(present.state))
        let (operationState, result): (OperationState, LongRunningOperation.Result?) =
            switch present.state {
            case .building, .waiting, .failed: (.processing, nil)
            case .ready: (.successful, .response(AnyMessage(index, type: "google.firestore.admin.v1.Index")))
            case .dropping:
                (.cancelled, .error(StatusMessage(code: .cancelled, message: "The index was deleted.")))
            }
        let metadata = IndexOperationMetadata(index: index.name, state: operationState)
        return LongRunningOperation(
            name: present.operation(in: database).name,
            metadata: AnyMessage(metadata, type: IndexOperationMetadata.type), result: result)
    }

    /// The operation of the last change of a field.
    func newestChange(of name: AdminFieldName) throws(RequestError) -> LongRunningOperation {
        let settings = settings(of: name.group)
        return try change(of: name, settings?.declaredAt ?? 0, settings)
    }

    /// An operation is done when nothing is under way that it began, or that was under way when it began. So one that
    /// is done stays so when the field is changed again.
    ///
    /// - Parameters:
    ///   - version: of the change; 0 for whichever was the last.
    ///   - settings: of the field's group; nil if it has none.
    private func change(
        of name: AdminFieldName, _ version: UInt64, _ settings: DocumentStore.FieldSettings?
    ) throws(RequestError) -> LongRunningOperation {
        let operation = AdminOperation.field(name, version: version).name
        guard version <= settings?.declaredAt ?? 0 else {
            throw RequestError(.notFound, "There is no operation \(operation).")
        }
        var begun: [UInt64] = []
        if let settings, !settings.isSettled { begun.append(settings.begun) }
        if let index = expiryIndex(of: name, settings), index.state != .ready { begun.append(index.created) }
        let isDone = version == 0 ? begun.isEmpty : begun.allSatisfy { $0 > version }
        let metadata = FieldOperationMetadata(field: "\(name)", state: isDone ? .successful : .processing)
        let response = AnyMessage(field(name, settings), type: "google.firestore.admin.v1.Field")
        return LongRunningOperation(
            name: operation, metadata: AnyMessage(metadata, type: FieldOperationMetadata.type),
            result: isDone ? .response(response) : nil)
    }

    /// What is listed as an operation, with its name.
    private enum ListedOperation {
        case build(DocumentStore.PresentIndex)
        case change(SettledField)
        case deletion(UInt64)
    }

    private func listed(in database: DatabaseName) -> [(name: String, operation: ListedOperation)] {
        var all: [(name: String, operation: ListedOperation)] = builds(in: database).map {
            ($0.operation(in: database).name, .build($0))
        }
        for field in settledFields(in: database) {
            let operation = AdminOperation.field(field.name, version: field.settings.declaredAt)
            all.append((operation.name, .change(field)))
        }
        if let known = store.describeDatabase(database), let settings = known.settings, known.isBeingDeleted {
            let operation = AdminOperation.database(database, .delete, version: settings.deleteMicroseconds)
            all.append((operation.name, .deletion(settings.deleteMicroseconds)))
        }
        return all
    }

    /// The operations of all indexes and fields that are declared, finished ones too. Makes those of the page alone.
    func operations(_ request: ListOperationsRequest) throws(RequestError) -> OperationPage {
        let suffix = "/operations"
        let parent = request.name.hasSuffix(suffix) ? String(request.name.dropLast(suffix.count)) : request.name
        let database = try DatabaseName(parent)
        guard request.filter.isEmpty else { throw .invalidArgument("Operations cannot be filtered.") }
        let (page, next) = Self.page(
            of: listed(in: database), \.name, size: request.pageSize, after: request.pageToken)
        let operations = try page.map { (_, operation) throws(RequestError) in
            switch operation {
            case .build(let index): Self.build(of: index, in: database)
            case .change(let field): try change(of: field.name, field.settings.declaredAt, field.settings)
            case .deletion(let version): try self.operation(database, .delete, version)
            }
        }
        return OperationPage(operations: operations, nextPageToken: next)
    }

    // MARK: Cancelling

    /// Cancels the build of an index: deletes the index, unless it is complete. An operation that is done is left as it
    /// is.
    func cancelOperation(_ call: Call, _ operation: AdminOperation) throws {
        _ = try self.operation(operation)
        guard case .index(let database, let identifier, _) = operation else {
            throw RequestError(
                .unimplemented,
                """
                A change of a field or a database cannot be cancelled. Set the previous settings with UpdateField or \
                UpdateDatabase.
                """)
        }
        let name = operation.name
        let isBuilding: @Sendable (DocumentStore.PresentIndex) -> Bool = { index in
            index.state.isUnderWay && index.operation(in: database).name == name
        }
        if !builds(in: database).contains(where: isBuilding) { return service.succeed(call) { _ in } }
        change(call, in: database, "cancel", of: name) { [store] declaration in
            // Decided on the commit thread, on which builds are completed.
            if store.declaredIndexes(in: database).contains(where: isBuilding) {
                declaration.indexes.removeAll { $0.identifier == identifier }
            }
        } completion: {
            $0.service.succeed(call) { _ in }
        }
    }

    /// Nothing about operations is stored, so there is nothing to delete.
    ///
    /// - Throws: `notFound`; `unimplemented` for an operation that exists.
    func deleteOperation(_ operation: AdminOperation) throws {
        _ = try self.operation(operation)
        throw RequestError(
            .unimplemented,
            "An operation exists as long as its index, its field or its database has settings. Delete those instead.")
    }

    // MARK: Waiting

    /// How long a call may wait; a client that wants to wait longer calls again.
    private static let waitMillisecondsMax: UInt64 = 20_000
    private static let pollMilliseconds: UInt64 = 50

    /// Replies when the operation is done or the time is over, with the operation as it is then.
    func waitOperation(_ call: Call, _ request: WaitOperationRequest) throws {
        let operation = try AdminOperation(request.name)
        let wait = min(request.timeoutMilliseconds ?? Self.waitMillisecondsMax, Self.waitMillisecondsMax)
        try poll(call, operation, leftMilliseconds: wait)
    }

    private func poll(_ call: Call, _ operation: AdminOperation, leftMilliseconds: UInt64) throws {
        let state = try self.operation(operation)
        if state.result != nil || leftMilliseconds == 0 { return reply(call, state) }
        let pause = min(leftMilliseconds, Self.pollMilliseconds)
        call.loop.execute(afterMilliseconds: pause) { [self] in
            do {
                try poll(call, operation, leftMilliseconds: leftMilliseconds - pause)
            } catch {
                service.fail(call, error)
            }
        }
    }
}

extension DocumentStore.PresentIndex {
    /// The operation that builds the index.
    fileprivate func operation(in database: DatabaseName) -> AdminOperation {
        .index(database, identifier: shape.identifier, version: created)
    }
}
