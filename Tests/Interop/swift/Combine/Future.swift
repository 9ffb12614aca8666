// What the SDK's tests use of Apple's Combine, which Linux does not have.

/// A value that is there later.
public struct Future<Output: Sendable, Failure: Error>: Sendable {
    /// Gives the future its value.
    public typealias Promise = (Result<Output, Failure>) -> Void

    private let values: AsyncThrowingStream<Output, any Error>

    /// - Parameter attempt: called at once; only the first value of its promise counts.
    public init(_ attempt: (@escaping Promise) -> Void) {
        let (values, continuation) = AsyncThrowingStream<Output, any Error>.makeStream()
        self.values = values
        attempt { result in
            switch result {
            case .success(let value): continuation.yield(value)
            case .failure(let error): continuation.finish(throwing: error)
            }
        }
    }

    /// Waits for the value.
    public var value: Output {
        get async throws {
            for try await value in values { return value }
            throw CancellationError()
        }
    }
}
