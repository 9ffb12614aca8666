// The figures of stores on the page of metrics: without a label for the only one, with the label `store` for several.

internal import Archive
internal import Basics
internal import DocumentStore
internal import Storage

/// What the stores of a server say at one moment.
struct StoreFigures {
    private struct Store {
        let labels: [(String, String)]
        let store: DocumentStore
        let statistics: StoreStatistics
    }

    private let stores: [Store]

    init(_ stores: [ServedStore]) {
        self.stores = stores.map { served in
            let store = served.store
            return Store(
                labels: stores.count == 1 ? [] : [("store", served.name)], store: store, statistics: store.statistics)
        }
    }

    /// Appends all families.
    func append(to page: inout MetricsText) {
        let all = parts { $0 }
        for metric in StoreMetric.all {
            all.append(metric.name, metric.kind, metric.help, to: &page) { metric.value($0) }
        }
        appendCommitGroups(&page)
        appendFiles(&page)
        appendIndexSizes(&page)
        appendArchive(&page)
        appendCluster(&page)
    }

    /// A family with some labels for each store.
    private func labelled(
        _ name: String, _ kind: MetricsText.Kind, _ help: String, in page: inout MetricsText,
        _ values: (Store) -> [((String, String), Int)]
    ) {
        page.family(name, kind, help)
        for store in stores {
            for (label, value) in values(store) { page.append("", [label] + store.labels, value.metricsText) }
        }
    }

    // MARK: Commits and files

    /// One microsecond to one minute, each bucket twice as wide as the one before.
    private static let timeBuckets = 10...36
    /// One to 65,535.
    private static let sizeBuckets = 1...16

    private func appendCommitGroups(_ page: inout MetricsText) {
        page.family("hearth_commit_group_requests", .histogram, "Requests of one commit group.")
        for store in stores {
            page.histogram(store.labels, store.statistics.groupRequests, buckets: Self.sizeBuckets, scale: 1)
        }
        page.family("hearth_sync_seconds", .histogram, "Time to write and sync the log frame of a commit group.")
        for store in stores {
            page.histogram(store.labels, store.statistics.engine.syncNanoseconds, buckets: Self.timeBuckets, scale: 1e9)
        }
    }

    private func appendFiles(_ page: inout MetricsText) {
        labelled("hearth_log_segments", .gauge, "Segments of the write-ahead log.", in: &page) { store in
            let engine = store.statistics.engine
            return [(("state", "used"), engine.logSegmentsInUse), (("state", "spare"), engine.logSegmentsSpare)]
        }
        page.family("hearth_log_file_bytes", .gauge, "Size of all log segments.")
        for store in stores {
            let engine = store.statistics.engine
            let segments = engine.logSegmentsInUse + engine.logSegmentsSpare
            page.append(
                "", store.labels, (segments * store.store.configuration.engine.logSegmentBytes).metricsText)
        }
        page.family(
            "hearth_run_written_bytes_total", .counter, "Bytes written to runs, by level; checkpoints write level 0.")
        for store in stores {
            for (level, bytes) in store.statistics.engine.runBytesWritten.enumerated() {
                page.append("", [("level", "\(level)")] + store.labels, bytes.metricsText)
            }
        }
    }

    private func appendIndexSizes(_ page: inout MetricsText) {
        typealias Size = (entries: Int, bytes: Int)
        func sizes(_ store: Store) -> [(kind: String, size: Size)] {
            let sizes = store.store.indexSizes
            return [
                ("values", (sizes.values.entries, sizes.values.bytes)),
                ("elements", (sizes.elements.entries, sizes.elements.bytes)),
                ("declared", (sizes.declared.entries, sizes.declared.bytes)),
                ("searches", (sizes.searches.entries, sizes.searches.bytes)),
            ]
        }
        labelled("hearth_index_entries", .gauge, "Index entries in runs, estimated.", in: &page) { store in
            sizes(store).map { (("kind", $0.kind), $0.size.entries) }
        }
        labelled("hearth_index_bytes", .gauge, "Bytes of index entries in runs, estimated.", in: &page) { store in
            sizes(store).map { (("kind", $0.kind), $0.size.bytes) }
        }
    }

    // MARK: Archive and cluster

    /// Figures of the stores that have them, for families of one number for each store.
    private struct Parts<Part> {
        let all: [(labels: [(String, String)], part: Part)]

        func append(
            _ name: String, _ kind: MetricsText.Kind, _ help: String, to page: inout MetricsText,
            _ value: (Part) -> any MetricsNumber
        ) {
            if all.isEmpty { return }
            page.family(name, kind, help)
            for store in all { page.append("", store.labels, value(store.part).metricsText) }
        }
    }

    private func parts<Part>(_ value: (StoreStatistics) -> Part?) -> Parts<Part> {
        Parts(all: stores.compactMap { store in value(store.statistics).map { (store.labels, $0) } })
    }

