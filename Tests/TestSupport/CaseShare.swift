// The share of the random cases that a run makes: another one each day, so that the runs of some days make all of them.

import Foundation

/// Which of the random cases a run makes. A soak (`HEARTH_SOAK`) makes all.
package enum CaseShare {
    private static let environment = ProcessInfo.processInfo.environment

    /// `HEARTH_SHARE`, or else the days since 1970: runs with the same number make the same cases.
    package static let number =
        environment["HEARTH_SHARE"].flatMap { Int($0) } ?? Int(Date.now.timeIntervalSince1970 / 86_400)

    /// Neighbours among the cases, `count` at most. The shares of successive numbers cover all cases, and then begin
    /// again.
    package static func of<Case>(_ cases: some Sequence<Case>, _ count: Int) -> [Case] {
        let cases = Array(cases)
        if environment["HEARTH_SOAK"] != nil || count >= cases.count { return cases }
        let shares = (cases.count + count - 1) / count
        let share = (number % shares + shares) % shares
        return Array(cases[(share * cases.count / shares)..<((share + 1) * cases.count / shares)])
    }
}
