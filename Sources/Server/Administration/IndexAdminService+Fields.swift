// Settings of single fields.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import Indexing

extension IndexAdminService {
    // MARK: Reading

    func field(_ name: AdminFieldName) throws(RequestError) -> AdminField {
        field(name, settings(of: name.group))
    }

    /// The settings of the fields of a collection group; nil if they have none.
    func settings(of group: AdminGroup) -> DocumentStore.FieldSettings? {
        store.fieldSettings(of: group.collectionID, in: group.database)
    }

    /// The index by which documents that a field makes expire are found; nil if it makes none expire.
    func expiryIndex(
        of name: AdminFieldName, _ settings: DocumentStore.FieldSettings?
    ) -> DocumentStore.PresentIndex? {
        guard let field = name.field, settings?.declared.contains(where: { $0.field == field && $0.expires }) == true
        else { return nil }
        let shape = IndexShape.group(name.group.collectionID, field, .ascending)
        return store.declaredIndexes(of: shape, in: name.group.database).first { $0.state != .dropping }
    }

    func field(_ name: AdminFieldName, _ settings: DocumentStore.FieldSettings?) -> AdminField {
        let overrides = settings?.effective ?? []
        let isSettled = settings?.isSettled ?? true
        let own = settings?.declared.first { $0.field == name.field }
        let modes = FieldOverride.modes(of: name.field?.utf8Segments ?? [], by: overrides)
        let state: AdminIndex.State = isSettled ? .ready : settings?.failure == nil ? .creating : .needsRepair
        var config = AdminField.IndexConfig(
            indexes: modes.adminMessages(of: name.path, state), isReverting: !isSettled)
        if own?.indexes == nil {
            config.usesAncestorConfig = true
            config.ancestorField = "\(Self.ancestor(of: name, overrides))"
        }
        var ttl: AdminField.TTLConfig?
        if own?.expires == true {
            let index = expiryIndex(of: name, settings)
            ttl = AdminField.TTLConfig(state: AdminField.TTLConfig.State(index?.state ?? .building))
        }
        return AdminField(name: "\(name)", indexConfig: config, ttlConfig: ttl)
    }

    /// The field whose settings a field without its own has: of the nearest map around it, else of `*`.
    private static func ancestor(of name: AdminFieldName, _ overrides: [FieldOverride]) -> AdminFieldName {
        let path = name.field?.utf8Segments ?? []
        let around = overrides.filter {
            let segments = $0.field?.utf8Segments ?? []
            return $0.indexes != nil && segments.count < path.count && path.starts(with: segments)
        }
        if let nearest = around.max(by: { ($0.field?.count ?? 0) < ($1.field?.count ?? 0) }) {
            return AdminFieldName(name.group, nearest.field)
        }
        let defaults = AdminGroup(database: name.group.database, collectionID: AdminGroup.defaults)
        return AdminFieldName(defaults, nil)
    }

    func fields(_ request: AdminListRequest) throws(RequestError) -> AdminFieldPage {
        let group = try AdminGroup(request.parent)
        let wanted = try FieldFilter(request.filter)
        let all = settledFields(in: group.database).filter {
            group.covers($0.settings.collectionID) && wanted.admits($0.override)
        }.map { (name: "\($0.name)", field: $0) }
        let (page, next) = Self.page(of: all, \.name, size: request.pageSize, after: request.pageToken)
        return AdminFieldPage(fields: page.map { field($0.field.name, $0.field.settings) }, nextPageToken: next)
    }

    /// A field with a declared override.
    struct SettledField {
        let name: AdminFieldName
        let override: FieldOverride
        /// Of its group.
        let settings: DocumentStore.FieldSettings
    }

    func settledFields(in database: DatabaseName) -> [SettledField] {
        store.fieldSettings(in: database).flatMap { settings in
            let group = AdminGroup(database: database, collectionID: settings.collectionID)
            return settings.declared.map {
                SettledField(name: AdminFieldName(group, $0.field), override: $0, settings: settings)
            }
        }
    }

    // MARK: Changing

    func updateField(_ call: Call, _ request: UpdateFieldRequest) throws {
        guard let message = request.field else { throw RequestError.invalidArgument("The field is missing.") }
        let name = try AdminFieldName(message.name)
        guard name.group.collectionID != AdminGroup.defaults else {
            throw RequestError(
                .unimplemented, "The settings of all collection groups together cannot be changed by this server.")
        }
        let mask = request.mask ?? []
        let known = ["index_config", "ttl_config"]
        if let path = mask.first(where: { !known.contains($0) }) {
            throw RequestError.invalidArgument("The mask of a field has index_config and ttl_config, not \"\(path)\".")
        }
        let setsIndexes = mask.isEmpty || mask.contains(known[0])
        let setsExpiry = mask.isEmpty || mask.contains(known[1])
        let config = message.indexConfig.flatMap { $0.usesAncestorConfig ? nil : $0 }
        let modes = try config.map { try FieldOverride.Modes($0.indexes, of: name) }
        let expires = message.ttlConfig != nil
        change(call, in: name.group.database, "update", of: "\(name)") { declaration in
            let position = declaration.fieldOverrides.firstIndex {
                $0.collectionID.hasSameUTF8(as: name.group.collectionID) && $0.field == name.field
            }
            var override =
                position.map { declaration.fieldOverrides.remove(at: $0) }
                ?? FieldOverride(collectionID: name.group.collectionID, field: name.field, indexes: nil)
            if setsIndexes { override.indexes = modes }
            if setsExpiry { override.expires = expires }
            if override.indexes != nil || override.expires { declaration.fieldOverrides.append(override) }
        } completion: { admin in
            admin.reply(call, try admin.newestChange(of: name))
        }
    }
}

/// Which fields a listing has.
private struct FieldFilter {
    private var admitsIndexes = false
    private var admitsExpiry = false

    /// - Throws: `INVALID_ARGUMENT` for a filter other than those that the public API has.
    init(_ text: String) throws(RequestError) {
        if text.isEmpty {
            (admitsIndexes, admitsExpiry) = (true, true)
            return
        }
        for part in text.replacing(" OR ", with: "\n").split(separator: "\n") {
            switch part.replacing(" ", with: "").replacing("=", with: ":") {
            case "indexConfig.usesAncestorConfig:false": admitsIndexes = true
            case "ttlConfig:*": admitsExpiry = true
            default:
                throw .invalidArgument(
                    "The filter of fields is indexConfig.usesAncestorConfig:false, ttlConfig:*, or both with OR.")
            }
        }
    }

    func admits(_ override: FieldOverride) -> Bool {
        admitsIndexes && override.indexes != nil || admitsExpiry && override.expires
    }
}

extension AdminField.TTLConfig.State {
    /// - Parameter progress: of the index by which expired documents are found.
    fileprivate init(_ progress: DocumentStore.IndexProgress) {
        switch progress {
        case .ready: self = .active
        case .failed: self = .needsRepair
        case .building, .dropping, .waiting: self = .creating
        }
    }
}
