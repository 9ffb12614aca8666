// Debian's package index (the text that `apt-cache dumpavail` prints) to JSON lines for `hearth load`.
// The index is paragraphs of `Field: value` lines; a line that begins with a space continues the field above it.

import FirebaseFirestore
import Foundation

enum PackageIndex {
    /// Reads the index from `input` to its end and writes a line for each record; returns how many.
    static func convert(from input: FileHandle, to output: FileHandle) throws -> Int {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes]
        var fields: [Substring: String] = [:]
        var lastField: Substring?
        var pending = Data()
        var count = 0

        func endRecord() throws {
            defer {
                fields.removeAll(keepingCapacity: true)
                lastField = nil
            }
            guard let line = Line(fields) else { return }
            pending.append(try encoder.encode(line))
            pending.append(0x0A)
            count += 1
            if pending.count > 1 << 20 {
                try output.write(contentsOf: pending)
                pending.removeAll(keepingCapacity: true)
            }
        }

        var waiting = Data()
        while let chunk = try input.read(upToCount: 4 << 20), !chunk.isEmpty {
            // A chunk may end anywhere; what follows its last line feed waits for the next one.
            waiting.append(chunk)
            guard let lastLineFeed = waiting.lastIndex(of: 0x0A) else { continue }
            let lines = String(decoding: waiting[..<lastLineFeed], as: UTF8.self).split(
                separator: "\n", omittingEmptySubsequences: false)
            waiting = Data(waiting[(lastLineFeed + 1)...])
            for line in lines {
                if line.isEmpty {
                    try endRecord()
                } else if line.first == " ", let lastField {
                    fields[lastField, default: ""] += line
                } else if let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) {
                    let name = line[..<colon]
                    fields[name] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
                    lastField = name
                }
            }
        }
        try endRecord()
        try output.write(contentsOf: pending)
        return count
    }

    /// A line for the loader: the document and, as `__name__`, its id.
    private struct Line: Encodable {
        let id: String
        let package: DebianPackage

        enum CodingKeys: String, CodingKey {
            case id = "__name__"
            case name, version, architecture, section, priority, summary, maintainer, installedKibibytes, archiveBytes
            case expansion, homepage, tags, depends
        }

        init?(_ fields: [Substring: String]) {
            guard let name = fields["Package"], let version = fields["Version"] else { return nil }
            let architecture = fields["Architecture"] ?? "all"
            let installed = fields["Installed-Size"].flatMap { Int($0) } ?? 0
            let archive = fields["Size"].flatMap { Int($0) } ?? 0
            id = "\(name)_\(version)_\(architecture)"
            package = DebianPackage(
                name: name, version: version, architecture: architecture, section: fields["Section"] ?? "unknown",
                priority: fields["Priority"] ?? "optional", summary: fields["Description"] ?? "",
                maintainer: .init(index: fields["Maintainer"] ?? ""), installedKibibytes: installed,
                archiveBytes: archive,
                expansion: archive == 0 ? 0 : Double(installed) * 1024 / Double(archive), homepage: fields["Homepage"],
                tags: (fields["Tag"] ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) },
                depends: (fields["Depends"] ?? "").split(separator: ",").map { .init(index: $0) })
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(id, forKey: .id)
            try container.encode(package.name, forKey: .name)
            try container.encode(package.version, forKey: .version)
            try container.encode(package.architecture, forKey: .architecture)
            try container.encode(package.section, forKey: .section)
            try container.encode(package.priority, forKey: .priority)
            try container.encode(package.summary, forKey: .summary)
            try container.encode(package.maintainer, forKey: .maintainer)
            try container.encode(package.installedKibibytes, forKey: .installedKibibytes)
            try container.encode(package.archiveBytes, forKey: .archiveBytes)
            try container.encode(package.expansion, forKey: .expansion)
            try container.encodeIfPresent(package.homepage, forKey: .homepage)
            try container.encode(package.tags, forKey: .tags)
            try container.encode(package.depends, forKey: .depends)
        }
    }
}

extension DebianPackage.Maintainer {
    /// From `Name <address>`.
    init(index text: String) {
        let parts = text.split(separator: "<", maxSplits: 1)
        name = parts.first.map { $0.trimmingCharacters(in: .whitespaces) } ?? ""
        email = parts.count > 1 ? parts[1].trimmingCharacters(in: CharacterSet(charactersIn: "> ")) : nil
    }
}

extension DebianPackage.Dependency {
    /// From `name (>= version) | alternative | ...`.
    init(index text: Substring) {
        let choices = text.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        let first = choices.first ?? ""
        let parts = first.split(separator: "(", maxSplits: 1)
        package = parts.first.map { $0.trimmingCharacters(in: .whitespaces) } ?? first
        let condition =
            parts.count > 1
            ? parts[1].dropLast(parts[1].hasSuffix(")") ? 1 : 0).split(separator: " ", maxSplits: 1) : []
        relation = condition.first.map(String.init)
        version = condition.count > 1 ? String(condition[1]) : nil
        alternatives = choices.count > 1 ? Array(choices.dropFirst()) : nil
    }
}
