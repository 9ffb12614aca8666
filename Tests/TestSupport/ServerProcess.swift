// A real `hearth` process for tests: started, waited for, signalled, and gone when the tests are over.

import Foundation
import Synchronization

/// The `hearth` binary that was built with the tests.
package enum HearthBinary {
    /// Beside the test bundle, or where `HEARTH_BINARY` says.
    package static var path: String {
        if let path = ProcessInfo.processInfo.environment["HEARTH_BINARY"] { return path }
        return "\(buildDirectory)/hearth"
    }

    /// Where the test bundle lies, and with it the programs and modules built with it.
    package static var buildDirectory: String {
        let tests =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        return URL(fileURLWithPath: tests).deletingLastPathComponent().path
    }

    /// What a finished command left.
    package struct Outcome: Sendable {
        package var status: Int32
        package var output: String
        package var errors: String
    }

    /// Runs a command, of `hearth` unless said otherwise, to its end.
    ///
    /// - Parameter input: the file that is its standard input; nil for an empty one.
    package static func run(
        _ arguments: [String], environment: [String: String] = [:], executable: String = HearthBinary.path,
        input: String? = nil
    ) throws -> Outcome {
        let process = HearthProcess(arguments, environment: environment, executable: executable, input: input)
        try process.start()
        process.waitForEnd()
        return Outcome(status: process.status, output: process.output, errors: process.errors)
    }
}

/// One process, of `hearth` unless said otherwise, its output collected as it comes.
package final class HearthProcess: @unchecked Sendable {
    // Sendable: `Process` is started once by `start`; what it prints is kept under a lock.

    private let process = Process()
    private let input: String?
    private let collected = Mutex((output: Data(), errors: Data()))
    private let streamsOpen = DispatchGroup()
    private let changed = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - executable: the path of the program.
    ///   - descriptors: the hard and soft limit of file descriptors; nil leaves that of the tests.
    ///   - input: the file that is its standard input; nil for an empty one.
    ///   - host: where it is started. What starts it there executes it in its own place.
    package init(
        _ arguments: [String], environment: [String: String] = [:], executable: String = HearthBinary.path,
        descriptors: Int? = nil, input: String? = nil, host: TestHost = .local
    ) {
        self.input = input
        if let launcher = host.launcher.first {
            process.executableURL = URL(fileURLWithPath: launcher)
            process.arguments = Array(host.launcher.dropFirst()) + [executable] + arguments
        } else if let descriptors {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", "ulimit -n \(descriptors) && exec \"$0\" \"$@\"", executable] + arguments
        } else {
            process.executableURL = URL(fileURLWithPath: executable)
            process.arguments = arguments
        }
        var all = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HEARTH_") }
        for (name, value) in environment { all[name] = value }
        process.environment = all
    }

    /// Those that no test has seen end, by their identifiers. A process outlives its owner in the test, which needs no
    /// more of it than its port.
    private static let started = Mutex<[Int32: HearthProcess]>([:])
    private static let endsWithTests: Void = {
        atexit {
            for process in HearthProcess.started.withLock({ $0.values }) where process.isRunning {
                process.signal(SIGKILL)
            }
        }
    }()

    /// Starts the process. It is killed when the tests end, unless it has ended.
    package func start() throws {
        let outputPipe = Pipe()
        let errorPipe = Pipe()
        process.standardOutput = outputPipe
        process.standardError = errorPipe
        process.standardInput = input.flatMap { FileHandle(forReadingAtPath: $0) } ?? FileHandle.nullDevice
        Self.endsWithTests
        try process.run()
        Self.started.withLock { $0[identifier] = self }
        collect(outputPipe) { $0.output.append($1) }
        collect(errorPipe) { $0.errors.append($1) }
    }

    private func collect(_ pipe: Pipe, _ append: @escaping @Sendable (inout (output: Data, errors: Data), Data) -> Void)
    {
        streamsOpen.enter()
        let handle = pipe.fileHandleForReading
        Thread.detachNewThread { [self] in
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                // `availableData` traps when a signal interrupts the read.
                let count = read(handle.fileDescriptor, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                if count <= 0 { break }
                let data = Data(buffer[..<count])
                collected.withLock { append(&$0, data) }
                changed.signal()
            }
            streamsOpen.leave()
            changed.signal()
        }
    }

    package var identifier: Int32 { process.processIdentifier }
    package var isRunning: Bool { process.isRunning }
    /// Standard output as read so far; the last lines of a running process may be missing: ``waitForLine(prefix:)``.
    package var output: String { collected.withLock { String(decoding: $0.output, as: UTF8.self) } }
    /// Standard error as read so far; the last lines of a running process may be missing: ``waitForError(_:)``.
    package var errors: String { collected.withLock { String(decoding: $0.errors, as: UTF8.self) } }
    /// The exit status, or minus the signal that ended it; for a process that has ended.
    package var status: Int32 {
        process.terminationReason == .uncaughtSignal ? -process.terminationStatus : process.terminationStatus
    }

    package func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Waits until the process has ended; kills one that takes longer than ten minutes, so that its status shows it.
    package func waitForEnd() {
        if streamsOpen.wait(timeout: .now() + .seconds(600)) == .timedOut { signal(SIGKILL) }
        process.waitUntilExit()
        streamsOpen.wait()
        Self.started.withLock { $0[identifier] = nil }
    }

    /// Waits until standard error holds `text`.
    ///
    /// - Returns: false when the process ends, or ``waitSecondsMax`` pass, without it.
    package func waitForError(_ text: String) -> Bool {
        let deadline = DispatchTime.now() + .seconds(waitSecondsMax)
        while true {
            if errors.contains(text) { return true }
            if streamsOpen.wait(timeout: .now()) == .success { return errors.contains(text) }
            if changed.wait(timeout: deadline) == .timedOut { return false }
        }
    }

    /// Waits until a line of standard output begins with `prefix` and returns it; nil when the process ends, or
    /// ``waitSecondsMax`` pass, without one.
    package func waitForLine(prefix: String) -> String? {
        let deadline = DispatchTime.now() + .seconds(waitSecondsMax)
        while true {
            let lines = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            if let line = lines.first(where: { $0.hasPrefix(prefix) }) { return String(line) }
            if streamsOpen.wait(timeout: .now()) == .success {
                let rest = output.split(separator: "\n")
                return rest.first { $0.hasPrefix(prefix) }.map(String.init)
            }
            if changed.wait(timeout: deadline) == .timedOut { return nil }
        }
    }
}

