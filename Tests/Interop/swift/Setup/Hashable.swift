// Results of pipelines that can be compared and hashed.

import Foundation

/// The values of a result as Swift's types.
func hashable(_ data: [String: Sendable?]) -> [String: AnyHashable?] {
    data.mapValues { $0.map { hashable(value: $0) } }
}

private func hashable(value: Any) -> AnyHashable {
    switch value {
    case let elements as [Any]: elements.map { hashable(value: $0) }
    case let entries as [String: Any]: entries.mapValues { hashable(value: $0) }
    case let number as NSNumber: number.objCType.pointee == 0x64 ? number.doubleValue : number.intValue
    case let value as AnyHashable: value
    default: "\(value)"
    }
}
