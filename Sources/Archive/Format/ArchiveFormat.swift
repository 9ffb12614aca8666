// An archive: bases and records, from which a store can be restored as of any commit since the oldest base.
//
//      DIR/ARCHIVE                           which store the archive is of (``ArchiveOwner``)
//      DIR/LOCK                              locked (flock) by the process that writes
//      DIR/records/….records                 the records of commits, file after file (``RecordHeader``)
//      DIR/bases/…/BASE                      what the base consists of; written last (``ArchiveBase``)
//      DIR/bases/…/runs/…, rules/…           the files of a data directory as of the base's version
//
//      versions  ──────────────────────────────────────────────────────────────────────►
//      records    [ 1 )[ 2 )[ 3      )[ 4 )[ 5      )   [ 6 )[ 7 )
//      bases               ▲ 1                       ▲ 2           ▲: its version
//
// A restore to a version takes the newest base that is not after it, and the records in between. Numbers are names: 16
// hexadecimal digits. A file of records names the one before it by a sum, so a file that is missing, or of another
// archive, is noticed. A gap (between 5 and 6) begins a new chain, which needs a further base.
//
// All integers are little-endian. What is written never changes, except that the last file of records may be replaced,
// by rename, by one that has more. On-disk constants: never change one without a new format number.

internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

enum ArchiveFormat {
    static let line = "hearth archive, format 1"
    static let ownerName = "ARCHIVE"
    static let lockName = "LOCK"
    static let recordsName = "records"
    static let recordsSuffix = ".records"
    static let basesName = "bases"
    static let baseName = "BASE"
    static let unfinishedSuffix = ".new"

    static let recordsMagic: UInt64 = 0x3143_4552_4152_4148  // "HARAREC1"
    static let baseMagic: UInt64 = 0x3153_4142_4152_4148  // "HARABAS1"

    /// What to do about a damaged file.
    static func remedy(_ what: String) -> String {
        "restore to a version that does not need \(what), or from a copy of the archive; "
            + "`hearth archive check` lists all damage"
    }

    static func recordFile(_ number: UInt64, in directory: String) -> String {
        "\(directory)/\(recordsName)/\(Hexadecimal.text(number))\(recordsSuffix)"
    }

    static func baseDirectory(_ number: UInt64, in directory: String) -> String {
        "\(directory)/\(basesName)/\(Hexadecimal.text(number))"
    }

    /// The number in a name; nil for other names.
    static func number(_ name: String, suffix: String = "") -> UInt64? {
        guard name.hasSuffix(suffix) else { return nil }
        let digits = String(name.dropLast(suffix.utf8.count))
        let bytes = Array(digits.utf8)
        guard bytes.count == 16, let number = Hexadecimal.number(bytes.byteSpan) else { return nil }
        return Hexadecimal.text(number) == digits ? number : nil
    }
}
