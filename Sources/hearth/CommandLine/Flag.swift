// A flag as a subcommand declares it: its name, value type, default and help; the environment variable follows from the
// name, so every flag has one.

/// One flag of a subcommand, for example `--port PORT`.
///
/// Its environment variable is `HEARTH_` and the name in capitals with `_` for `-` (`--max-connections` is
/// `HEARTH_MAX_CONNECTIONS`). The command line wins over the environment, the environment over the default.
struct Flag<Value: FlagValue>: FlagDeclaration {
    /// The long name without its dashes.
    let name: String
    /// Other long names that the command line accepts; the environment variable follows from `name` alone.
    private(set) var aliases: [String] = []
    /// What stands for the value in help texts, for example `PORT`.
    let placeholder: String
    /// Used where neither the command line nor the environment names the flag.
    let defaultValue: Value?
    /// Whether leaving the flag out is an error.
    let isRequired: Bool
    /// Whether the command line may give it several times.
    private(set) var isRepeatable = false
    /// A sentence or two for `--help`.
    let help: String
    /// Says whether a value that parsed is allowed; the phrase follows "must be".
    private let constraint: (@Sendable (Value) -> String?)?

    init(_ name: String, _ placeholder: String, default value: Value, help: String) {
        self.init(name, placeholder, value, isRequired: false, help, nil)
    }

    init(_ name: String, _ placeholder: String, required: Bool, help: String) {
        self.init(name, placeholder, nil, isRequired: required, help, nil)
    }

    init(
        _ name: String, _ placeholder: String, required: Bool, help: String,
        constraint: @escaping @Sendable (Value) -> String?
    ) {
        self.init(name, placeholder, nil, isRequired: required, help, constraint)
    }

    init(
        _ name: String, _ placeholder: String, default value: Value, help: String,
        constraint: @escaping @Sendable (Value) -> String?
    ) {
        self.init(name, placeholder, value, isRequired: false, help, constraint)
    }

    /// A flag that may be given several times; ask with `values(of:)`.
    init(repeatable name: String, _ placeholder: String, help: String) {
        self.init(name, placeholder, nil, isRequired: false, help, nil)
        isRepeatable = true
    }

    /// The same flag, also accepted under other names.
    func alias(_ aliases: String...) -> Flag {
        var flag = self
        flag.aliases += aliases
        return flag
    }

    private init(
        _ name: String, _ placeholder: String, _ value: Value?, isRequired: Bool, _ help: String,
        _ constraint: (@Sendable (Value) -> String?)?
    ) {
        self.name = name
        self.placeholder = placeholder
        self.defaultValue = value
        self.isRequired = isRequired
        self.help = help
        self.constraint = constraint
    }

    /// Reads and checks a text.
    func parse(_ text: String) throws(FlagTextError) -> Value {
        let value = try Value.parse(text)
        if let expected = constraint?(value) { throw FlagTextError(expected: expected) }
        return value
    }

    func check(_ text: String) throws(FlagTextError) { _ = try parse(text) }

    var isSwitch: Bool { Value.self == Bool.self }
    var defaultText: String? { isSwitch ? nil : defaultValue?.flagText }
}

extension Flag where Value == Int {
    /// A whole number within a closed range, without a default.
    init(_ name: String, _ placeholder: String, in range: ClosedRange<Int>, help: String) {
        self.init(name, placeholder, nil, isRequired: false, help) { number in
            range.contains(number) ? nil : "between \(range.lowerBound) and \(range.upperBound)"
        }
    }

    /// A whole number within a closed range.
    init(_ name: String, _ placeholder: String, default value: Int, in range: ClosedRange<Int>, help: String) {
        self.init(name, placeholder, default: value, help: help) { number in
            range.contains(number) ? nil : "between \(range.lowerBound) and \(range.upperBound)"
        }
    }
}

extension Flag where Value == Bool {
    /// A switch, off unless given.
    init(switch name: String, help: String) {
        self.init(name, "", default: false, help: help)
    }
}

/// A flag with its value type put aside, for parsing and help.
protocol FlagDeclaration: Sendable {
    var name: String { get }
    var aliases: [String] { get }
    var placeholder: String { get }
    var help: String { get }
    var isSwitch: Bool { get }
    var isRequired: Bool { get }
    var isRepeatable: Bool { get }
    /// The default as shown by help; nil for switches and for flags without one.
    var defaultText: String? { get }
    func check(_ text: String) throws(FlagTextError)
}

extension FlagDeclaration {
    /// Every long name that the command line accepts.
    var names: [String] { [name] + aliases }

    /// `HEARTH_MAX_CONNECTIONS` for `max-connections`.
    var environmentVariable: String {
        "HEARTH_" + name.uppercased().split(separator: "-", omittingEmptySubsequences: false).joined(separator: "_")
    }
}
