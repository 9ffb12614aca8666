// swift-tools-version: 6.2
// Hearth: a durable document database that speaks Firestore.
// A folder under Sources is a layer; a target may depend only on the targets listed above it.

import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableExperimentalFeature("Lifetimes"),
]

/// The layers in which raw pointers are allowed; every use there says `unsafe`.
let strictAndUnsafe = strict + [.strictMemorySafety()]

func systemLibrary(_ name: String, pkgConfig: String, apt: String) -> Target {
    .systemLibrary(name: name, path: "Sources/System/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}

/// - Parameter optimizes: for tests that visit millions of states, or each line of the tree. Tools/one-object reads the
///   condition.
func tests(
    _ name: String, _ dependencies: [Target.Dependency], exclude: [String] = [], resources: [Resource]? = nil,
    optimizes: Bool = false
) -> Target {
    .testTarget(
        name: name, dependencies: dependencies + ["TestSupport"], exclude: exclude, resources: resources,
        swiftSettings: strict + (optimizes ? [.unsafeFlags(["-O"]), .define("HEARTH_OPTIMIZED_TEST")] : []))
}

/// HEARTH_COMMIT (hexadecimal digits) and HEARTH_RELEASE (1) in the environment are part of `hearth --version`.
let build: [CSetting] = ["HEARTH_COMMIT", "HEARTH_RELEASE"].compactMap { name in
    Context.environment[name].flatMap { $0.isEmpty ? nil : .define(name, to: $0) }
}

let package = Package(
    name: "Hearth",
    products: [
        .executable(name: "hearth", targets: ["hearth"]),
        .library(
            name: "FirebaseFirestore",
            targets: ["FirebaseFirestore", "FirebaseCore", "Firebase", "FirebaseFirestoreSwift"]),
        // Models, key paths and async sequences over FirebaseFirestore, for new code.
        .library(name: "TypedFirestore", targets: ["TypedFirestore"]),
        // For tools that handle document bytes themselves, and for Benchmarks.
        .library(name: "DocumentCoding", targets: ["DocumentCoding"]),
        .library(name: "CFirestoreProto", targets: ["CFirestoreProto"]),
    ],
    traits: [
        .trait(name: "InProcess", description: "The client can open a data directory in its own process."),
        .default(enabledTraits: ["InProcess"]),
    ],
    targets: [
        // C libraries of the system.
        systemLibrary("CUV", pkgConfig: "libuv", apt: "libuv1-dev"),
        systemLibrary("CLMDB", pkgConfig: "lmdb", apt: "liblmdb-dev"),
        systemLibrary("CXXHash", pkgConfig: "libxxhash", apt: "libxxhash-dev"),
        systemLibrary("COpenSSL", pkgConfig: "libcrypto", apt: "libssl-dev"),
        systemLibrary("COpenSSLTLS", pkgConfig: "libssl", apt: "libssl-dev"),
        systemLibrary("CNGHTTP2", pkgConfig: "libnghttp2", apt: "libnghttp2-dev"),
        systemLibrary("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
        systemLibrary("CProtobufC", pkgConfig: "libprotobuf-c", apt: "libprotobuf-c-dev"),
        .systemLibrary(name: "CLinux", path: "Sources/System/CLinux"),
        .systemLibrary(name: "CPrefetch", path: "Sources/System/CPrefetch"),
        .target(name: "CArguments", path: "Sources/System/CArguments"),
        .target(name: "CBuild", path: "Sources/System/CBuild", cSettings: build),
        // The files of the console, read by the compiler.
        .target(name: "CConsole", path: "Sources/CConsole", exclude: ["web"]),
        // libcurl (apt: libcurl4-openssl-dev), loaded when it is first used.
        .target(name: "CCurl", path: "Sources/System/CCurl"),
        // libpq (apt: libpq-dev), loaded when it is first used.
        .target(name: "CPostgreSQL", path: "Sources/System/CPostgreSQL"),
        // RE2 (apt: libre2-dev) has a C++ interface; the target has a C one.
        .target(name: "CRE2", path: "Sources/System/CRE2", linkerSettings: [.linkedLibrary("re2")]),
        // ICU and Snowball, loaded when a text is first analysed. No headers are needed.
        .target(name: "CText", path: "Sources/System/CText"),
        .target(name: "CFirestoreProto", dependencies: ["CProtobufC"]),

        // Bytes, text, status codes, threads, clocks.
        .target(
            name: "Basics",
            swiftSettings: strictAndUnsafe + [.define("HEARTH_YIELD_POINTS", .when(configuration: .debug))]),

        // Documents.
        .target(name: "DocumentModel", dependencies: ["Basics"], swiftSettings: strictAndUnsafe),
        .target(
            name: "DocumentCoding", dependencies: ["Basics", "CPrefetch", "DocumentModel"],
            swiftSettings: strictAndUnsafe),
        .target(name: "DocumentJSON", dependencies: ["Basics", "DocumentModel"], swiftSettings: strictAndUnsafe),
        .target(
            name: "FirestoreMessages", dependencies: ["CFirestoreProto", "Basics", "DocumentModel"],
            swiftSettings: strictAndUnsafe),
        .target(
            name: "FirestoreJSON", dependencies: ["CFirestoreProto", "Basics", "DocumentModel", "DocumentJSON"],
            swiftSettings: strictAndUnsafe),

        // Expressions over document bytes, and the languages that use them.
        .target(
            name: "Expressions", dependencies: ["Basics", "CRE2", "DocumentModel"], swiftSettings: strictAndUnsafe),
        .target(
            name: "SecurityRules",
            dependencies: ["Basics", "COpenSSL", "CZlib", "DocumentModel", "DocumentJSON", "Expressions"],
            swiftSettings: strictAndUnsafe),

        // Words of texts, for searches.
        .target(name: "TextAnalysis", dependencies: ["Basics", "CText"], swiftSettings: strictAndUnsafe),

        // Storage: the seam and its rules, the log, two engines, and the type that holds either.
        .target(
            name: "Storage", dependencies: ["Basics"],
            swiftSettings: strictAndUnsafe + [.enableExperimentalFeature("SuppressedAssociatedTypes")]),
        .target(name: "FileSystem", dependencies: ["Basics", "CLinux", "Storage"], swiftSettings: strictAndUnsafe),
        // Google's managed export format.
        .target(
            name: "ManagedExport", dependencies: ["Basics", "DocumentModel", "DocumentJSON", "Storage", "FileSystem"],
            swiftSettings: strictAndUnsafe),
        .target(
            name: "CommitLog", dependencies: ["Basics", "CXXHash", "Storage", "FileSystem"],
            swiftSettings: strictAndUnsafe),
        .target(
            name: "EmbeddedEngine",
            dependencies: ["Basics", "CLMDB", "CLinux", "CPrefetch", "CXXHash", "Storage", "FileSystem", "CommitLog"],
            swiftSettings: strictAndUnsafe),
        // A log shared by several servers: lease and append as a state machine.
        .target(name: "Replication", dependencies: ["Storage"], swiftSettings: strict),
        // The same log in PostgreSQL: statements, connections, and the driver of the state machine.
        .target(
            name: "PostgreSQLLog",
            dependencies: ["Basics", "CLinux", "CPostgreSQL", "CXXHash", "Storage", "FileSystem", "Replication"],
            swiftSettings: strictAndUnsafe),
        // Archives: bases and records beside a data directory, and restores to a commit.
        .target(
            name: "Archive",
            dependencies: ["Basics", "CXXHash", "Storage", "FileSystem", "CommitLog", "EmbeddedEngine"],
            swiftSettings: strictAndUnsafe),
        .target(name: "MemoryEngine", dependencies: ["Basics", "Storage"], swiftSettings: strictAndUnsafe),
        .target(
            name: "StorageEngines", dependencies: ["Storage", "CommitLog", "EmbeddedEngine", "MemoryEngine"],
            swiftSettings: strictAndUnsafe),
        .target(
            name: "StoreFormat", dependencies: ["Basics", "COpenSSL", "DocumentModel"], swiftSettings: strictAndUnsafe),
        .target(
            name: "Indexing",
            dependencies: ["Basics", "DocumentModel", "Storage", "StorageEngines", "StoreFormat", "TextAnalysis"],
            swiftSettings: strictAndUnsafe),
        .target(
            name: "QueryEngine",
            dependencies: ["Basics", "DocumentModel", "StoreFormat", "Indexing", "TextAnalysis"],
            swiftSettings: strictAndUnsafe + [.enableExperimentalFeature("SuppressedAssociatedTypes")]),
        // Pipelines: their stages and functions over the expressions and the operators of queries.
        .target(
            name: "Pipelines",
            dependencies: ["Basics", "DocumentModel", "Expressions", "QueryEngine", "TextAnalysis"],
            swiftSettings: strict),
        .target(name: "WriteEngine", dependencies: ["Basics", "DocumentModel"], swiftSettings: strictAndUnsafe),
        .target(
            name: "ClientCache",
            dependencies: [
                "Basics", "DocumentModel", "Storage", "MemoryEngine", "StorageEngines", "StoreFormat", "Indexing",
                "QueryEngine", "WriteEngine",
            ],
            swiftSettings: strictAndUnsafe + [.enableExperimentalFeature("SuppressedAssociatedTypes")]),
        .target(
            name: "DocumentStore",
            dependencies: [
                "Basics", "CXXHash", "DocumentModel", "Storage", "FileSystem", "CommitLog", "EmbeddedEngine", "Archive",
                "MemoryEngine", "StorageEngines", "StoreFormat", "Indexing", "QueryEngine", "WriteEngine",
                "TextAnalysis",
            ],
            swiftSettings: strictAndUnsafe + [.enableExperimentalFeature("SuppressedAssociatedTypes")]),

        // Listeners: changes of the store as messages.
        .target(
            name: "Listening",
            dependencies: [
                "Basics", "COpenSSL", "DocumentModel", "FirestoreMessages", "Storage", "StoreFormat", "QueryEngine",
                "DocumentStore",
            ],
            swiftSettings: strictAndUnsafe),

        // TLS without sockets; who calls, and what a caller may do.
        .target(name: "TLS", dependencies: ["Basics", "COpenSSLTLS"], swiftSettings: strictAndUnsafe),
        .target(
            name: "Identity", dependencies: ["Basics", "COpenSSL", "DocumentJSON", "Storage", "FileSystem"],
            swiftSettings: strictAndUnsafe),
        // Keys of issuers over HTTPS.
        .target(name: "KeyFetching", dependencies: ["Basics", "CCurl", "Identity"], swiftSettings: strictAndUnsafe),

        // Calls, the service that answers them, and the connections that carry them.
        .target(name: "Calls", dependencies: ["Basics"], swiftSettings: strictAndUnsafe),
        .target(
            name: "FirestoreService",
            dependencies: [
                "Basics", "DocumentModel", "FirestoreMessages", "Storage", "Indexing", "QueryEngine", "DocumentStore",
                "Listening", "Calls", "Pipelines",
            ],
            swiftSettings: strict),
        .target(name: "EventLoops", dependencies: ["Basics", "CUV", "TLS"], swiftSettings: strictAndUnsafe),
        .target(
            name: "Connections", dependencies: ["Basics", "TLS", "Calls", "EventLoops"],
            swiftSettings: strictAndUnsafe),
        .target(
            name: "NativeProtocol", dependencies: ["Basics", "TLS", "Calls", "EventLoops", "Connections"],
            swiftSettings: strictAndUnsafe),
        .target(
            name: "HTTPProtocols",
            dependencies: ["Basics", "CNGHTTP2", "CZlib", "TLS", "Calls", "EventLoops", "Connections"],
            swiftSettings: strictAndUnsafe),

        // Who may do what: the access control of a server.
        .target(
            name: "Authorization",
            dependencies: [
                "Basics", "DocumentModel", "DocumentJSON", "Expressions", "SecurityRules", "Storage", "FileSystem",
                "WriteEngine", "DocumentStore", "Identity", "FirestoreMessages", "Calls", "FirestoreService",
            ],
            swiftSettings: strict),

        // The server, the client.
        .target(
            name: "Server",
            dependencies: [
                "Basics", "CConsole", "CLinux", "DocumentModel", "DocumentJSON", "Expressions", "FirestoreMessages",
                "FirestoreJSON", "Storage", "FileSystem", "Archive", "ManagedExport",
                "Indexing", "QueryEngine", "DocumentStore", "SecurityRules", "TLS", "Identity", "Calls", "TextAnalysis",
                "FirestoreService", "EventLoops", "Connections", "Authorization",
                "NativeProtocol", "HTTPProtocols", "Pipelines",
            ],
            swiftSettings: strict),
        .target(
            name: "HearthClient",
            dependencies: [
                "Basics", "DocumentModel", "DocumentJSON", "FirestoreMessages", "FirestoreJSON", "TLS", "Calls",
                "EventLoops", "Connections", "NativeProtocol",
            ],
            swiftSettings: strict),
        .target(
            name: "InProcess",
            dependencies: [
                "Basics", "Storage", "EmbeddedEngine", "MemoryEngine", "DocumentStore", "Calls", "EventLoops",
                "Connections", "FirestoreService", "HearthClient",
            ],
            swiftSettings: strict),
        .target(name: "FirebaseCore", dependencies: ["DocumentCoding"], swiftSettings: strict),
        .target(
            name: "FirebaseFirestore",
            dependencies: [
                "Basics", "DocumentModel", "DocumentCoding", "DocumentJSON", "FirestoreMessages", "FirestoreJSON",
                "Storage", "MemoryEngine", "StoreFormat", "QueryEngine", "ClientCache", "HearthClient",
                .byName(name: "InProcess", condition: .when(traits: ["InProcess"])), "FirebaseCore",
            ],
            swiftSettings: strict),
        .target(name: "Firebase", dependencies: ["FirebaseCore", "FirebaseFirestore"], swiftSettings: strict),
        .target(name: "FirebaseFirestoreSwift", dependencies: ["FirebaseFirestore"], swiftSettings: strict),
        .target(
            name: "TypedFirestore", dependencies: ["DocumentCoding", "FirebaseFirestore"], swiftSettings: strict),
        .executableTarget(
            name: "hearth",
            dependencies: [
                "Basics", "CArguments", "CBuild", "CXXHash", "CZlib", "DocumentModel", "DocumentJSON",
                "FirestoreMessages",
                "FirestoreJSON",
                "Storage", "FileSystem", "EmbeddedEngine", "Archive", "Indexing", "QueryEngine", "DocumentStore",
                "Calls",
                "EventLoops", "Connections", "HTTPProtocols", "FirestoreService", "Authorization", "Server",
                "HearthClient", "InProcess", "TLS", "Expressions", "SecurityRules", "Identity", "KeyFetching",
                "ManagedExport", "Pipelines", "PostgreSQLLog", "Replication", "TextAnalysis",
            ],
            swiftSettings: strict),

        // A newcomer's tour (Tools/demo) and the benchmarks' workloads (Tools/bench).
        .executableTarget(
            name: "hearth-demonstration", dependencies: ["FirebaseFirestore", "FirebaseCore"],
            swiftSettings: strict),
        .executableTarget(
            name: "hearth-bench",
            dependencies: [
                "Basics", "DocumentModel", "DocumentJSON", "StorageEngines", "QueryEngine", "DocumentStore",
                "FirestoreMessages", "HearthClient", "InProcess", "FirebaseFirestore",
            ],
            path: "Benchmarks/Workloads", swiftSettings: strict),

        // Allocations of the hot paths (Tools/test-allocations): a separate program, built for release.
        .target(name: "CAllocationCounter", path: "Tests/Allocations/Counter"),
        .executableTarget(
            name: "hearth-allocations",
            dependencies: [
                "Basics", "CAllocationCounter", "DocumentModel", "DocumentCoding", "FirestoreMessages", "QueryEngine",
                "DocumentStore",
                "FirestoreService", "Server",
            ],
            path: "Tests/Allocations/Run", swiftSettings: strict),

        // Judges cases of security rules without a server (Tools/compat rules).
        .executableTarget(
            name: "hearth-judge",
            dependencies: ["Basics", "DocumentJSON", "DocumentModel", "Expressions", "FirestoreJSON", "SecurityRules"],
            path: "Tests/Interop/rules/Judge", swiftSettings: [.swiftLanguageMode(.v6)]),

        // Tests mirror Sources.
        .target(
            name: "TestSupport", dependencies: ["Basics", "DocumentModel", "FirestoreMessages"],
            path: "Tests/TestSupport", swiftSettings: strict),
        tests("BasicsTests", ["Basics"]),
        tests("DocumentModelTests", ["Basics", "DocumentModel", "CFirestoreProto"]),
        tests("DocumentCodingTests", ["Basics", "DocumentCoding", "DocumentModel", "CFirestoreProto"]),
        tests("DocumentJSONTests", ["Basics", "DocumentJSON", "DocumentModel"], exclude: ["JSONTestSuite"]),
        tests("FirestoreMessagesTests", ["Basics", "FirestoreMessages", "DocumentModel"]),
        tests("ExpressionsTests", ["Basics", "DocumentModel", "Expressions"]),
        tests(
            "SecurityRulesTests", ["Basics", "DocumentModel", "Expressions", "SecurityRules", "StoreTestSupport"],
            resources: [.copy("Judging/RulesScripts")]),
        tests("FirestoreJSONTests", ["Basics", "CFirestoreProto", "FirestoreJSON", "DocumentModel"]),
        // Open engines, commits that can be replayed, and files to damage, for the tests of the storage modules.
        .target(
            name: "EngineTestSupport",
            dependencies: ["Basics", "Storage", "EmbeddedEngine", "MemoryEngine", "StorageEngines", "TestSupport"],
            path: "Tests/EngineTestSupport", swiftSettings: strict),
        tests("ManagedExportTests", ["Basics", "DocumentModel", "FileSystem", "ManagedExport"]),
        tests("CommitLogTests", ["Basics", "Storage", "CommitLog", "EngineTestSupport"]),
        tests("ReplicationTests", ["Replication", "Storage"], optimizes: true),
        tests("PostgreSQLLogTests", ["Basics", "Storage", "FileSystem", "Replication", "PostgreSQLLog"]),
        // Makes writes of liblmdb fail.
        .target(name: "CWriteFaults", path: "Tests/WriteFaults"),
        tests(
            "EmbeddedEngineTests",
            [
                "Basics", "CWriteFaults", "Storage", "FileSystem", "CommitLog", "EmbeddedEngine", "Archive",
                "StorageEngines", "EngineTestSupport",
            ]),
        tests(
            "ArchiveTests",
            [
                "Basics", "Storage", "FileSystem", "EmbeddedEngine", "Archive", "StorageEngines", "EngineTestSupport",
            ]),
        tests("MemoryEngineTests", ["Storage", "MemoryEngine", "EngineTestSupport"]),
        tests("StorageEnginesTests", ["Basics", "Storage", "MemoryEngine", "StorageEngines", "EngineTestSupport"]),
        // Golden scripts, random queries and naive evaluators, for the tests of the store's modules.
        .target(
            name: "StoreTestSupport",
            dependencies: ["Basics", "DocumentModel", "StoreFormat", "QueryEngine", "TestSupport"],
            path: "Tests/StoreTestSupport", swiftSettings: strict),
        tests("StoreFormatTests", ["Basics", "DocumentModel", "StoreFormat", "StoreTestSupport"]),
        tests("TextAnalysisTests", ["Basics", "TextAnalysis"]),
        tests(
            "IndexingTests", ["Basics", "DocumentModel", "Storage", "StoreFormat", "Indexing", "StoreTestSupport"]),
        tests(
            "QueryEngineTests",
            [
                "Basics", "DocumentModel", "Storage", "StoreFormat", "TextAnalysis", "Indexing", "QueryEngine",
                "StoreTestSupport",
            ],
            resources: [.copy("QueryScripts"), .copy("OperatorScripts")]),
        tests(
            "WriteEngineTests", ["Basics", "DocumentModel", "WriteEngine", "StoreTestSupport"],
            resources: [.copy("WriteScripts")]),
        tests(
            "ClientCacheTests",
            ["Basics", "DocumentModel", "FirestoreMessages", "ClientCache", "QueryEngine", "Storage"]),
        tests(
            "DocumentStoreTests",
            [
                "Basics", "StoreFormat", "Indexing", "QueryEngine", "DocumentStore", "EmbeddedEngine", "Storage",
                "MemoryEngine", "StorageEngines", "DocumentModel", "StoreTestSupport", "TextAnalysis",
            ],
            resources: [.copy("Indexes/IndexScripts")]),
        tests(
            "ListeningTests",
            [
                "Basics", "Listening", "QueryEngine", "DocumentStore", "FirestoreMessages", "DocumentModel", "Storage",
                "MemoryEngine", "EngineTestSupport",
            ]),
        // Authorities and certificates that tests make.
        .target(
            name: "TLSTestSupport", dependencies: ["COpenSSLTLS"], path: "Tests/TLSTestSupport", swiftSettings: strict),
        tests("TLSTests", ["Basics", "TLS", "TLSTestSupport"]),
        tests("IdentityTests", ["Basics", "DocumentJSON", "Identity", "TLSTestSupport"]),
        tests("KeyFetchingTests", ["Basics", "DocumentJSON", "Identity", "KeyFetching", "TLS", "TLSTestSupport"]),
        tests("EventLoopsTests", ["Basics", "EventLoops"]),
        // A server of an echo service, and clients that break rules, for the tests of connections and protocols.
        .target(
            name: "ConnectionTestSupport",
            dependencies: [
                "Basics", "CNGHTTP2", "Calls", "EventLoops", "Connections", "NativeProtocol", "Server", "TestSupport",
            ],
            path: "Tests/ConnectionTestSupport", swiftSettings: strict),
        tests("ConnectionsTests", ["Basics", "Calls", "EventLoops", "Connections", "ConnectionTestSupport"]),
        tests(
            "NativeProtocolTests",
            ["Basics", "Calls", "EventLoops", "Connections", "NativeProtocol", "ConnectionTestSupport"]),
        tests(
            "HTTPProtocolsTests",
            [
                "Basics", "CNGHTTP2", "CZlib", "Calls", "EventLoops", "Connections", "NativeProtocol", "HTTPProtocols",
                "Server", "ConnectionTestSupport",
            ]),
        // A service on a store and calls without sockets.
        .target(
            name: "ServiceTestSupport",
            dependencies: [
                "Basics", "DocumentModel", "FirestoreMessages", "Storage", "MemoryEngine", "DocumentStore", "Calls",
                "FirestoreService",
                "EventLoops", "EngineTestSupport", "TestSupport",
            ],
            path: "Tests/ServiceTestSupport", swiftSettings: strict),
        .target(
            name: "AuthorizationTestSupport",
            dependencies: ["Basics", "SecurityRules", "Identity", "FirestoreService", "Authorization"],
            path: "Tests/AuthorizationTestSupport", swiftSettings: strict),
        tests(
            "AuthorizationTests",
            [
                "Basics", "DocumentModel", "FirestoreMessages", "Storage", "FileSystem", "DocumentStore",
                "SecurityRules", "Identity", "Calls", "FirestoreService", "Authorization", "EventLoops",
                "MemoryEngine", "EngineTestSupport", "ServiceTestSupport", "AuthorizationTestSupport", "DocumentJSON",
                "TLSTestSupport",
            ]),
        tests(
            "PipelinesTests",
            [
                "Basics", "DocumentModel", "FirestoreMessages", "FirestoreJSON", "QueryEngine", "DocumentStore",
                "FirestoreService", "Indexing", "Pipelines", "Expressions", "MemoryEngine", "EngineTestSupport",
                "ServiceTestSupport", "StoreTestSupport", "TextAnalysis",
            ],
            resources: [.copy("Requests")]),
        tests(
            "FirestoreServiceTests",
            [
                "Basics", "DocumentModel", "FirestoreMessages", "DocumentStore", "Calls", "FirestoreService",
                "EventLoops", "MemoryEngine", "EngineTestSupport", "ServiceTestSupport",
            ]),
        tests(
            "ServerTests",
            [
                "Basics", "FileSystem", "DocumentModel", "FirestoreMessages", "FirestoreJSON", "DocumentStore",
                "Calls", "FirestoreService", "EventLoops", "Connections", "NativeProtocol", "HTTPProtocols", "Server",
                "TLS", "TLSTestSupport", "ConnectionTestSupport", "ServiceTestSupport", "Identity", "SecurityRules",
                "Authorization", "AuthorizationTestSupport",
            ]),
        // A server that answers by a script.
        .target(
            name: "ClientTestSupport",
            dependencies: [
                "Basics", "DocumentModel", "FirestoreMessages", "Calls", "EventLoops", "Connections", "NativeProtocol",
                "Server", "TestSupport",
            ],
            path: "Tests/ClientTestSupport", swiftSettings: strict),
        tests(
            "HearthClientTests",
            [
                "Basics", "DocumentModel", "FirestoreMessages", "Calls", "EventLoops", "Connections", "NativeProtocol",
                "HearthClient", "ClientTestSupport",
            ]),
        // Programs of users that tests start and watch end.
        .executableTarget(
            name: "client-programs", dependencies: ["FirebaseFirestore"], path: "Tests/ClientPrograms",
            swiftSettings: strict),
        tests(
            "FirebaseFirestoreTests",
            [
                "client-programs", "Basics", "ClientCache", "HearthClient", "FirebaseFirestore", "FirebaseCore",
                "Firebase",
                "FirebaseFirestoreSwift", "DocumentCoding", "DocumentModel", "QueryEngine", "DocumentStore",
                "FirestoreMessages", "FirestoreJSON", "Calls", "EventLoops", "Connections", "NativeProtocol", "Server",
                "TypedFirestore",
                "ClientTestSupport",
            ],
            resources: [.copy("Conformance/Vectors")]),
        tests("TypedFirestoreTests", ["TypedFirestore", "FirebaseFirestore", "FirebaseCore"]),
        // Rules of the source tree itself.
        tests("TidyTests", [], optimizes: true),
        // Code as users write it, in both language modes and without our own strictness.
        .testTarget(
            name: "UserCodeSwift5Tests", dependencies: ["Firebase", "FirebaseFirestoreSwift", "TestSupport"],
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "UserCodeSwift6Tests", dependencies: ["FirebaseCore", "FirebaseFirestore", "TestSupport"],
            swiftSettings: [.swiftLanguageMode(.v6)]),
        tests(
            "HearthTests",
            [
                "Authorization", "Basics", "Calls", "Storage", "hearth", "HearthClient", "FirestoreMessages",
                "FirestoreService", "DocumentModel", "DocumentStore", "EmbeddedEngine", "EventLoops", "FileSystem",
                "Identity", "ManagedExport", "PostgreSQLLog", "Replication", "TLSTestSupport",
            ], exclude: ["Formats"]),
        tests("OfficialClientTests", ["DocumentJSON", "Identity", "TLSTestSupport"]),
        tests("LoadTests", ["Basics", "HearthClient", "FirestoreMessages", "DocumentModel"]),
        tests("AtomicityTests", ["Basics", "HearthClient", "FirestoreMessages", "DocumentModel"]),
    ],
    cLanguageStandard: .c11,
    cxxLanguageStandard: .cxx17
)

// HEARTH_WITHOUT has what is not built of the tests, separated by commas: names of targets for which `Tools/test` has
// no part, and files below `Tests` whose suites are not run.
let without = Set((Context.environment["HEARTH_WITHOUT"] ?? "").split(separator: ",").map(String.init))
package.targets.removeAll { $0.type == .test && without.contains($0.name) }
for target in package.targets where target.type == .test {
    let folder = target.name + "/"
    target.exclude += without.filter { $0.hasPrefix(folder) }.map { String($0.dropFirst(folder.count)) }.sorted()
}

// HEARTH_ONLY has the names of targets, separated by commas: these and what they need are built alone. The run under
// the thread sanitizer (`Tools/test-sanitizer`) builds its tests so.
if let only = Context.environment["HEARTH_ONLY"], !only.isEmpty {
    var names: Set<String> = []
    func add(_ name: String) {
        guard names.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else {
            return
        }
        for case .byNameItem(let dependency, _) in target.dependencies { add(dependency) }
    }
    for name in only.split(separator: ",") { add(String(name)) }
    package.products = []
    package.targets = package.targets.filter { names.contains($0.name) }
    if Context.environment["HEARTH_SANITIZER"] == "thread" {
        // See Sources/Basics/Threads/SanitizedMutex.swift.
        for target in package.targets where target.swiftSettings != nil {
            target.swiftSettings?.append(.define("THREAD_SANITIZER"))
        }
    }
}