    private func appendArchive(_ page: inout MetricsText) {
        let archives = parts(\.archive)
        func single(
            _ name: String, _ kind: MetricsText.Kind, _ help: String, _ value: (ArchiveStatistics) -> any MetricsNumber
        ) { archives.append(name, kind, help, to: &page, value) }
        single("hearth_archive_lag_seconds", .gauge, "Time since the archive had every commit; 0 if it has.") {
            Double($0.lagMilliseconds) / 1e3
        }
        single("hearth_archive_failing", .gauge, "1 while the archive cannot be written and that is tried again.") {
            $0.failure != nil
        }
        single("hearth_archive_failures_total", .counter, "Attempts to write the archive that failed.") { $0.failures }
        single("hearth_archive_written_bytes_total", .counter, "Bytes written to the archive.") { $0.bytesWritten }
        single("hearth_archive_bases_total", .counter, "Bases written to the archive.") { $0.bases }
        single(
            "hearth_archive_base_seconds", .gauge, "Time of the newest base's last commit, in seconds since 1970."
        ) { Double($0.baseVersion?.microseconds ?? 0) / 1e6 }
        single(
            "hearth_archive_gaps_total", .counter, "Times that the archive lost commits because it lagged too far."
        ) { $0.gaps }
    }

    private func appendCluster(_ page: inout MetricsText) {
        let members = parts(\.cluster)
        func single(
            _ name: String, _ kind: MetricsText.Kind, _ help: String, _ value: (ClusterFigures) -> any MetricsNumber
        ) { members.append(name, kind, help, to: &page, value) }
        single("hearth_cluster_leads", .gauge, "1 if this server leads the store and holds the lease.") { $0.leads }
        single(
            "hearth_cluster_epoch", .gauge, "The epoch in which this server led last; 0 if it never did."
        ) { $0.epoch }
        single("hearth_cluster_sequence", .gauge, "The last group of the log that this server has.") { $0.sequence }
        single(
            "hearth_cluster_database_silence_seconds", .gauge, "Time since the database answered last."
        ) { Double($0.silenceMilliseconds) / 1e3 }
        single("hearth_cluster_groups_appended_total", .counter, "Groups that this server appended to the log.") {
            $0.groupsAppended
        }
        single("hearth_cluster_appended_bytes_total", .counter, "Bytes of these groups.") { $0.bytesAppended }
        single("hearth_cluster_groups_applied_total", .counter, "Groups of other servers that were applied.") {
            $0.groupsApplied
        }
        single("hearth_cluster_groups_streamed_total", .counter, "Those that came over the stream of the leader.") {
            $0.groupsStreamed
        }
        single(
            "hearth_cluster_unknown_outcomes_total", .counter,
            "Appends whose connection ended before the reply, so that the outcome had to be looked up."
        ) { $0.outcomesUnknown }
        appendPlaces(&page)
        appendBases(&page)
        appendMoves(&page)
    }

    /// Of several stores: where their logs lie, and whether the home database answers.
    private func appendPlaces(_ page: inout MetricsText) {
        let places = parts { $0.cluster?.database }
        if !places.all.isEmpty {
            page.family(
                "hearth_cluster_store_info", .gauge, "1; the label says which database has the log of the store.")
            for store in places.all { page.append("", store.labels + [("database", store.part)], "1") }
        }
        parts { $0.cluster?.homeSilenceMilliseconds }.append(
            "hearth_cluster_home_silence_seconds", .gauge, "Time since the home database answered last.", to: &page
        ) { Double($0) / 1e3 }
    }

    private func appendBases(_ page: inout MetricsText) {
        let bases = parts { $0.cluster?.bases }
        bases.append("hearth_cluster_bases_total", .counter, "Bases that this server has made.", to: &page) { $0.made }
        bases.append(
            "hearth_cluster_base_failures_total", .counter, "Attempts to make a base that came to nothing.", to: &page
        ) { $0.failed }
        bases.append(
            "hearth_cluster_base_bytes", .gauge, "Bytes of the last base that this server made.", to: &page
        ) { $0.lastBytes }
        bases.append(
            "hearth_cluster_base_duration_seconds", .gauge, "Time that it took to make it.", to: &page
        ) { Double($0.lastMilliseconds) / 1e3 }
        parts { $0.cluster?.bases.isReachable }.append(
            "hearth_cluster_base_directory_reachable", .gauge,
            "1 if this server has the directory for bases, once it is used.", to: &page
        ) { $0 }
    }

    private func appendMoves(_ page: inout MetricsText) {
        let moves = parts { $0.cluster?.moves }
        moves.append(
            "hearth_moves_active", .gauge, "Databases that this server moves away from the store.", to: &page
        ) { $0.active }
        moves.append(
            "hearth_moves_completed_total", .counter, "Databases that this server has moved away.", to: &page
        ) { $0.completed }
        moves.append(
            "hearth_moves_documents_total", .counter, "Documents that were sent to other stores.", to: &page
        ) { $0.documents }
        moves.append(
            "hearth_moves_last_pause_seconds", .gauge, "How long no store took commits in the last move.", to: &page
        ) { Double($0.lastPauseMilliseconds) / 1e3 }
    }
}
