// One record of Debian's package index, as the demonstration stores it and reads it back.

import FirebaseFirestore

/// A package that Debian offers.
struct DebianPackage: Codable {
    @DocumentID var id: String?
    var name: String
    var version: String
    var architecture: String
    var section: String
    var priority: String
    var summary: String
    var maintainer: Maintainer
    /// Kibibytes on the disk once installed.
    var installedKibibytes: Int
    var archiveBytes: Int
    /// Bytes on the disk for each byte of the archive.
    var expansion: Double
    var homepage: String?
    var tags: [String]
    var depends: [Dependency]

    struct Maintainer: Codable {
        var name: String
        var email: String?
    }

    /// One thing the package needs: any of the alternatives.
    struct Dependency: Codable {
        var package: String
        /// `>=`, `=` and so on, with `version`.
        var relation: String?
        var version: String?
        var alternatives: [String]?
    }
}
