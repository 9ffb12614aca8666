// Where the logs of stores lie: the stores of one cluster may be in several PostgreSQL databases.
//
//     home database      hearth.databases, and a row of hearth.stores for each store that lies elsewhere: the address
//                        of its database, without a password
//     other databases    hearth.stores with the leases of the stores that lie there, their logs and bases
//
// A database has an identity, and knows that of the home database of the cluster whose stores it has (hearth.identity).
// So no database has stores of two clusters, and one that is named by two addresses is recognised.
//
// The level of the row in the home database says whether the store shares. It is raised there after the store's own
// row was, and neither is ever lowered, so the two need no common transaction. Earlier versions refuse the level.

package import Storage

/// The identity of a PostgreSQL database that has stores, drawn at random.
package struct DatabaseIdentity: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package static func random() -> DatabaseIdentity {
        DatabaseIdentity(high: .random(in: 1 ... .max), low: .random(in: .min ... .max))
    }
}

/// Which database this is, and whose stores it has.
package struct DatabaseOwner: Equatable, Sendable {
    package let identity: DatabaseIdentity
    /// The home database of the cluster.
    package let home: DatabaseIdentity

    package init(identity: DatabaseIdentity, home: DatabaseIdentity) {
        self.identity = identity
        self.home = home
    }

    package var isHome: Bool { identity == home }

    /// What a database says of itself; nil if it was never named in a cluster of several databases.
    package init?(_ session: PostgreSQLSession) throws(SQLFailure) {
        let rows: [SQLRow]
        do throws(SQLFailure) {
            rows = try session.run(StoreTables.owner)
        } catch {
            guard error.isMissingTable else { throw error }
            return nil
        }
        guard let row = rows.first else { return nil }
        func identity(_ column: Int) -> DatabaseIdentity {
            DatabaseIdentity(high: row.number(column) ?? 0, low: row.number(column + 1) ?? 0)
        }
        self.init(identity: identity(0), home: identity(2))
    }
}

/// A store whose log does not lie in the home database.
package struct StorePlace: Equatable, Sendable {
    package let store: String
    package let identity: StoreIdentity
    /// Of the database, without a password.
    package let address: String
    package let database: DatabaseIdentity

    package init(store: String, identity: StoreIdentity, address: String, database: DatabaseIdentity) {
        self.store = store
        self.identity = identity
        self.address = address
        self.database = database
    }

    /// The stores that lie elsewhere, as the home database has them.
    package static func all(_ session: PostgreSQLSession) throws(SQLFailure) -> [StorePlace] {
        do throws(SQLFailure) {
            return try session.run(StoreTables.places).map { row in
                func number(_ column: Int) -> UInt64 { row.number(column) ?? 0 }
                return StorePlace(
                    store: row.text(0), identity: StoreIdentity(high: number(1), low: number(2)), address: row.text(3),
                    database: DatabaseIdentity(high: number(4), low: number(5)))
            }
        } catch {
            // No store was ever placed elsewhere, or there are no tables yet.
            guard error.isMissingColumn || error.isMissingTable else { throw error }
            return []
        }
    }
}

extension StoreTables {
    /// The level of the row in the home database of a store that lies elsewhere, and does not share yet.
    static let placedLevel: UInt64 = 100
    /// The same of one that shares. Its own row has ``movesLevel``.
    static let placedSharingLevel: UInt64 = 103

    /// Whether the level of a row says that the log of the store lies in another database.
    package static func isElsewhere(level: UInt64) -> Bool { (placedLevel...placedSharingLevel).contains(level) }

    /// The time of the database, in microseconds since 1970; one row.
    package static let clock = SQLStatement("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")

    // MARK: The identity of a database

    package static let creationOfIdentity = SQLStatement(
        script: """
            CREATE TABLE IF NOT EXISTS hearth.identity (one boolean PRIMARY KEY CHECK (one), high bigint NOT NULL,
                low bigint NOT NULL, home_high bigint NOT NULL, home_low bigint NOT NULL);
            """)

    static let owner = SQLStatement("SELECT high, low, home_high, home_low FROM hearth.identity")

    /// Enters which database this is, unless that is entered already.
    package static func entering(_ owner: DatabaseOwner) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO hearth.identity VALUES (true, $1::bigint, $2::bigint, $3::bigint, $4::bigint)
            ON CONFLICT (one) DO NOTHING
            """,
            [
                .number(owner.identity.high), .number(owner.identity.low), .number(owner.home.high),
                .number(owner.home.low),
            ])
    }

    // MARK: The places of stores

    /// Adds the columns of places to the home database, unless they exist.
    package static let columnsOfPlaces = SQLStatement(
        script: """
            ALTER TABLE hearth.stores ADD COLUMN IF NOT EXISTS database text NOT NULL DEFAULT '',
                ADD COLUMN IF NOT EXISTS database_high bigint NOT NULL DEFAULT 0,
                ADD COLUMN IF NOT EXISTS database_low bigint NOT NULL DEFAULT 0;
            """)

    static let places = SQLStatement(
        """
        SELECT name, high, low, database, database_high, database_low FROM hearth.stores WHERE database <> ''
        ORDER BY name
        """)

    /// The identities of all stores of the home database, wherever they lie: name, high, low.
    package static let identities = SQLStatement("SELECT name, high, low FROM hearth.stores")

    /// Enters in the home database where the store lies, unless it has a row there. One row if that was done.
    package static func placing(_ place: StorePlace) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO hearth.stores (name, high, low, timeline, level, epoch, renewals, holder_high, holder_low,
                address, ceiling, closed, renewed, database, database_high, database_low)
            VALUES ($1::text, $2::bigint, $3::bigint, 0, \(placedLevel), 0, 0, 0, 0, '', 0, 0, clock_timestamp(),
                $4::text, $5::bigint, $6::bigint) ON CONFLICT (name) DO NOTHING RETURNING name
            """,
            [
                .text(place.store), .number(place.identity.high), .number(place.identity.low), .text(place.address),
                .number(place.database.high), .number(place.database.low),
            ])
    }

    /// Enters another address of a database, for all stores that lie there.
    package static func addressing(_ database: DatabaseIdentity, at address: String) -> SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.stores SET database = $3::text
            WHERE database <> '' AND database_high = $1::bigint AND database_low = $2::bigint
            """, [.number(database.high), .number(database.low), .text(address)])
    }

    /// Notes in the home database that a store that lies elsewhere shares. Its own row was raised before.
    package var notingThatItShares: SQLStatement {
        SQLStatement(
            """
            UPDATE hearth.stores SET level = \(Self.placedSharingLevel)
            WHERE name = $1::text AND level = \(Self.placedLevel)
            """, [.text(name)])
    }
}