/// A server on a data directory, ready to be called.
package final class ServerProcess: Sendable {
    /// A server could not be started; its own words.
    package struct StartError: Error, CustomStringConvertible {
        package let description: String
    }

    package let process: HearthProcess
    package let host: String
    package let port: Int

    /// Starts a server and waits for its ready line.
    ///
    /// - Parameter port: nil for one that is reserved for it, so that another server can take its place.
    package convenience init(
        data: String, port: Int? = nil, arguments: [String] = [], environment: [String: String] = [:],
        descriptors: Int? = nil, host: TestHost = .local
    ) throws {
        let place = host.launcher.isEmpty ? [] : ["--host", host.address]
        let port = try port ?? LoopbackSocket.reservePort()
        try self.init(
            HearthProcess(
                ["serve", "--data", data, "--port", String(port)] + place + arguments, environment: environment,
                descriptors: descriptors, host: host), host: host.address)
    }

    /// The same on a temporary fork of a directory.
    package convenience init(forkOf data: String) throws {
        try self.init(HearthProcess(["serve", "--fork-of", data, "--port", "0"]))
    }

    private init(_ process: HearthProcess, host: String = TestHost.local.address) throws {
        self.process = process
        self.host = host
        try process.start()
        guard let line = process.waitForLine(prefix: "hearth ready on "),
            let port = line.split(separator: ":").last.flatMap({ Int($0) })
        else {
            process.signal(SIGKILL)
            process.waitForEnd()
            throw StartError(description: "hearth serve did not become ready: \(process.errors)")
        }
        self.port = port
    }

    /// Stops in order and returns the exit status.
    package func stop() -> Int32 {
        process.signal(SIGTERM)
        process.waitForEnd()
        return process.status
    }

    /// Ends the process as a crash would.
    package func kill() {
        process.signal(SIGKILL)
        process.waitForEnd()
    }
}
