// One setting of `hearth serve`.

import FirestoreService
import Server

/// A flag of `hearth serve` bound to a property of the configuration. The property's initial value is the default.
struct ServeSetting: Sendable {
    /// Where the configuration keeps the setting.
    typealias Path<Stored> = any WritableKeyPath<DatabaseServerConfiguration, Stored> & Sendable

    let flag: any FlagDeclaration
    /// The value in a configuration, as the flag spells it.
    let text: @Sendable (_ configuration: DatabaseServerConfiguration) -> String
    /// Stores the flag's value in a configuration.
    let set: @Sendable (_ configuration: inout DatabaseServerConfiguration, _ arguments: ParsedArguments) -> Void

    /// - Parameters:
    ///   - read: makes the flag's value of the property's.
    ///   - write: makes the property's value of the flag's.
    ///   - makeFlag: declares the flag with the given default.
    private init<Value, Stored>(
        _ path: Path<Stored>, read: @escaping @Sendable (Stored) -> Value,
        write: @escaping @Sendable (Value) -> Stored, makeFlag: (_ defaultValue: Value) -> Flag<Value>
    ) {
        let flag = makeFlag(read(ServeSettings.defaults[keyPath: path]))
        self.flag = flag
        text = { configuration in read(configuration[keyPath: path]).flagText }
        set = { configuration, arguments in configuration[keyPath: path] = write(arguments[flag]) }
    }

    /// A whole number within a range.
    static func number<Number: BinaryInteger & SendableMetatype>(
        _ name: String, _ placeholder: String = "N", in range: ClosedRange<Int>, _ path: Path<Number>, _ help: String
    ) -> ServeSetting {
        ServeSetting(path, read: { Int($0) }, write: { Number($0) }) { value in
            Flag(name, placeholder, default: value, in: range, help: help)
        }
    }

    /// A number of bytes within a range.
    static func size<Number: BinaryInteger & SendableMetatype>(
        _ name: String, in range: ClosedRange<ByteCount>, _ path: Path<Number>, _ help: String
    ) -> ServeSetting {
        ServeSetting(path, read: { ByteCount(bytes: Int($0)) }, write: { Number($0.bytes) }) { value in
            Flag(name, "SIZE", default: value, in: range, help: help)
        }
    }

    /// A time that the configuration keeps in units of `1 / perMillisecond` milliseconds.
    static func time<Number: BinaryInteger & SendableMetatype>(
        _ name: String, in range: ClosedRange<TimeSpan> = TimeSpan.seconds(0)...TimeSpan(milliseconds: 1 << 31),
        _ path: Path<Number>, perMillisecond: Int = 1, _ help: String
    ) -> ServeSetting {
        ServeSetting(
            path, read: { TimeSpan(milliseconds: Int($0) / perMillisecond) },
            write: { Number($0.milliseconds * perMillisecond) }
        ) { value in
            Flag(name, "TIME", default: value, in: range, help: help)
        }
    }

    /// A text.
    static func text(_ name: String, _ placeholder: String, _ path: Path<String>, _ help: String) -> ServeSetting {
        ServeSetting(path, read: { $0 }, write: { $0 }) { Flag(name, placeholder, default: $0, help: help) }
    }

    /// One of several words, each standing for a value.
    static func choice<Stored: Equatable & Sendable & SendableMetatype>(
        _ name: String, _ placeholder: String, _ words: [(word: String, value: Stored)], _ path: Path<Stored>,
        _ help: String
    ) -> ServeSetting {
        let names = words.map(\.word)
        let expected = names.dropLast().joined(separator: ", ") + " or " + names.last!
        return ServeSetting(
            path, read: { value in words.first { $0.value == value }!.word },
            write: { word in words.first { $0.word == word }!.value }
        ) { value in
            Flag(name, placeholder, default: value, help: help) { names.contains($0) ? nil : expected }
        }
    }
}
