import Basics
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FileSystem
@testable import ManagedExport

@Suite(.timeLimit(.minutes(20))) struct ExportFolderTests {
    private let directory = TemporaryDirectory("managed-export")
    private static let part = "all_namespaces/all_kinds/all_namespaces_all_kinds.export_metadata"

    private func put(_ bytes: [UInt8], _ path: String) throws {
        let url = URL(fileURLWithPath: directory.path(of: path))
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: url)
    }

    /// Writes an export as the emulator does.
    private func putGolden(_ folder: String) throws {
        try put(GoldenExport.overall, "\(folder)/N.overall_export_metadata")
        try put(GoldenExport.part, "\(folder)/\(Self.part)")
        try put(GoldenExport.data, "\(folder)/all_namespaces/all_kinds/output-0")
    }

    private func problem(_ path: String) -> String {
        do throws(ExportFolderProblem) {
            _ = try ExportFolder(directory.path(of: path))
            return "none"
        } catch {
            return "\(error)"
        }
    }

    @Test
    func `The emulator's metadata is read, and written again byte for byte`() throws {
        let part = OverallMetadata.Part(path: Self.part, entities: 2, byteCount: 342)
        expectEqual(OverallMetadata.bytes([part]), GoldenExport.overall)
        let golden = GoldenExport.part
        let files = try PartMetadata.files(golden.byteSpan)
        expectEqual(files, ["output-0"])
        let written = PartMetadata.bytes(
            name: "N", start: 1_795_640_659_332_845, end: 1_795_640_659_354_120, files: ["output-0"])
        expectEqual(written, golden)
    }

    @Test
    func `An export that was being replaced when its process ended gets its name, the new one if it is there`() throws {
        let path = directory.path(of: "replaced")
        func names() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasPrefix("replaced") }
        }
        // Others are left alone.
        try put([1], "replaced.incomplete-ABCDEF/x")
        try ExportFolderWriter.completeReplacement(of: path)
        try expectEqual(names(), ["replaced.incomplete-ABCDEF"])
        try put([2], "replaced.incomplete-ABCDEF-previous/x")
        try ExportFolderWriter.completeReplacement(of: path + "/")
        try expectEqual(names(), ["replaced"])
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: path + "/x")), Data([1]))
        try FileManager.default.removeItem(atPath: path)
        try put([2], "replaced.incomplete-ABCDEF-previous/x")
        try ExportFolderWriter.completeReplacement(of: path)
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: path + "/x")), Data([2]))
        // What has the name keeps it.
        try put([3], "replaced.incomplete-ABCDEF-previous/x")
        try ExportFolderWriter.completeReplacement(of: path)
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: path + "/x")), Data([2]))
    }

    @Test
    func `An export is found from its folder, its metadata file, the folder above and the firebase program's file`()
        throws
    {
        try putGolden("top/N")
        for path in ["top/N", "top", "top/N/N.overall_export_metadata"] {
            let folder = try ExportFolder(directory.path(of: path))
            expectEqual(folder.files.map(\.name), ["all_namespaces/all_kinds/output-0"])
            expectEqual(folder.entities, 2)
            expectEqual(folder.byteCount, GoldenExport.data.count)
            expect(folder.unlisted.isEmpty)
        }
        try putGolden("fire/firestore_export")
        try putGolden("fire/other")
        expect(problem("fire").contains("several exports"))
        let metadata = #"{"version":"1","firestore":{"version":"1","path":"x","metadata_file":"PATH"}}"#
        let file = "fire/firebase-export-metadata.json"
        try put(
            Array(metadata.replacing("PATH", with: "firestore_export/N.overall_export_metadata").utf8), file)
        try expectEqual(ExportFolder(directory.path(of: "fire")).files.count, 1)
        for path in ["../top/N/N.overall_export_metadata", "/etc/passwd", "missing"] {
            try put(Array(metadata.replacing("PATH", with: path).utf8), file)
            expect(problem("fire").contains("firebase-export-metadata.json cannot be used"))
        }
    }

    @Test
    func `Exports as the cloud names them have folders of collections and several data files`() throws {
        let parts = ["a", "b"].map { kind in
            OverallMetadata.Part(
                path: "all_namespaces/kind_\(kind)/all_namespaces_kind_\(kind).export_metadata", entities: 3,
                byteCount: 1)
        }
        try put(OverallMetadata.bytes(parts), "cloud/2026.overall_export_metadata")
        for (kind, count) in [("a", 12), ("b", 1)] {
            let folder = "cloud/all_namespaces/kind_\(kind)"
            let names = (0..<count).map { "output-\($0)" }
            // The metadata of the first collection lists the first file alone.
            try put(
                PartMetadata.bytes(name: "2026", start: 1, end: 2, files: Array(names.prefix(1))),
                "\(folder)/all_namespaces_kind_\(kind).export_metadata")
            for name in names { try put(GoldenExport.data, "\(folder)/\(name)") }
        }
        let folder = try ExportFolder(directory.path(of: "cloud"))
        expectEqual(folder.files.count, 13)
        expectEqual(folder.files[10].name, "all_namespaces/kind_a/output-10")
        expectEqual(folder.unlisted.count, 11)
        expectEqual(folder.entities, 6)
    }

    @Test
    func `A folder without an export, or with one that is not complete, is refused with the reason`() throws {
        expect(problem("none").contains("there is no"))
        try put([1], "empty/readme")
        expect(problem("empty").contains("not a managed export"))
        try putGolden("lost/N")
        try FileManager.default.removeItem(atPath: directory.path(of: "lost/N/all_namespaces/all_kinds/output-0"))
        expect(problem("lost/N").contains("not complete"))
        try put(Array(GoldenExport.overall.dropLast(3)), "short/N.overall_export_metadata")
        expect(problem("short").contains("damaged"))
        for path in ["../x", "/x", "a//b", ""] {
            let part = OverallMetadata.Part(path: path, entities: 1, byteCount: 1)
            try put(OverallMetadata.bytes([part]), "out/N.overall_export_metadata")
            expect(problem("out").contains("not a path within the export"))
        }
        try putGolden("away/N")
        try put(PartMetadata.bytes(name: "N", start: 1, end: 2, files: ["x/output-0"]), "away/N/\(Self.part)")
        expect(problem("away/N").contains("another folder"))
        try put([0xFF, 0xFF], "away/N/\(Self.part)")
        expect(problem("away/N").contains("damaged"))
    }

    @Test
    func `What the writer writes is complete, or is not there`() throws {
        let database = try DatabaseName(GoldenExport.database)
        let path = directory.path(of: "written/export")
        var writer: ExportFolderWriter? = try ExportFolderWriter(path, database: database, start: 1)
        for document in GoldenExport.documents {
            try writer?.append(
                path: Array(document.path.utf8).byteSpan, fields: document.fields.documentBytes.byteSpan)
        }
        expect(!FileManager.default.fileExists(atPath: path))
        try writer?.finish()
        writer = nil
        let folder = try ExportFolder(path)
        expectEqual(folder.entities, 3)
        let data = try Data(contentsOf: URL(fileURLWithPath: folder.files[0].path))
        expectEqual([UInt8](data), GoldenExport.data)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path(of: "written")), ["export"])

        // One that is not finished leaves nothing.
        var abandoned: ExportFolderWriter? = try ExportFolderWriter(
            directory.path(of: "left/export"), database: database, start: 1)
        try abandoned?.append(path: Array("c/d".utf8).byteSpan, fields: [UInt8]().byteSpan)
        abandoned = nil
        try expect(FileManager.default.contentsOfDirectory(atPath: directory.path(of: "left")).isEmpty)
    }

    @Test
    func `An export alone is replaced`() throws {
        let database = try DatabaseName(GoldenExport.database)
        let path = directory.path(of: "export")
        try ExportFolderWriter(path, database: database, start: 1).finish()
        #expect(throws: ExportFolderProblem.self) {
            try ExportFolderWriter(path, database: database, start: 1).finish()
        }
        let second = try ExportFolderWriter(path, database: database, start: 2)
        try second.append(path: Array("c/d".utf8).byteSpan, fields: [UInt8]().byteSpan)
        try second.finish(mayReplace: true)
        try expectEqual(ExportFolder(path).entities, 1)
        try put([1], "export/auth_export")
        #expect(throws: ExportFolderProblem.self) {
            try ExportFolderWriter.checkTarget(path, mayReplace: true)
        }
        try put([1], "file")
        #expect(throws: ExportFolderProblem.self) {
            try ExportFolderWriter.checkTarget(directory.path(of: "file"), mayReplace: true)
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), ["export", "file"])
    }

    @Test
    func `What killed exports have left is removed by the next one of the name`() throws {
        let database = try DatabaseName(GoldenExport.database)
        let path = directory.path(of: "export")
        let kept = ["export.incomplete-GHIJKL", "export.incomplete-GHIJKL-previous", "export.incomplete-2031-05"]
        for name in kept + ["export.incomplete-ABCDEF"] { try put([1], "\(name)/x") }
        // One that is being written stays, and one that cannot be finished leaves nothing.
        let first = try ExportFolderWriter(path, database: database, start: 1)
        var second: ExportFolderWriter? = try ExportFolderWriter(path, database: database, start: 2)
        try second?.append(path: Array("c/d".utf8).byteSpan, fields: [UInt8]().byteSpan)
        second = nil
        try first.finish()
        try expectEqual(ExportFolder(path).entities, 0)
        try expectEqual(
            FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), (["export"] + kept).sorted())
    }

    @Test
    func `A path may end with a slash, and lead to an empty folder`() throws {
        let database = try DatabaseName(GoldenExport.database)
        let path = directory.path(of: "export/")
        for _ in 0..<2 {
            try ExportFolderWriter.checkTarget(path, mayReplace: false)
            try ExportFolderWriter(path, database: database, start: 1).finish()
            try expectEqual(ExportFolder(path).entities, 0)
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["export"])
    }

    @Test
    func `While an export is replaced, one is there after every step`() throws {
        let database = try DatabaseName(GoldenExport.database)
        let path = directory.path(of: "export")
        try ExportFolderWriter(path, database: database, start: 1).finish()
        let second = try ExportFolderWriter(path, database: database, start: 2)
        try second.append(path: Array("c/d".utf8).byteSpan, fields: [UInt8]().byteSpan)
        let steps = Mutex(0)
        let missing = Mutex(0)
        let watch = DiskWatch.begin(directory.path) { change, call in
            let result = call()
            steps.withLock { $0 += 1 }
            if !FileManager.default.fileExists(atPath: "\(path)/firebase-export-metadata.json") {
                missing.withLock { $0 += 1 }
            }
            return result
        }
        defer { watch.end() }
        try second.finish(mayReplace: true)
        expect(steps.withLock { $0 } > 5 && missing.withLock { $0 } == 0)
        try expectEqual(ExportFolder(path).entities, 1)
    }
}
