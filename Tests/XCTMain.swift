// The entry point of the test program, which `swift test` starts once for each testing library. All tests are Swift
// Testing's. With this file, `swift build` need not discover tests of XCTest in the index store, so the tests are built
// without an index (`--disable-index-store`).
import Foundation
import Testing
import XCTest

@main
struct TestProgram {
    static func main() async {
        // A shell that starts this in its background ignores interrupts, and so would the programs that tests start.
        signal(SIGINT, SIG_DFL)
        let arguments = CommandLine.arguments
        if arguments.contains("swift-testing") { await Testing.__swiftPMEntryPoint() as Never }
        if arguments.contains("--dump-tests-json") { XCTMain([]) }
        print("Run the tests with Tools/test, or with swift test --disable-xctest --enable-swift-testing.")
        exit(1)
    }
}
