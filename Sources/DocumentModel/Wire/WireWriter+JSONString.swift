// Strings in JSON text.

import Basics

extension WireWriter: JSONText.Output {}

extension WireWriter {
    /// Appends valid UTF-8 as a JSON string, with escapes.
    package mutating func appendJSONString(_ text: RawSpan) { JSONText.appendQuoted(text, to: &self) }
}
