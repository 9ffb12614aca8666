// A connection that is kept: it is opened again after each end, and one that is silent is given up.

internal import Basics

/// One connection of a loop. Belongs to the loop's thread.
final class MemberChannel {
    let name: String
    private let address: String
    private let settings: String
    private let silenceMax: UInt64
    private let opener: ConnectionOpener
    /// Has the owner take a turn. Any thread.
    private let wake: @Sendable () -> Void
    /// Nil while there is none.
    private(set) var connection: PostgreSQLConnection?
    private var opening: ConnectionOpening?
    /// When the statement without a reply was sent.
    private var sentAt: UInt64?
    private var pause: UInt64 = 0
    private var retryAt: UInt64 = 0
    /// What its owner has reported: the same once a minute.
    var losses = RepeatedReport()
    var refusals = RepeatedReport()

    private static let pauseMin: UInt64 = 50
    private static let pauseMax: UInt64 = 1_000

    /// - Parameters:
    ///   - silenceMax: how long a reply may take, in milliseconds.
    ///   - wake: has the owner take a turn, on any thread.
    init(
        _ name: String, address: String, settings: String, silenceMax: UInt64, opener: ConnectionOpener,
        wake: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.address = address
        self.settings = settings
        self.silenceMax = silenceMax
        self.opener = opener
        self.wake = wake
    }

    var isIdle: Bool { connection?.isIdle ?? false }
    var isOpen: Bool { connection != nil }
    /// Whether there is a connection, or one is being opened.
    var isInUse: Bool { connection != nil || opening != nil }

    /// Does what is due: opens the connection, takes one that was opened, gives up one that is silent.
    /// - Returns: what has happened.
    func tick(_ now: UInt64) -> PostgreSQLConnection.Event? {
        if let connection {
            guard let sentAt, now > sentAt + silenceMax else { return nil }
            connection.close()
            return .ended("the database does not answer")
        }
        guard let opening else {
            if now >= retryAt { open() }
            return nil
        }
        guard let outcome = opening.take() else { return nil }
        self.opening = nil
        switch outcome {
        case .failed(let reason): return .ended(reason)
        case .opened(let opened):
            connection = opened
            pause = 0
            return .opened
        }
    }

    /// When the next ``tick(_:)`` has something to do by itself, in milliseconds.
    var dueAt: UInt64 {
        if connection != nil { return sentAt.map { $0 + silenceMax + 1 } ?? .max }
        return opening == nil ? retryAt : .max
    }

    private func open() {
        let opening = ConnectionOpening(address: address, settings: settings, whenDone: wake)
        self.opening = opening
        opener.open(opening)
    }

    /// Sends a statement. The connection must be idle.
    func send(_ statement: SQLStatement) -> PostgreSQLConnection.Event? {
        sentAt = BootClock.milliseconds()
        return connection?.send(statement)
    }

    func noteReply() { sentAt = nil }

    /// The connection has ended, or could not be opened.
    /// - Returns: whether a statement was sent whose outcome is unknown now.
    func noteEnd(_ now: UInt64) -> Bool {
        connection = nil
        pause = min(max(pause * 2, Self.pauseMin), Self.pauseMax)
        retryAt = now + pause
        return sentAt.take() != nil
    }

    /// Ends the connection without an event. A statement without a reply has an unknown outcome.
    func close() {
        opening?.giveUp()
        opening = nil
        connection?.close()
        connection = nil
        sentAt = nil
    }
}
