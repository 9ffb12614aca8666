// Keys of a URL: when they are fetched, and how long they hold.

internal import Synchronization

/// A response with keys.
package struct KeyResponse: Sendable {
    package var body: [UInt8]
    /// The field `Cache-Control`; nil without one.
    package var cacheControl: String?

    package init(body: [UInt8], cacheControl: String?) {
        self.body = body
        self.cacheControl = cacheControl
    }
}

/// Fetches keys over HTTPS.
package protocol KeyFetcher: Sendable {
    /// Begins to fetch a URL, and returns at once.
    ///
    /// - Parameter done: called once, on any thread: with a response whose status is 200, or nil.
    func fetch(_ url: String, _ done: @escaping @Sendable (KeyResponse?) -> Void)
}

/// The keys of a URL. The last good set stays while the URL cannot be reached or returns something else. Thread-safe.
///
/// The owner calls ``tick()`` once a second or so. A fetch begins when the keys have expired, and for an unknown key,
/// but at most once in 30 seconds.
package final class RemoteKeys: KeySource {
    /// Bounds of the time that a response holds, in seconds.
    static let holdsSeconds: ClosedRange<Int64> = 60...86_400
    /// How long a response without `max-age` holds, in seconds.
    static let holdsSecondsUsually: Int64 = 3600
    /// Seconds between fetches for unknown keys, and between attempts after a failure.
    static let pauseSeconds: Int64 = 30
    /// A fetch that has not ended after so many seconds does not prevent another one.
    static let fetchSecondsMax: Int64 = 60
    /// Tokens that wait for one fetch; further ones are refused.
    static let waitersMax = 1000

    private struct State {
        var keys = KeySet.empty
        var body: [UInt8] = []
        var fetchedAt: Int64?
        var expiresAt = Int64.min
        /// When the last fetch began, and its number; no `openSince` after its end.
        var openSince: Int64?
        var fetchNumber = 0
        var failedAt: Int64?
        var askedAt: Int64?
        var waiters: [@Sendable () -> Void] = []
    }

    private let url: String
    private let fetcher: any KeyFetcher
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    /// - Parameter now: seconds of a clock that never steps back.
    package init(url: String, fetcher: any KeyFetcher, now: @escaping @Sendable () -> Int64) {
        self.url = url
        self.fetcher = fetcher
        self.now = now
    }

    package var keys: KeySet { state.withLock { $0.keys } }

    /// Seconds since the current keys were fetched; nil if there are none.
    package var ageSeconds: Int64? {
        let now = now()
        return state.withLock { state in state.fetchedAt.map { now - $0 } }
    }

    /// Begins a fetch if the keys have expired.
    package func tick() {
        let now = now()
        let number = state.withLock { state -> Int? in
            let isPaused = state.failedAt.map { now - $0 < Self.pauseSeconds } ?? false
            return now >= state.expiresAt && !isPaused ? Self.begin(&state, now) : nil
        }
        if let number { fetch(number) }
    }

    package func refresh(_ then: @escaping @Sendable () -> Void) -> Bool {
        let now = now()
        let (waits, number) = state.withLock { state -> (Bool, Int?) in
            guard state.waiters.count < Self.waitersMax else { return (false, nil) }
            if Self.isFetching(state, now) {
                state.waiters.append(then)
                return (true, nil)
            }
            if let asked = state.askedAt, now - asked < Self.pauseSeconds { return (false, nil) }
            state.askedAt = now
            state.waiters.append(then)
            return (true, Self.begin(&state, now))
        }
        if let number { fetch(number) }
        return waits
    }

    private static func isFetching(_ state: State, _ now: Int64) -> Bool {
        state.openSince.map { now - $0 < fetchSecondsMax } ?? false
    }

    /// The number of a fetch to make; nil while one is open.
    private static func begin(_ state: inout State, _ now: Int64) -> Int? {
        if isFetching(state, now) { return nil }
        state.openSince = now
        state.fetchNumber += 1
        return state.fetchNumber
    }

    private func fetch(_ number: Int) {
        fetcher.fetch(url) { [weak self] response in self?.ended(number, response) }
    }

    private func ended(_ number: Int, _ response: KeyResponse?) {
        let keys = response.flatMap { try? KeySet.read(text: $0.body) }
        let now = now()
        let waiters = state.withLock { state -> [@Sendable () -> Void] in
            // An older fetch has been given up.
            guard number == state.fetchNumber else { return [] }
            state.openSince = nil
            if let keys, let response {
                state.failedAt = nil
                state.fetchedAt = now
                state.expiresAt = now + Self.holdsSeconds(response.cacheControl)
                // The same object as before keeps verified tokens in their cache.
                if state.body != response.body { (state.keys, state.body) = (keys, response.body) }
            } else {
                state.failedAt = now
            }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter() }
    }

    /// How long a response holds, by its `Cache-Control` (RFC 9111, section 5.2.2).
    static func holdsSeconds(_ cacheControl: String?) -> Int64 {
        var seconds = holdsSecondsUsually
        for part in (cacheControl ?? "").split(separator: ",") {
            let directive = part.filter { $0 != " " && $0 != "\t" && $0 != "\"" }.lowercased()
            if directive == "no-store" || directive == "no-cache" { return holdsSeconds.lowerBound }
            if directive.hasPrefix("max-age=") {
                let digits = directive.dropFirst(8)
                let isNumber = !digits.isEmpty && digits.utf8.allSatisfy { (0x30...0x39).contains($0) }
                seconds = isNumber ? Int64(digits) ?? .max : holdsSeconds.lowerBound
            }
        }
        return min(max(seconds, holdsSeconds.lowerBound), holdsSeconds.upperBound)
    }
}
