// The request identifiers of commits, for the users of a client.

package import Calls

package typealias CommitSequence = Calls.CommitSequence
package typealias WriteNumbers = Calls.WriteNumbers
