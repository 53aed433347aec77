// Payloads of packed vectors, looked at before anything is decoded from them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/core/packed_vector.hpp"
#include "storage/native/packed/codes.hpp"
#include "storage/native/statistics.hpp"

namespace bamquery {

/// What a kind of value is to packed vectors.
struct PackedKind {
  PackedType type;
  std::uint32_t width;  ///< Bytes of a plain value; of booleans, which have bits, those of a decoded one.
};

PackedKind packed_kind(ValueKind kind);

/// Calls `function(T{})`, where values of the kind are decoded as T: decimals by their low 64 bits, booleans
/// as bytes.
template <typename Function>
auto with_packed_type(ValueKind kind, Function&& function) {
  switch (kind) {
    case ValueKind::kInt8:
      return function(std::int8_t{});
    case ValueKind::kInt16:
      return function(std::int16_t{});
    case ValueKind::kInt32:
      return function(std::int32_t{});
    case ValueKind::kUInt8:
    case ValueKind::kBool:
      return function(std::uint8_t{});
    case ValueKind::kUInt16:
      return function(std::uint16_t{});
    case ValueKind::kUInt32:
      return function(std::uint32_t{});
    case ValueKind::kUInt64:
      return function(std::uint64_t{});
    case ValueKind::kFloat32:
      return function(float{});
    case ValueKind::kFloat64:
      return function(double{});
    default:
      return function(std::int64_t{});
  }
}

/// What is wrong with parameters, as errors say it of a vector; empty where nothing is.
const char* packed_fault_text(PackedFault fault);

/// std::invalid_argument that names vector number `vector` and what is wrong with its parameters.
[[noreturn]] void throw_packed_fault(std::int64_t vector, PackedFault fault);

/// The payload of a vector of `rows` rows at `start` of `data`, in memory of which kCodeSlack bytes behind
/// the codes may be read, too: a copy of those that end with the data.
class Payload {
 public:
  /// Raises std::invalid_argument where parameters are impossible; `number` is for its words.
  Payload(std::span<const std::byte> data, std::int64_t start, const PackedVector& vector, std::int64_t rows,
          const PackedKind& kind, std::int64_t number);
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  const std::byte* bytes() const { return bytes_; }
  /// The word that begins with escape number `index`, which is below vector.escapes().
  std::uint64_t escape(std::uint32_t index) const {
    std::uint64_t word;  // may end behind the payload, where there is slack
    __builtin_memcpy(&word, bytes_ + escapes_ + std::size_t{escape_bytes_} * index, sizeof word);
    return word;
  }

 private:
  static constexpr std::size_t kMost = std::size_t{kPackedVectorRows} * 16 + kPackedBitmapBytes;

  const std::byte* bytes_;
  std::size_t escapes_;
  std::uint32_t escape_bytes_;
  std::array<std::byte, kMost + kCodeSlack> copy_;  // not set before it is needed
};

}  // namespace bamquery
