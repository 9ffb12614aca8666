// Filters on single fields, each for a dotted field name and for a `FieldPath`. The SDK spells `isGreaterOrEqualTo`
// without "Than".

import DocumentCoding
import Foundation

extension Filter {
    /// Accepts the documents whose field is equal to the value; null and NaN match themselves.
    @discardableResult
    public class func whereField(_ field: String, isEqualTo value: Any) -> Filter {
        Filter(.ofDotted(field), .equal, value)
    }

    /// Accepts the documents whose field is equal to the value; null and NaN match themselves.
    @discardableResult
    public class func whereField(_ path: FieldPath, isEqualTo value: Any) -> Filter {
        Filter(path, .equal, value)
    }

    /// Accepts the documents whose field is present, not null and different from the value.
    @discardableResult
    public class func whereField(_ field: String, isNotEqualTo value: Any) -> Filter {
        Filter(.ofDotted(field), .notEqual, value)
    }

    /// Accepts the documents whose field is present, not null and different from the value.
    @discardableResult
    public class func whereField(_ path: FieldPath, isNotEqualTo value: Any) -> Filter {
        Filter(path, .notEqual, value)
    }

    /// Accepts the documents whose field is of the value's type and less.
    @discardableResult
    public class func whereField(_ field: String, isLessThan value: Any) -> Filter {
        Filter(.ofDotted(field), .lessThan, value)
    }

    /// Accepts the documents whose field is of the value's type and less.
    @discardableResult
    public class func whereField(_ path: FieldPath, isLessThan value: Any) -> Filter {
        Filter(path, .lessThan, value)
    }

    /// Accepts the documents whose field is of the value's type and not greater.
    @discardableResult
    public class func whereField(_ field: String, isLessThanOrEqualTo value: Any) -> Filter {
        Filter(.ofDotted(field), .lessThanOrEqual, value)
    }

    /// Accepts the documents whose field is of the value's type and not greater.
    @discardableResult
    public class func whereField(_ path: FieldPath, isLessThanOrEqualTo value: Any) -> Filter {
        Filter(path, .lessThanOrEqual, value)
    }

    /// Accepts the documents whose field is of the value's type and greater.
    @discardableResult
    public class func whereField(_ field: String, isGreaterThan value: Any) -> Filter {
        Filter(.ofDotted(field), .greaterThan, value)
    }

    /// Accepts the documents whose field is of the value's type and greater.
    @discardableResult
    public class func whereField(_ path: FieldPath, isGreaterThan value: Any) -> Filter {
        Filter(path, .greaterThan, value)
    }

    /// Accepts the documents whose field is of the value's type and not less.
    @discardableResult
    public class func whereField(_ field: String, isGreaterOrEqualTo value: Any) -> Filter {
        Filter(.ofDotted(field), .greaterThanOrEqual, value)
    }

    /// Accepts the documents whose field is of the value's type and not less.
    @discardableResult
    public class func whereField(_ path: FieldPath, isGreaterOrEqualTo value: Any) -> Filter {
        Filter(path, .greaterThanOrEqual, value)
    }

    /// Accepts the documents whose field is an array that holds the value.
    @discardableResult
    public class func whereField(_ field: String, arrayContains value: Any) -> Filter {
        Filter(.ofDotted(field), .arrayContains, value)
    }

    /// Accepts the documents whose field is an array that holds the value.
    @discardableResult
    public class func whereField(_ path: FieldPath, arrayContains value: Any) -> Filter {
        Filter(path, .arrayContains, value)
    }

    /// Accepts the documents whose field is an array that holds at least one of the values.
    @discardableResult
    public class func whereField(_ field: String, arrayContainsAny values: [Any]) -> Filter {
        Filter(.ofDotted(field), .arrayContainsAny, values)
    }

    /// Accepts the documents whose field is an array that holds at least one of the values.
    @discardableResult
    public class func whereField(_ path: FieldPath, arrayContainsAny values: [Any]) -> Filter {
        Filter(path, .arrayContainsAny, values)
    }

    /// Accepts the documents whose field is one of the values.
    @discardableResult
    public class func whereField(_ field: String, in values: [Any]) -> Filter {
        Filter(.ofDotted(field), .isIn, values)
    }

    /// Accepts the documents whose field is one of the values.
    @discardableResult
    public class func whereField(_ path: FieldPath, in values: [Any]) -> Filter {
        Filter(path, .isIn, values)
    }

    /// Accepts the documents whose field is present, not null and none of the values.
    @discardableResult
    public class func whereField(_ field: String, notIn values: [Any]) -> Filter {
        Filter(.ofDotted(field), .notIn, values)
    }

    /// Accepts the documents whose field is present, not null and none of the values.
    @discardableResult
    public class func whereField(_ path: FieldPath, notIn values: [Any]) -> Filter {
        Filter(path, .notIn, values)
    }
}
