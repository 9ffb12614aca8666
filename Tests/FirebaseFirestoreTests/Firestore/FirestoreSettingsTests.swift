// Settings: defaults, copies, equality and rules.

import Foundation
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct FirestoreSettingsTests {
    @Test
    func `The defaults are the SDK's, the host comes from the environment`() {
        let settings = FirestoreSettings(environment: [:])
        expectEqual(settings.host, "127.0.0.1:8080")
        expect(settings.isSSLEnabled)
        expect(settings.isPersistenceEnabled)
        expectEqual(settings.cacheSizeBytes, 104_857_600)
        expectEqual(settings.dispatchQueue.label, DispatchQueue.main.label)
        expectEqual(settings, FirestoreSettings(environment: [:]))
        expectEqual(FirestoreSettings(environment: ["FIRESTORE_EMULATOR_HOST": "h:1"]).host, "h:1")
        expectEqual(
            FirestoreSettings(environment: ["FIRESTORE_EMULATOR_HOST": "h:1", "HEARTH_ADDRESS": "g:2"]).host, "g:2")
        expectEqual(FirestoreSettings(environment: ["HEARTH_DATA": "/a b/c"]).host, "file:///a%20b/c")
        expectEqual(FirestoreSettings(environment: ["HEARTH_DATA": "file::memory:"]).host, "file::memory:")
        expectEqual(FirestoreSettings(environment: ["HEARTH_DATA": "/a", "HEARTH_ADDRESS": "g:2"]).host, "g:2")
    }

    @Test
    func `Copies are equal and independent`() {
        let settings = FirestoreSettings(environment: [:])
        settings.host = "h:1"
        settings.cacheSizeBytes = FirestoreCacheSizeUnlimited
        let copy = settings.copy() as! FirestoreSettings
        expectEqual(copy, settings)
        copy.host = "g:1"
        expect(copy != settings)
        expectEqual(settings.host, "h:1")
    }

    @Test
    func `A token provider belongs to the settings and their copies`() async throws {
        let settings = FirestoreSettings(environment: [:])
        expectNil(settings.tokenProvider)
        settings.tokenProvider = { $0 ? "new" : "old" }
        let copy = settings.copy() as! FirestoreSettings
        expectEqual(copy, settings)
        try await expectEqual(copy.tokenProvider?(true), "new")
        copy.tokenProvider = { _ in "other" }
        expect(copy != settings)
        copy.tokenProvider = nil
        expectEqual(copy, FirestoreSettings(environment: [:]))
    }

    @Test
    func `Cache settings compare by value`() {
        expectEqual(PersistentCacheSettings(), PersistentCacheSettings(sizeBytes: 104_857_600))
        expect(PersistentCacheSettings(sizeBytes: 1_048_576) != PersistentCacheSettings())
        expectEqual(MemoryCacheSettings(), MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings()))
        expect(MemoryCacheSettings() != MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting()))
    }

    @Test
    func `The two ways to describe the cache cannot be mixed`() {
        let settings = FirestoreSettings(environment: [:])
        settings.cacheSettings = MemoryCacheSettings()
        expectNil(settings.violation)
        settings.isPersistenceEnabled = true
        expect(settings.violation != nil)
    }

    @Test(arguments: [
        (Int64(1_048_576), true), (-1, true), (1_048_575, false), (0, false), (-2, false),
    ])
    func `A cache holds at least 1 MiB or is unlimited`(size: Int64, isAllowed: Bool) {
        expectEqual(CacheSize.violation(of: size) == nil, isAllowed)
    }

    @Test
    func `An instance gives out copies of its settings`() {
        let firestore = TestFirestore.detached()
        let settings = firestore.settings
        settings.host = "h:1"
        expect(firestore.settings.host != "h:1")
        firestore.settings = settings
        settings.host = "later:1"
        expectEqual(firestore.settings.host, "h:1")
        firestore.useEmulator(withHost: "::1", port: 9)
        expectEqual(firestore.settings.host, "[::1]:9")
        expect(!firestore.settings.isSSLEnabled)
    }
}
