// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "tasks",
    dependencies: [.package(name: "Hearth", path: "../..")],
    targets: [
        .executableTarget(
            name: "Tasks", dependencies: [.product(name: "FirebaseFirestore", package: "Hearth")])
    ]
)
