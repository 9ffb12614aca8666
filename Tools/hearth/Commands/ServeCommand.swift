// `hearth serve`: the server.

import Basics
import DocumentStore
import Gateway
import Glibc
import Transport

/// Serves a data directory until SIGTERM or SIGINT.
enum ServeCommand: MainThreadSubcommand {
    static let name = "serve"
    static let summary = "Serves the documents of a data directory."
    static let words: [String] = []
    static let flagGroups = ServeFlags.groups

    static let discussion = """
        Opens the data directory, creating it if there is none and recovering it after a
        crash, listens, and prints one line on standard output when it is ready:

          hearth ready on 127.0.0.1:8080

        Everything else is logged on standard error, one event a line, as key=value.

        A commit is answered when it is on the disk. SIGTERM and SIGINT stop the server
        in order: it accepts nothing new, answers what it has accepted, writes its state
        and exits with status 0; a second signal ends it at once. Ending it in any other
        way, even by kill -9, loses nothing that was answered.

        Examples:

          hearth serve
          hearth serve --data /var/lib/hearth --host 0.0.0.0 --port 8080
          HEARTH_DATA=/tmp/try hearth serve --port 0 --log-level debug
        """

    static func runOnMainThread(_ arguments: ParsedArguments) throws {
        // Before any thread is started: threads inherit the mask, so all of them leave the signals to `Shutdown`.
        Shutdown.takeSignals()
        DescriptorLimit.raise()
        let log = Log.standardError(level: LogLevel(name: arguments[ServeFlags.logLevel]) ?? .info)
        let configuration = ServeFlags.configuration(arguments, log)
        log(.info, "starting", [
            "data": configuration.store.directory, "loops": String(configuration.loops), "pid": String(getpid()),
        ])
        let gateway: GatewayServer
        do {
            gateway = try GatewayServer.start(configuration)
        } catch {
            log(.error, "start_failed", ["message": "\(error)"])
            throw CommandFailure("cannot serve \(configuration.store.directory): \(error)")
        }
        let endpoint = Endpoint(host: gateway.host, port: Int(gateway.port)).flagText
        log(.info, "ready", ["address": endpoint])
        print("hearth ready on \(endpoint)")
        // Whoever waits for the line may read it through a pipe.
        fflush(nil)
        let signal = Shutdown.waitForSignal()
        log(.info, "draining", ["signal": signal == SIGTERM ? "SIGTERM" : "SIGINT"])
        Shutdown.endAtOnceOnAnotherSignal(log)
        gateway.stop()
        log(.info, "stopped")
    }
}

/// The signals that end the server.
enum Shutdown {
    private static var signals: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGTERM)
        sigaddset(&set, SIGINT)
        return set
    }

    /// Keeps the signals from this thread and those it starts, so that they wait to be asked for.
    static func takeSignals() {
        var set = signals
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signal(SIGPIPE, SIG_IGN)
        // A write beyond the limit of file sizes (ulimit -f) then fails like one to a full disk.
        signal(SIGXFSZ, SIG_IGN)
    }

    /// Waits for one of them.
    static func waitForSignal() -> Int32 {
        var set = signals
        var received: Int32 = 0
        while sigwait(&set, &received) != 0 {}
        return received
    }

    /// From now on a further signal ends the process with status 1, whatever is under way.
    static func endAtOnceOnAnotherSignal(_ log: Log) {
        let watcher = try? SystemThread(name: "signals") {
            _ = Shutdown.waitForSignal()
            log(.warning, "killed")
            _exit(1)
        }
        watcher?.detach()
    }
}
