#include "storage/native/packed/parts.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "driver/native/crc32c.hpp"
#include "storage/native/packed/decode.hpp"

namespace bamquery {
namespace {

// The lowest and the highest step that each row may be in.
struct RowSteps {
  alignas(64) std::array<std::uint8_t, kPackedVectorRows> low;
  alignas(64) std::array<std::uint8_t, kPackedVectorRows> high;
};

template <typename Code>
[[gnu::always_inline]] inline void cut_codes(const Code* codes, std::uint32_t shift, std::uint8_t* steps) {
  for (std::uint32_t row = 0; row < kPackedVectorRows; ++row) {
    steps[row] = static_cast<std::uint8_t>(codes[row] >> shift);
  }
}

[[gnu::always_inline]] inline void bound_parts(const RowSteps& steps, PackedPartBounds& bounds) {
  for (std::uint32_t part = 0; part < kPackedParts; ++part) {
    std::uint8_t low = kPackedLastStep;
    std::uint8_t high = 0;
    for (std::uint32_t row = part * kPackedPartRows; row < (part + 1) * kPackedPartRows; ++row) {
      low = std::min(low, steps.low[row]);
      high = std::max(high, steps.high[row]);
    }
    bounds.low[part] = low;
    bounds.high[part] = high;
  }
}

#if defined(__x86_64__)
template <typename Code>
BAMQUERY_AVX2 void cut_codes_avx2(const Code* codes, std::uint32_t shift, std::uint8_t* steps) {
  cut_codes(codes, shift, steps);
}
BAMQUERY_AVX2 void bound_parts_avx2(const RowSteps& steps, PackedPartBounds& bounds) {
  bound_parts(steps, bounds);
}
#endif

template <typename Code>
void cut_codes(SimdLevel level, const Code* codes, std::uint32_t shift, std::uint8_t* steps) {
#if defined(__x86_64__)
  if (level >= SimdLevel::kAvx2) return cut_codes_avx2(codes, shift, steps);
#else
  static_cast<void>(level);
#endif
  cut_codes(codes, shift, steps);
}

void bound_parts(SimdLevel level, const RowSteps& steps, PackedPartBounds& bounds) {
#if defined(__x86_64__)
  if (level >= SimdLevel::kAvx2) return bound_parts_avx2(steps, bounds);
#else
  static_cast<void>(level);
#endif
  bound_parts(steps, bounds);
}

// Steps of the escapes of one vector, whose ordinary values are T.
template <typename T>
class EscapeSteps {
 public:
  EscapeSteps(const PackedVector& vector, const PackedScale& scale)
      : vector_(vector),
        scale_(scale),
        ordered_(packed_ordered_codes<T>(vector, scale)),
        steps_(vector, ordered_),
        least_(ordered_ == 0 ? 0 : key(0)),
        greatest_(ordered_ == 0 ? 0 : key(ordered_ - 1)) {}

  /// `word` begins with the escape.
  void find(std::uint64_t word, std::uint8_t& low, std::uint8_t& high) const {
    const OrderKey<T> escape = order_key(packed_escape<T>(vector_, scale_, word));
    if (ordered_ == 0 || escape < least_) {
      low = 0;
      high = ordered_ == 0 ? kPackedLastStep : std::uint8_t{0};
      return;
    }
    const std::uint8_t last = steps_.of_code(ordered_ - 1);
    if (escape > greatest_) {
      low = last;
      high = kPackedLastStep;
      return;
    }
    // The last step that begins at or before it.
    std::uint32_t begin = 0;
    std::uint32_t end = last;
    while (begin < end) {
      const std::uint32_t middle = begin + (end - begin + 1) / 2;
      if (key(steps_.first_code(static_cast<std::uint8_t>(middle))) <= escape) {
        begin = middle;
      } else {
        end = middle - 1;
      }
    }
    low = static_cast<std::uint8_t>(begin);
    // It may be between a step's last value and the next one's first.
    high = static_cast<std::uint8_t>(begin + (key(steps_.last_code(low)) < escape ? 1 : 0));
  }

 private:
  OrderKey<T> key(std::uint64_t code) const {
    return order_key(packed_value<T>(vector_.form(), vector_.exponent(), scale_,
                                     static_cast<std::uint64_t>(vector_.base) + code));
  }

