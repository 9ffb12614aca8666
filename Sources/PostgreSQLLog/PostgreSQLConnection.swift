// A connection to PostgreSQL whose calls do not wait, over libpq.
//
//     open ──► connecting ──► preparing ──► idle ◄──► busy
//                  │              │          │         │
//                  └──────────────┴── ended ─┴─────────┘     a statement that was sent has an unknown outcome

internal import Basics
internal import CPostgreSQL
internal import Glibc

/// One connection, asynchronous. Belongs to one thread.
@safe
package final class PostgreSQLConnection {
    /// What has happened.
    package enum Event {
        /// Statements can be sent.
        case opened
        case finished(SQLOutcome)
        /// There is no connection any more. A statement without a result may have been executed, or may be yet.
        case ended(String)
    }

    fileprivate enum Phase {
        case closed
        case connecting(isWriting: Bool)
        /// The settings of the session are being made.
        case preparing
        case idle
        case busy
    }

    private let address: String
    private let settings: String
    private var handle: UnsafeMutableRawPointer?
    private var phase = Phase.closed
    /// Bytes of the statement wait for room in the socket.
    private var mustFlush = false
    private var outcome: SQLOutcome?
    /// What the database has analysed last for repetitions.
    private var prepared: String?
    /// Waits until the database has analysed it.
    private var preparing: SQLStatement?

    /// - Parameters:
    ///   - address: `postgresql://...`, or the keywords of libpq.
    ///   - settings: statements that prepare the session.
    package init(address: String, settings: String) {
        self.address = address
        self.settings = settings
    }

    deinit { close() }

    /// Why libpq cannot be used on this machine; nil if it can.
    package static var libraryProblem: String? {
        unsafe hearth_pq_load().map {
            unsafe "libpq cannot be loaded: \(String(cString: $0)); install the package libpq5"
        }
    }

    /// Why an address cannot be kept where people read it; nil if it can. The text does not have the address.
    ///
    /// The library must be loaded.
    package static func problem(ofOpenAddress address: String) -> String? {
        guard !address.isEmpty, address.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), address.utf8.count <= 1_024
        else { return "an address has 1 to 1,024 bytes, and no line breaks" }
        switch unsafe hearth_pq_look_at(address) {
        case HEARTH_PQ_PLAIN: return nil
        case HEARTH_PQ_SECRET:
            return "the address has a password, which everybody could read: put it into a password file "
                + "(PGPASSFILE, ~/.pgpass) or a service file of each server"
        default: return malformed
        }
    }

    /// Why an address cannot be used; nil if it can. The text does not have the address.
    ///
    /// The library must be loaded.
    package static func problem(ofAddress address: String) -> String? {
        unsafe hearth_pq_look_at(address) == HEARTH_PQ_MALFORMED ? malformed : nil
    }

    private static let malformed =
        "the address is not one of PostgreSQL: write postgresql://USER@HOST:PORT/DATABASE, and %40 and %2F for @ and / "
        + "in a password"

    package var isClosed: Bool { if case .closed = phase { true } else { false } }
    package var isIdle: Bool { if case .idle = phase { true } else { false } }
    package var isBusy: Bool { if case .busy = phase { true } else { false } }

    /// What to wait for with poll(2); nil if there is nothing to wait for.
    package var interest: (descriptor: Int32, events: Int16)? {
        guard let handle = unsafe handle else { return nil }
        let events: Int32
        switch phase {
        case .closed: return nil
        case .connecting(let isWriting): events = isWriting ? Int32(POLLOUT) : Int32(POLLIN)
        case .preparing, .idle, .busy: events = Int32(POLLIN) | (mustFlush ? Int32(POLLOUT) : 0)
        }
        return (unsafe hearth_pq_socket(handle), Int16(events))
    }

    /// Begins to connect. Call ``advance()`` when the descriptor is ready.
    /// - Returns: why that is not possible.
    package func open() -> String? {
        close()
        // The library's text would have the whole address, and so the password.
        if let problem = Self.problem(ofAddress: address) { return problem }
        // A name without a scheme is taken as keywords. Only a server that takes writes is wanted, since another one
        // may be a primary of the past.
        var parameters = [
            ("dbname", address), ("target_session_attrs", "read-write"), ("application_name", "hearth"),
            ("client_encoding", "UTF8"), ("connect_timeout", "5"), ("tcp_user_timeout", "5000"), ("keepalives", "1"),
            ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
        ]
        if let hosts = DatabaseHosts[address] { parameters += hosts.options }
        unsafe handle = unsafe Self.withStrings(parameters.map(\.0)) { keywords in
            unsafe Self.withStrings(parameters.map(\.1)) { values in unsafe hearth_pq_connect(keywords, values) }
        }
        guard let handle = unsafe handle else { return "no memory for a connection" }
        // The name of a host may be unknown, for example.
        if unsafe hearth_pq_has_failed(handle) == 1 { return takeFailure() }
        phase = .connecting(isWriting: true)
        return nil
    }

    /// Ends a connection that was not made in time: another host is tried first from now on.
    package func abandon() {
        if !isClosed, !isIdle, !isBusy { noteHost(.silent) }
        close()
    }

    /// Ends the connection. A statement without a result has an unknown outcome.
    package func close() {
        if let handle = unsafe handle { unsafe hearth_pq_close(handle) }
        unsafe handle = nil
        phase = .closed
        mustFlush = false
        outcome = nil
        (prepared, preparing) = (nil, nil)
    }

    /// Sends a statement. The connection must be idle.
    package func send(_ statement: SQLStatement) -> Event? {
        precondition(isIdle, "a statement is sent while another one is under way")
        phase = .busy
        return write(statement)
    }

    /// Does what is possible without waiting. Call it when the descriptor is ready.
    package func advance() -> Event? {
        switch phase {
        case .closed, .idle: return phase.isIdle ? noticeEnd() : nil
        case .connecting: return connect()
        case .preparing, .busy: return receive()
        }
    }

    // MARK: Steps

    private func connect() -> Event? {
        guard let handle = unsafe handle else { return nil }
        switch unsafe hearth_pq_advance(handle) {
        case HEARTH_PQ_READING: phase = .connecting(isWriting: false)
        case HEARTH_PQ_WRITING: phase = .connecting(isWriting: true)
        case HEARTH_PQ_READY:
            guard unsafe hearth_pq_make_nonblocking(handle) == 0 else { return end() }
            phase = .preparing
            return write(SQLStatement(script: settings))
        default: return end()
        }
        return nil
    }

    /// An idle connection has something to read: a notice, or its end.
    private func noticeEnd() -> Event? {
        guard let handle = unsafe handle else { return nil }
        return unsafe hearth_pq_consume(handle) == 1 ? nil : end()
    }

    private func receive() -> Event? {
        guard let handle = unsafe handle else { return nil }
        if mustFlush, let event = flush() { return event }
        guard unsafe hearth_pq_consume(handle) == 1 else { return end() }
        while unsafe hearth_pq_is_busy(handle) == 0 {
            guard let result = unsafe hearth_pq_result(handle) else { return finish() }
            unsafe take(result)
            unsafe hearth_pq_clear(result)
        }
        return nil
    }

    /// Keeps the first failure of a statement, or its last result.
    private func take(_ result: UnsafeMutableRawPointer) {
        if case .failed? = outcome { return }
        guard unsafe hearth_pq_succeeded(result) == 1 else {
            let message = unsafe String(cString: hearth_pq_message(result))
            outcome = .failed(
                SQLFailure(
                    state: unsafe String(cString: hearth_pq_state(result)),
                    message: message.split(separator: "\n").first.map(String.init) ?? ""))
            return
        }
        let columns = unsafe hearth_pq_columns(result)
        let rowCount = unsafe hearth_pq_rows(result)
        let rows = (0..<rowCount).map { row in
            SQLRow(columns: (0..<columns).map { unsafe Self.value(of: result, row, $0) })
        }
        outcome = .rows(rows, hasWarning: false)
    }

    private static func value(of result: UnsafeMutableRawPointer, _ row: Int32, _ column: Int32) -> [UInt8]? {
        var length: Int32 = 0
        guard let bytes = unsafe hearth_pq_value(result, row, column, &length) else { return nil }
        return unsafe [UInt8](UnsafeRawBufferPointer(start: bytes, count: Int(length)))
    }

    private func finish() -> Event? {
        guard let handle = unsafe handle, let outcome else { return end() }
        self.outcome = nil
        if let statement = preparing.take(), case .rows = outcome {
            prepared = statement.text
            return write(statement)
        }
        let hasWarning = unsafe hearth_pq_take_warnings(handle) > 0
        let wasPreparing = phase.isPreparing
        // A server that is shutting down refuses a statement and ends the connection.
        if case .failed(let failure) = outcome, wasPreparing || failure.state.hasPrefix("57P") {
            close()
            return .ended(failure.description)
        }
        phase = .idle
        if wasPreparing {
            noteHost(.connected)
            return .opened
        }
        if case .rows(let rows, _) = outcome { return .finished(.rows(rows, hasWarning: hasWarning)) }
        return .finished(outcome)
    }

    private func flush() -> Event? {
        guard let handle = unsafe handle else { return nil }
        let status = unsafe hearth_pq_flush(handle)
        mustFlush = status == 1
        return status < 0 ? end() : nil
    }

    private func end() -> Event {
        // All hosts have replied.
        if case .connecting = phase { DatabaseHosts[address] = nil }
        return .ended(takeFailure())
    }

    /// Closes the connection.
    /// - Returns: why it has ended.
    private func takeFailure() -> String {
        var reason = "the connection has ended"
        if let handle = unsafe handle {
            let text = unsafe String(cString: hearth_pq_error(handle))
            if let line = text.split(separator: "\n").first { reason = String(line) }
        }
        close()
        return reason
    }

    /// Notes for further connections what has become of this one.
    private func noteHost(_ outcome: DatabaseHosts.Outcome) {
        guard let handle = unsafe handle, let host = unsafe hearth_pq_host(handle),
            let port = unsafe hearth_pq_port(handle)
        else { return }
        func option(_ keyword: String) -> String {
            guard let value = unsafe hearth_pq_option(handle, keyword) else { return "" }
            defer { unsafe free(value) }
            return unsafe String(cString: value)
        }
        guard
            var hosts = DatabaseHosts(
                names: option("host"), addresses: option("hostaddr"), ports: option("port"))
        else { return }
        unsafe hosts.note(outcome, host: String(cString: host), port: String(cString: port))
        DatabaseHosts[address] = hosts
    }

    private func write(_ statement: SQLStatement) -> Event? {
        guard let handle = unsafe handle else { return .ended("there is no connection") }
        outcome = nil
        _ = unsafe hearth_pq_take_warnings(handle)
        let isPrepared = statement.isRepeated && prepared == statement.text
        // Any other statement takes the place of the one without a name.
        if !isPrepared { prepared = nil }
        let isSent: Bool
        if statement.isScript {
            isSent = unsafe hearth_pq_send(handle, statement.text, -1, nil, nil, nil) == 1
        } else if statement.isRepeated, !isPrepared {
            preparing = statement
            isSent = unsafe hearth_pq_prepare(handle, statement.text) == 1
        } else {
            isSent = unsafe Self.send(statement, isPrepared: isPrepared, on: handle)
        }
        guard isSent else { return end() }
        return flush()
    }

    private static func send(
        _ statement: SQLStatement, isPrepared: Bool, on handle: UnsafeMutableRawPointer
    ) -> Bool {
        // All values in one buffer: numbers and bytes in the binary format, in network order.
        var bytes: [UInt8] = []
        bytes.reserveCapacity(statement.parameters.reduce(1) { $0 + $1.byteCount })
        var ranges: [Range<Int>] = []
        for parameter in statement.parameters {
            let start = bytes.count
            switch parameter {
            case .number(let number):
                for shift: UInt64 in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> (56 - 8 * shift))) }
            case .text(let text): bytes.append(contentsOf: text.utf8)
            case .bytes(let value): bytes.append(contentsOf: value)
            }
            ranges.append(start..<bytes.count)
        }
        // A value of no bytes needs an address all the same: without one it is null.
        bytes.append(0)
        let lengths = ranges.map { Int32($0.count) }
        let formats = [Int32](repeating: 1, count: ranges.count)
        return unsafe bytes.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return false }
            let values: [UnsafePointer<CChar>?] = unsafe ranges.map { range in
                unsafe UnsafeRawPointer(start + range.lowerBound).assumingMemoryBound(to: CChar.self)
            }
            let count = Int32(ranges.count)
            return isPrepared
                ? unsafe hearth_pq_send_prepared(handle, count, values, lengths, formats) == 1
                : unsafe hearth_pq_send(handle, statement.text, count, values, lengths, formats) == 1
        }
    }

    /// Lends texts as an array of C strings that ends with null.
    private static func withStrings<Output>(
        _ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Output
    ) -> Output {
        let copies = unsafe texts.map { unsafe strdup($0) }
        defer { for index in unsafe copies.indices { unsafe free(copies[index]) } }
        let pointers: [UnsafePointer<CChar>?] = unsafe copies.map { unsafe UnsafePointer($0) } + [nil]
        return unsafe pointers.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else { fatalError("an array with elements has an address") }
            return unsafe body(start)
        }
    }
}

extension PostgreSQLConnection.Phase {
    fileprivate var isIdle: Bool { if case .idle = self { true } else { false } }
    fileprivate var isPreparing: Bool { if case .preparing = self { true } else { false } }
}
