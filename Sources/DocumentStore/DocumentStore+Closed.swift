// A store that was never open.

internal import MemoryEngine

extension DocumentStore {
    /// What stands for a store that cannot be opened yet: one of nothing, in memory, that was closed. It refuses
    /// everything, and its log counts as one that cannot be reached.
    ///
    /// - Parameter configuration: of the store that it stands for. Its directory is left alone.
    package static func closed(for configuration: StoreConfiguration) throws -> DocumentStore {
        var nothing = StoreConfiguration(directory: configuration.directory)
        nothing.volume = MemoryVolume()
        nothing.clusterFigures = configuration.clusterFigures
        let store = try DocumentStore.open(nothing)
        store.isCutOff = true
        store.close()
        return store
    }
}
