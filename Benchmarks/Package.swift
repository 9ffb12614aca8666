// swift-tools-version: 6.2
// Benchmarks: a separate package, so that users of Hearth never build them. One executable per subject; each prints
// ratios to bounds measured in the same run.
//
// usage: swift run -c release --package-path Benchmarks CodecBenchmark

import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .treatAllWarnings(as: .error), .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
    name: "HearthBenchmarks",
    dependencies: [.package(name: "Hearth", path: "..")],
    targets: [
        // The document codec against C and protobuf-c.
        .target(
            name: "CCodecBounds", dependencies: [.product(name: "CFirestoreProto", package: "Hearth")],
            cSettings: [.unsafeFlags(["-O2"])]),
        .executableTarget(
            name: "CodecBenchmark",
            dependencies: ["CCodecBounds", .product(name: "DocumentCoding", package: "Hearth")],
            swiftSettings: settings),
    ],
    cLanguageStandard: .c11
)
