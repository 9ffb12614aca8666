// Arithmetic, for the naive evaluator.

import DocumentModel
import Foundation

extension NaiveEvaluator {
    static let numbers: [NaiveFunction] = [
        NaiveFunction("add", [2, 3], [numberValues]) { folded($0, { $0.addingReportingOverflow($1) }, +) },
        NaiveFunction("subtract", [2], [numberValues]) { folded($0, { $0.subtractingReportingOverflow($1) }, -) },
        NaiveFunction("multiply", [2, 3], [numberValues]) { folded($0, { $0.multipliedReportingOverflow(by: $1) }, *) },
        NaiveFunction("divide", [2], [numberValues]) { folded($0, { $0.dividedReportingOverflow(by: $1) }, /) },
        NaiveFunction("mod", [2], [numberValues]) { arguments in
            folded(
                arguments, { $1 == 0 ? (0, true) : ($1 == -1 ? 0 : $0 % $1, false) },
                { $0.truncatingRemainder(dividingBy: $1) })
        },
        NaiveFunction("abs", [1], [numberValues]) {
            number($0[0], { $0 == .min ? nil : $0.magnitude }, { $0.magnitude })
        },
        NaiveFunction("ceil", [1], [numberValues]) { number($0[0], { $0 }, { Foundation.ceil($0) }) },
        NaiveFunction("floor", [1], [numberValues]) { number($0[0], { $0 }, { Foundation.floor($0) }) },
        NaiveFunction("round", [1, 2], [numberValues, smallIntegers], isApproximate: true) { rounded($0, isUp: true) },
        NaiveFunction("trunc", [1, 2], [numberValues, smallIntegers], isApproximate: true) { rounded($0, isUp: false) },
        NaiveFunction("sqrt", [1], [numberValues], isApproximate: true) {
            function($0) { $0[0] < 0 ? nil : $0[0].squareRoot() }
        },
        NaiveFunction("exp", [1], [numberValues], isApproximate: true) { arguments in
            function(arguments) { numbers in
                let value = Foundation.exp(numbers[0])
                return value.isInfinite && numbers[0].isFinite ? nil : value
            }
        },
        NaiveFunction("ln", [1], [numberValues], isApproximate: true) {
            function($0) { $0[0] <= 0 ? nil : Foundation.log($0[0]) }
        },
        NaiveFunction("log10", [1], [numberValues], isApproximate: true) {
            function($0) { $0[0] <= 0 ? nil : Foundation.log10($0[0]) }
        },
        NaiveFunction("log", [1, 2], [numberValues], isApproximate: true) { arguments in
            function(arguments) { numbers in
                if numbers.contains(where: { $0 <= 0 }) || numbers.count == 2 && numbers[1] == 1 { return nil }
                return numbers.count == 1
                    ? Foundation.log(numbers[0]) : Foundation.log(numbers[0]) / Foundation.log(numbers[1])
            }
        },
        NaiveFunction("pow", [2], [numberValues], isApproximate: true) { arguments in
            function(arguments) { numbers in
                let (base, exponent) = (numbers[0], numbers[1])
                let isWhole = exponent == Foundation.floor(exponent)
                if base == 0, exponent < 0 { return nil }
                if base < 0, base > -.infinity, exponent.magnitude < .infinity, !isWhole { return nil }
                return Foundation.pow(base, exponent)
            }
        },
    ]

    /// Integers stay integers until there is a double.
    private static func folded(
        _ values: [Value], _ integers: (Int64, Int64) -> (Int64, Bool), _ doubles: (Double, Double) -> Double
    ) -> NaiveOutcome {
        if values.contains(where: { double($0) == nil }) { return .failed }
        var result = values[0]
        for value in values.dropFirst() {
            if case .integer(let left) = result, case .integer(let right) = value {
                let (sum, fails) = integers(left, right)
                if fails { return .failed }
                result = .integer(sum)
            } else {
                result = .double(doubles(double(result) ?? .nan, double(value) ?? .nan))
            }
        }
        return .value(result)
    }

    private static func number(
        _ value: Value, _ integers: (Int64) -> (any BinaryInteger)?, _ doubles: (Double) -> Double
    ) -> NaiveOutcome {
        switch value {
        case .integer(let number): .known(integers(number).flatMap { Int64(exactly: $0) }.map { .integer($0) })
        case .double(let number): .double(doubles(number))
        default: .failed
        }
    }

    private static func function(_ values: [Value], _ body: ([Double]) -> Double?) -> NaiveOutcome {
        let numbers = values.compactMap(double)
        return numbers.count < values.count ? .failed : .known(body(numbers).map { .double($0) })
    }

    // MARK: Rounding, digit by digit

    private static func rounded(_ values: [Value], isUp: Bool) -> NaiveOutcome {
        var places = 0
        if values.count == 2 {
            guard case .integer(let given) = values[1] else { return .failed }
            places = Int(max(-1000, min(1000, given)))
        }
        switch values[0] {
        case .integer(let number):
            let digits = rounded(String(number.magnitude), exponent: 0, places, isUp)
            return .known(
                Int64((number < 0 ? "-" : "") + digits.digits + String(repeating: "0", count: digits.exponent))
                    .map { .integer($0) })
        case .double(let number):
            if !number.isFinite { return .double(number) }
            let parts = "\(number.magnitude)".split(separator: "e")
            let point = parts[0].split(separator: ".")
            let fraction = point.count > 1 && point[1] != "0" ? String(point[1]) : ""
            let exponent = (parts.count > 1 ? Int(parts[1]) ?? 0 : 0) - fraction.count
            let result = rounded(String(point[0]) + fraction, exponent: exponent, places, isUp)
            return .known(
                Double("\(number.sign == .minus ? "-" : "")\(result.digits)e\(result.exponent)").map { .double($0) })
        default: return .failed
        }
    }

    /// Removes the digits after the last place; half is rounded away from zero.
    private static func rounded(
        _ digits: String, exponent: Int, _ places: Int, _ isUp: Bool
    ) -> (digits: String, exponent: Int) {
        let surplus = -exponent - places
        if surplus <= 0 { return (digits, exponent) }
        let padded = String(repeating: "0", count: max(0, surplus - digits.count)) + digits
        var kept = padded.dropLast(surplus).compactMap(\.wholeNumberValue)
        if isUp, let first = padded.suffix(surplus).first, first >= "5" {
            kept = [0] + kept
            var place = kept.count - 1
            while kept[place] == 9 {
                kept[place] = 0
                place -= 1
            }
            kept[place] += 1
        }
        let text = kept.map(String.init).joined()
        // Of zero there are no places.
        return text.allSatisfy { $0 == "0" } ? ("0", 0) : (text, exponent + surplus)
    }
}