  const PackedVector& vector_;
  const PackedScale& scale_;
  std::uint64_t ordered_;
  PackedSteps steps_;
  OrderKey<T> least_, greatest_;
};

// Rows that have no ordinary code: escapes are where their values are, NULL is nowhere.
template <typename T, typename Code>
void place_special(SimdLevel level, const Payload& payload, const PackedVector& vector, std::uint32_t rows,
                   const PackedScale& scale, const CodeBuffer<Code>& codes, RowSteps& steps) {
  const std::uint64_t first = vector.first_special();
  std::array<std::uint8_t, kPackedVectorRows> lows, highs;
  const EscapeSteps<T> escapes(vector, scale);
  for (std::uint32_t e = 0; e < vector.escapes(); ++e) escapes.find(payload.escape(e), lows[e], highs[e]);
  VectorMask special;
  codes_within(level, codes, rows, first, packed_mask(vector.bits), special.data());
  const VectorMask all = first_rows(rows);
  for (std::uint32_t word = 0; 64 * word < rows; ++word) {
    for (std::uint64_t left = special[word] & all[word]; left != 0; left &= left - 1) {
      const std::uint32_t row = 64 * word + static_cast<std::uint32_t>(std::countr_zero(left));
      const std::uint64_t escape = codes.codes[row] - first;
      const bool is_null = escape >= vector.escapes();
      steps.low[row] = is_null ? kPackedLastStep : lows[escape];
      steps.high[row] = is_null ? std::uint8_t{0} : highs[escape];
    }
  }
}

template <typename T, typename Code>
void bound_vector(SimdLevel level, const Payload& payload, const PackedVector& vector, std::uint32_t rows,
                  const PackedScale& scale, PackedPartBounds& bounds) {
  CodeBuffer<Code> codes;
  unpack_codes(level, payload.bytes(), vector.bits, rows, codes);
  // The last part is unpacked whole; of parts behind it, nothing is.
  std::fill(codes.codes + (rows + kPackedPartRows - 1) / kPackedPartRows * kPackedPartRows,
            codes.codes + kPackedVectorRows, Code{0});
  RowSteps steps;
  cut_codes(level, codes.codes, vector.bits - kPackedStepBits, steps.high.data());
  steps.low = steps.high;
  if (vector.escapes() > 0 || vector.has_nulls()) {
    place_special<T>(level, payload, vector, rows, scale, codes, steps);
  }
  std::fill(steps.low.begin() + rows, steps.low.end(), kPackedLastStep);
  std::fill(steps.high.begin() + rows, steps.high.end(), std::uint8_t{0});
  bound_parts(level, steps, bounds);
}

void part_crcs(const std::byte* codes, std::size_t size, std::uint32_t parts, std::uint32_t* crcs) {
  std::uint32_t part = 0;
  for (; part + 4 <= parts; part += 4) {
    const std::byte* const at = codes + part * size;
    const std::byte* const runs[4] = {at, at + size, at + 2 * size, at + 3 * size};
    crc32c_four(runs, size, crcs + part);
  }
  for (; part < parts; ++part) crcs[part] = crc32c({codes + part * size, size});
}

}  // namespace

PackedParts packed_parts(ValueKind kind, std::span<const std::byte> payload,
                         std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                         std::span<const std::int64_t> rows, const PackedScale& scale) {
  const SimdLevel level = simd_level();
  const PackedKind packed = packed_kind(kind);
  PackedParts found;
  found.bounds.resize(vectors.size());
  found.crcs.resize(vectors.size() * kPackedParts);
  found.escape_crcs.resize(vectors.size());
  with_packed_type(kind, [&]<typename T>(T) {
    for (std::size_t v = 0; v < vectors.size(); ++v) {
      const PackedVector& vector = vectors[v];
      const Payload of_vector(payload, starts[v], vector, rows[v], packed, static_cast<std::int64_t>(v));
      const auto count = static_cast<std::uint32_t>(rows[v]);
      const std::uint32_t parts = (count + kPackedPartRows - 1) / kPackedPartRows;
      PackedPartBounds& bounds = found.bounds[v];
      if (!packed_has_parts(vector)) {
        for (std::uint32_t part = 0; part < kPackedParts; ++part) {
          bounds.low[part] = part < parts ? 0 : kPackedLastStep;
          bounds.high[part] = part < parts ? kPackedLastStep : 0;
        }
        continue;
      }
      if (vector.bits <= kNarrowBits) {
        bound_vector<T, std::uint32_t>(level, of_vector, vector, count, scale, bounds);
      } else {
        bound_vector<T, std::uint64_t>(level, of_vector, vector, count, scale, bounds);
      }
      const std::size_t size = std::size_t{16} * vector.bits;
      part_crcs(of_vector.bytes(), size, parts, found.crcs.data() + v * kPackedParts);
      const std::size_t behind = packed_bytes(vector, count, packed.width) - parts * size;
      found.escape_crcs[v] = behind == 0 ? 0 : crc32c({of_vector.bytes() + parts * size, behind});
    }
  });
  return found;
}

}  // namespace bamquery
