// Packed vectors of a chunk in this GPU's memory, value by value.
#pragma once

#include "engine/kernels/scan_layout.hpp"
#include "engine/kernels/scan_predicate.hpp"
#include "storage/core/packed_parts.hpp"
#include "storage/core/packed_vector.hpp"

namespace bamquery {

inline constexpr uint32_t kPackedUnit = 16;  ///< Bytes of which payloads have a whole number.

/// A packed column of a chunk.
struct ScanPacked {
  const PackedVector* parameters;  ///< Of each vector.
  const uint32_t* slots;  ///< Where each payload is, in units of kPackedUnit bytes; null: none is there.
  const byte* payload;    ///< 16 bytes behind the last one are there, too.
  const ScanVector* vectors;
  const PackedScale* scales;  ///< By piece.
  const uint16_t* rows;       ///< Of each vector.
};
static_assert(sizeof(ScanPacked) == 48);

inline constexpr uint32_t kMostPayload = 32 << 10;  ///< Of a vector, and a bit more.

/// How many bytes of payload a vector has; none where its parameters are impossible.
BAMQUERY_CORE uint32_t payload_bytes(const PackedVector& vector, uint32_t rows, uint32_t width) {
  const auto possible = [&](PackedType type) {
    return packed_fault(vector, type, rows, width, ~uint64_t{0}) == PackedFault::kNone;
  };
  const bool any = possible(PackedType::kWholeNumber) || possible(PackedType::kFloating);
  return any ? static_cast<uint32_t>(packed_bytes(vector, rows, width)) : 0;
}

/// Where the payloads of a packed column of a chunk are in files.
struct PackedFiles {
  const PackedVector* parameters;  ///< Of each of the chunk's vectors.
  const ScanVector* vectors;
  const ScanPlace* places;  ///< By piece.
  const uint16_t* rows;     ///< Of each vector.
  const uint32_t* used;     ///< A word each: whether it is read; null: all are.
  uint32_t width;           ///< Bytes of a plain value.
  uint32_t block_bytes;

  /// Bytes to be read of a vector.
  BAMQUERY_CORE uint32_t bytes(uint32_t vector) const {
    if (used != nullptr && used[vector] == 0) return 0;
    return payload_bytes(parameters[vector], rows[vector], width);
  }

  /// Byte of its file in which a vector's payload begins.
  BAMQUERY_CORE uint64_t offset(uint32_t vector) const {
    return places[vectors[vector].piece].offset + uint64_t{kPackedUnit} * parameters[vector].offset;
  }

  /// Blocks that hold a vector's payload, but for a first one that a vector before counts; there is some.
  BAMQUERY_CORE uint32_t new_blocks(uint32_t vector) const {
    const uint64_t begin = offset(vector);
    const uint64_t first = begin / block_bytes;
    bool shared = false;
    for (uint32_t other = vector; other-- != 0 && vectors[other].piece == vectors[vector].piece;) {
      const uint32_t size = bytes(other);
      if (size != 0) shared = (offset(other) + size - 1) / block_bytes == first;
      if (size != 0 || begin - offset(other) > kMostPayload) break;  // payloads ascend
    }
    return static_cast<uint32_t>((begin + bytes(vector) - 1) / block_bytes - first) + (shared ? 0 : 1);
  }
};
static_assert(sizeof(PackedFiles) == 48);

/// Rows of a selection, as a packed column has them.
struct PackedRows {
  ScanPacked packed;        ///< Without payloads.
  const ScanPlace* places;  ///< By piece.
  const uint32_t* positions;
  uint32_t count;
  uint32_t block_bytes;

  BAMQUERY_CORE uint64_t payload(uint32_t position) const {
    const uint32_t vector = position / kVectorRows;
    return places[packed.vectors[vector].piece].offset + packed.parameters[vector].payload_start();
  }
};
static_assert(sizeof(PackedRows) == 72);

/// A decimal of 64 bits: what is packed of one has no more.
struct ScanNarrowDecimal {
  int64_t value;
};

/// What is packed of values of a type, and which forms that has; `kBytes`: of a plain value in files.
template <typename T>
struct PackedTypeOf {
  using Type = T;
  static constexpr uint32_t kBytes = sizeof(T);
  static constexpr PackedType kType =
      static_cast<T>(0.5) != T{0} ? PackedType::kFloating : PackedType::kWholeNumber;
  BAMQUERY_CORE static T widen(T value) { return value; }
};
template <>
struct PackedTypeOf<ScanDecimal> {
  using Type = int64_t;
  static constexpr uint32_t kBytes = sizeof(ScanDecimal);
  static constexpr PackedType kType = PackedType::kNeverRaw;
  BAMQUERY_CORE static ScanDecimal widen(int64_t value) {
    return {static_cast<uint64_t>(value), value < 0 ? ~uint64_t{0} : 0};
  }
};
template <>
struct PackedTypeOf<ScanNarrowDecimal> {
  using Type = int64_t;
  static constexpr uint32_t kBytes = sizeof(ScanDecimal);
  static constexpr PackedType kType = PackedType::kNeverRaw;
  BAMQUERY_CORE static ScanNarrowDecimal widen(int64_t value) { return {value}; }
};

/// One vector of a packed column whose payload is there. Whatever its parameters are, nothing outside of the
/// payload that `payload_bytes` tells of is used.
template <typename T>
class PackedReader {
 public:
  BAMQUERY_CORE PackedReader(const ScanPacked& packed, uint32_t vector)
      : PackedReader(packed, vector,
                     packed.slots == nullptr
                         ? nullptr
                         : packed.payload + static_cast<uint64_t>(packed.slots[vector]) * kPackedUnit) {}
  /// The same of a payload that is elsewhere.
  BAMQUERY_CORE PackedReader(const ScanPacked& packed, uint32_t vector, const byte* payload)
      : parameters_(packed.parameters[vector]),
        scale_(packed.scales[packed.vectors[vector].piece]),
        payload_(payload),
        rows_(packed.rows[vector]) {
    const PackedFault fault = packed_fault(parameters_, Packed::kType, rows_, Packed::kBytes, ~uint64_t{0});
    if (fault != PackedFault::kNone) parameters_ = {0, 0, 0, 1u << 15, 0};  // all are null
  }

