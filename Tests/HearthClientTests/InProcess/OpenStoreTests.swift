import Basics
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct OpenStoreTests {
    @Test
    func `A program that was built without them names the missing trait`() throws {
        let configuration = try HearthClient.Configuration(address: "file::memory:")
        let error = #expect(throws: RequestError.self) { try HearthClient(configuration) }
        expectEqual(error?.code, .unimplemented)
        expect(error?.message.contains("file::memory:") == true && error?.message.contains("InProcess") == true)
    }
}
