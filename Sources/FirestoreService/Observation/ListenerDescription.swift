/// Who listens to what, for operators.
package struct ListenerDescription: Sendable {
    /// The client's address with its port.
    package var client: String
    /// The name of its user or principal; empty if nobody is asked.
    package var caller: String
    package var database: String
    /// When the stream began, in microseconds since 1970.
    package var sinceMicroseconds: Int64
    /// Messages that were sent to the client.
    package var messages: UInt64
    /// Documents that the server looked at for the stream: since it began, and in the last hour.
    package var documentsRead: UInt64
    package var documentsLastHour: UInt64
    /// Queries and documents, as texts for people.
    package var targets: [String]
}
