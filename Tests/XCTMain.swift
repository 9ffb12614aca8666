// The entry point of the test program, which `swift test` starts once for each testing library. All tests are Swift
// Testing's. With this file, `swift build` need not discover tests of XCTest in the index store, so the tests are built
// without an index (`--disable-index-store`).
import Foundation
import Testing
import XCTest

@main
struct TestProgram {
    static func main() async {
        let arguments = CommandLine.arguments
        if arguments.contains("swift-testing") { await Testing.__swiftPMEntryPoint() as Never }
        if arguments.contains("--dump-tests-json") { XCTMain([]) }
        print("Run the tests with Tools/test, or with swift test --disable-xctest --enable-swift-testing.")
        exit(1)
    }
}
