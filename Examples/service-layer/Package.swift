// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "service-layer",
    dependencies: [.package(name: "Hearth", path: "../..")],
    targets: [
        .executableTarget(
            name: "ServiceLayer", dependencies: [.product(name: "FirebaseFirestore", package: "Hearth")])
    ]
)
