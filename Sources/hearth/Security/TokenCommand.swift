// `hearth token`: credentials of servers, revocations of users, and tokens for tests.

import Basics

/// Changes and lists the file of principals, revokes users, and mints tokens.
enum TokenCommand: BlockingSubcommand {
    static let name = "token"
    static let summary = "Makes, lists and revokes credentials, and mints tokens for tests."
    static let words = ["ACTION", "[NAME]"]
    static let actions = ["create", "list", "revoke", "revoke-user", "mint"]

    static let discussion = """
        ACTION is one of these:

          create NAME       gives the principal NAME a credential, and prints its secret
          list              prints the principals and their credentials, without secrets
          revoke ID         removes a credential, or with a principal's name all of them
          revoke-user UID   refuses the user's tokens of sign-ins before this moment
          mint              prints a token that the private key in --key signs

        create, list and revoke work on the file of --principals, which hearth serve
        reads at its start and on SIGHUP. Its owner alone may read and write it (0600).
        A secret is shown once: the file has a hash or a public key. A service account's
        key is a file as Google's SDKs read it. No flag takes a secret.

        revoke-user asks the server that runs on --data, and writes to the directory if none
        does. The user's streams end within seconds. All servers of a cluster refuse the
        tokens: ask any of them on its machine, or give the home database with --cluster. A
        replica and its source refuse the tokens wherever it is asked.

        Examples:

          hearth token create backend --principals p.json --role writer --project shop --api-key
          hearth token create functions --principals p.json --role admin --project shop \\
            --service-account --url https://db.example.org --out key.json
          hearth token create job --principals p.json --role reader --project shop \\
            --certificate URI:spiffe://example/job
          hearth token revoke backend --principals p.json
          hearth token revoke-user ada --data /var/lib/hearth
          hearth token revoke-user ada --cluster postgresql://hearth@10.0.0.9/hearth
          hearth token mint --uid ada --key key.pem --issuer https://securetoken.google.com/shop
        """

    static let flagGroups = [
        FlagGroup(heading: "Principals (create, list, revoke)", flags: PrincipalActions.flags),
        FlagGroup(heading: "Users (revoke-user)", flags: UserRevocation.flags),
        FlagGroup(heading: "Tokens (mint)", flags: TokenMinting.flags),
        FlagGroup(heading: "Output (create, list, mint)", flags: [output, json]),
    ]
    static let json = Flag(
        switch: "json",
        help: "list prints an object for each principal, where null for projects, databases or collections means all.")
    static let output = Flag<String>(
        "out", "FILE", required: false,
        help: "Write the secret to a new file that its owner alone may read, and not to standard output.")

    static func run(_ arguments: ParsedArguments) throws {
        let action = try action(arguments)
        let works: [String: (takesName: Bool, run: (_ name: String, ParsedArguments) throws -> Void)] = [
            "create": (true, PrincipalActions.create), "revoke": (true, PrincipalActions.revoke),
            "revoke-user": (true, UserRevocation.run),
            "list": (false, { _, arguments in try PrincipalActions.list(arguments) }),
            "mint": (false, { _, arguments in try TokenMinting.run(arguments) }),
        ]
        guard let (takesName, run) = works[action] else { preconditionFailure("\(action) has no work") }
        let name = arguments.words.dropFirst().first
        if takesName, name == nil { throw UsageError(message: "missing argument NAME") }
        if !takesName, let name { throw UsageError(message: "unexpected argument \"\(name)\"") }
        try run(name ?? "", arguments)
    }

    /// Seconds since 1970.
    static var now: Int64 { Int64(clamping: SystemClock.microseconds() / 1_000_000) }
}
