// The entry point of the test program. All tests are Swift Testing's. With this file, `swift build` need not discover tests of
// XCTest in the index store, so `Tools/test` builds without an index (`--disable-index-store`).
import Testing

@main
struct TestProgram {
    static func main() async {
        await Testing.__swiftPMEntryPoint() as Never
    }
}
