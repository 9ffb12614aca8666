// Sums over two vectors, one of them encoded: the inner loops of nearest-neighbour search.
//
// An encoded vector has 11 bytes for each element: 0a 09 19, then the double. Eight elements are taken at once, so
// that the machine adds in parallel; sums over fewer than eight elements are in the order of the elements.

import DocumentModel

/// Sums over the elements of an encoded vector and a plain one of the same dimension.
struct VectorKernel: ~Escapable {
    /// Bytes of one encoded element, and where its double begins.
    private static let elementBytes = VectorBytes.bytesPerElement
    private static let doubleOffset = 3

    private let elements: RawSpan
    private let vector: [Double]

    /// - Parameter elements: `elementBytes` for each element of `vector`.
    @_lifetime(copy elements)
    init(_ elements: RawSpan, _ vector: [Double]) {
        precondition(elements.byteCount == vector.count * VectorKernel.elementBytes, "vectors of one dimension")
        self.elements = elements
        self.vector = vector
    }

    @inline(__always)
    private func element(_ index: Int) -> Double {
        // In bounds: `index` is below the dimension, and there are as many encoded elements.
        let bits = unsafe elements.unsafeLoadUnaligned(
            fromUncheckedByteOffset: index &* VectorKernel.elementBytes &+ VectorKernel.doubleOffset, as: UInt64.self)
        return Double(bitPattern: UInt64(littleEndian: bits))
    }

    @inline(__always)
    private func eight(_ index: Int) -> SIMD8<Double> {
        SIMD8(
            element(index), element(index &+ 1), element(index &+ 2), element(index &+ 3), element(index &+ 4),
            element(index &+ 5), element(index &+ 6), element(index &+ 7))
    }

    @inline(__always)
    private func sum(
        _ lanes: (_ own: SIMD8<Double>, _ other: SIMD8<Double>) -> SIMD8<Double>, _ single: (Double, Double) -> Double
    ) -> Double {
        let own = vector.span
        var total = 0.0
        var index = 0
        var partial = SIMD8<Double>(repeating: 0)
        while own.count &- index >= 8 {
            let block = SIMD8(
                own[index], own[index &+ 1], own[index &+ 2], own[index &+ 3], own[index &+ 4], own[index &+ 5],
                own[index &+ 6], own[index &+ 7])
            partial += lanes(block, eight(index))
            index &+= 8
        }
        if index > 0 { total = partial.sum() }
        while index < own.count {
            total += single(own[index], element(index))
            index &+= 1
        }
        return total
    }

    func dotProduct() -> Double { sum({ $0 * $1 }, { $0 * $1 }) }

    func squaredNorm() -> Double { sum({ $1 * $1 }, { $1 * $1 }) }

    /// The same, to the last bit, of a vector that is not encoded.
    static func squaredNorm(of vector: [Double]) -> Double {
        let bytes = Value.vector(vector).wireBytes
        guard let value = WireValue(bytes.byteSpan), value.typeClass == .vector else { return .nan }
        return VectorKernel(VectorBytes.elementBytes(mapEntries: value.payload), vector).squaredNorm()
    }

    func squaredDistance() -> Double {
        sum({ own, other in (own - other) * (own - other) }, { own, other in (own - other) * (own - other) })
    }
}