  BAMQUERY_CORE const PackedVector& parameters() const { return parameters_; }
  BAMQUERY_CORE uint32_t rows() const { return rows_; }
  BAMQUERY_CORE uint32_t bits() const { return parameters_.bits; }
  BAMQUERY_CORE bool is_raw() const { return parameters_.is_raw(); }
  BAMQUERY_CORE bool has_nulls() const { return parameters_.has_nulls(); }
  BAMQUERY_CORE uint32_t escapes() const { return parameters_.escapes(); }
  /// Codes from here on stand for escapes, and the last one for NULL if there are nulls.
  BAMQUERY_CORE uint64_t first_special() const { return parameters_.first_special(); }

  BAMQUERY_CORE uint64_t code(uint32_t row) const {
    return packed_code(reinterpret_cast<const uint64_t*>(payload_), parameters_.bits, row);
  }
  /// The same for at most 32 bits.
  BAMQUERY_CORE uint32_t short_code(uint32_t row) const {
    const uint32_t at = row * bits();
    const auto* const words = reinterpret_cast<const uint32_t*>(payload_) + at / 32;
    const uint64_t both = static_cast<uint64_t>(words[1]) << 32 | words[0];
    return static_cast<uint32_t>(both >> at % 32) & static_cast<uint32_t>(packed_mask(bits()));
  }

  /// The value of a code that is below first_special().
  BAMQUERY_CORE T value(uint64_t code) const { return Packed::widen(number(code)); }

  /// See `packed_ordered_codes`.
  BAMQUERY_CORE uint64_t ordered_codes() const {
    return packed_ordered_codes<typename Packed::Type>(parameters_, scale_);
  }

  BAMQUERY_CORE T escape(uint32_t number) const {
    const uint64_t behind = packed_code_bytes(bits(), rows_);
    if (!parameters_.has_short_escapes()) {
      return escape_of(reinterpret_cast<const uint64_t*>(payload_ + behind)[number]);
    }
    return escape_of(reinterpret_cast<const uint32_t*>(payload_ + behind)[number]);
  }
  /// The escape that begins with the lowest bytes of `word`.
  BAMQUERY_CORE T escape_of(uint64_t word) const {
    return Packed::widen(packed_escape<typename Packed::Type>(parameters_, scale_, word));
  }

  /// What a raw value of these bits is.
  BAMQUERY_CORE static T raw_of(uint64_t found) {
    return Packed::widen(value_of_bits<typename Packed::Type>(found));
  }

  /// Of a vector that is raw.
  BAMQUERY_CORE T raw_value(uint32_t row) const { return reinterpret_cast<const T*>(payload_)[row]; }
  BAMQUERY_CORE bool raw_is_valid(uint32_t row) const {
    if (!has_nulls()) return true;
    const uint64_t at = packed_bitmap_start(rows_, Packed::kBytes) + row / 8;
    return (static_cast<uint32_t>(payload_[at]) >> row % 8 & 1) != 0;
  }

  /// The row's value into `to`; false: it is null, and `to` is zero.
  BAMQUERY_CORE bool read(uint32_t row, T& to) const {
    to = T{};
    if (is_raw()) {
      const bool valid = raw_is_valid(row);
      if (valid) to = raw_value(row);
      return valid;
    }
    const uint64_t found = code(row);
    const uint64_t first = first_special();
    if (found < first) {
      to = value(found);
      return true;
    }
    if (found - first >= escapes()) return false;
    to = escape(static_cast<uint32_t>(found - first));
    return true;
  }

 private:
  using Packed = PackedTypeOf<T>;

  BAMQUERY_CORE typename Packed::Type number(uint64_t code) const {
    return packed_value<typename Packed::Type>(parameters_.form(), parameters_.exponent(), scale_,
                                               static_cast<uint64_t>(parameters_.base) + code);
  }

  PackedVector parameters_;
  PackedScale scale_;
  const byte* payload_;
  uint32_t rows_;
};

}  // namespace bamquery
