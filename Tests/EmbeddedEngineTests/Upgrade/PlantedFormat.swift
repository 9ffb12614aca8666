// A format that this version does not have, to upgrade from: its manifest has its bytes in the reverse order.

import EngineTestSupport
import Glibc
import Storage

@testable import EmbeddedEngine
@testable import FileSystem

/// Directories of a planted format 1, which steps lead to the present files under the name of format 2 or 3.
enum PlantedFormat {
    static let manifest = "MANIFEST"

    /// Turns the bytes of a file around.
    static func reversed(_ path: String) -> Bytes { Bytes(Files.read(path).reversed()) }

    /// Gives a closed directory of this version the planted format.
    static func plant(in directory: String) {
        let path = "\(directory)/runs/\(manifest)"
        Files.write(reversed(path), to: path)
    }

    /// The steps from the planted format to the present one, which gets the number `last`.
    static func steps(to last: Int = 2) -> [any FormatStep] {
        (1..<last).map { PlantedStep(from: $0, isLast: $0 == last - 1) }
    }

    /// The engine's options for directories of the present files under another number.
    static func options(_ format: Int) -> EngineOptions {
        var options = PowerCut.options
        options.formatPlanted = format
        return options
    }
}

/// A step that links the files of runs and copies the others. The last one turns the manifest around.
struct PlantedStep: FormatStep {
    let from: Int
    let isLast: Bool

    func bytesNeeded(for files: FormatFiles) throws(StorageError) -> Int {
        var bytes = 0
        for directory in [files.runs, files.log] {
            for name in try Directory.names(in: directory) {
                bytes += Directory.status(of: "\(directory)/\(name)").byteCount
            }
        }
        return bytes
    }

    func convert(
        _ source: FormatFiles, to target: FormatFiles, report: (Int) -> Void
    ) throws(StorageError) {
        // The engine writes into the file `space`.
        for name in try Directory.names(in: source.runs) where RunFormat.file(named: name) != nil {
            _ = try Directory.link("\(source.runs)/\(name)", to: "\(target.runs)/\(name)")
        }
        var done = 0
        for name in try Directory.names(in: source.log) {
            try DirectoryCopy.copyFile("\(source.log)/\(name)", to: "\(target.log)/\(name)") { done += $0 }
            report(done)
        }
        let path = "\(source.runs)/\(PlantedFormat.manifest)"
        let bytes = isLast ? PlantedFormat.reversed(path) : Files.read(path)
        let file = try File("\(target.runs)/\(PlantedFormat.manifest)", flags: O_RDWR | O_CREAT)
        var failure: StorageError?
        bytes.withUnsafeBytes { bytes in
            do throws(StorageError) { try file.write(bytes, at: 0) } catch { failure = error }
        }
        if let failure { throw failure }
        try file.sync()
    }
}
