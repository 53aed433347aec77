#include "engine/native/pipeline/packed_input.hpp"

#include <array>
#include <bit>
#include <stdexcept>
#include <type_traits>

#include "engine/native/pipeline/validity.hpp"
#include "storage/native/packed/decode.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kRowMask = kPackedVectorRows - 1;

template <typename T>
std::int64_t as_word(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<std::int64_t>(static_cast<double>(value));
  } else {
    return static_cast<std::int64_t>(value);
  }
}

// Each pick, and the row behind them all, is looked at before anything is loaded by it.
void require_rows(const std::int64_t* picks, std::int32_t count, std::int64_t rows) {
  if (rows > static_cast<std::int64_t>(kRowMask)) return;  // whatever a pick is, its remainder is a row
  std::size_t most = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    most = std::max(most, static_cast<std::size_t>(picks[i]) & kRowMask);
  }
  if (count > 0 && static_cast<std::int64_t>(most) >= rows) throw std::invalid_argument("no such row");
}

}  // namespace

void load_packed(ValueKind kind, const PackedInput& column, std::size_t vector, const std::int64_t* picks,
                 std::int32_t count, Register& out) {
  const PackedVector& parameters = column.vectors[vector];
  const std::int64_t rows = column.rows[vector];
  if (picks == nullptr && rows != count) throw std::invalid_argument("a vector has other rows");
  if (picks != nullptr) require_rows(picks, count, rows);
  const Payload payload(column.payload, column.starts[vector], parameters, rows, packed_kind(kind),
                        static_cast<std::int64_t>(vector));
  const auto all = static_cast<std::uint32_t>(rows);
  const auto wanted = static_cast<std::size_t>(count);
  VectorMask valid;
  with_packed_type(kind, [&]<typename T>(T) {
    alignas(64) std::array<T, kPackedVectorRows> values;
    const bool gathers = picks != nullptr && rows != count;
    const bool in_place = std::is_same_v<T, std::int64_t> && !gathers;
    T* const decoded = in_place ? reinterpret_cast<T*>(out.words.data()) : values.data();
    const std::uint32_t nulls =
        decode_vector(simd_level(), payload, parameters, all, column.scale, decoded, valid);
    if (kind == ValueKind::kBool) {
      for (std::size_t i = 0; i < wanted; ++i) {
        out.flags[i] = static_cast<std::uint8_t>(
            decoded[gathers ? static_cast<std::size_t>(picks[i]) & kRowMask : i] != T{0});
      }
    } else if (gathers) {
      for (std::size_t i = 0; i < wanted; ++i) {
        out.words[i] = as_word(decoded[static_cast<std::size_t>(picks[i]) & kRowMask]);
      }
    } else if (!in_place) {
      for (std::size_t i = 0; i < wanted; ++i) out.words[i] = as_word(decoded[i]);
    }
    out.all_valid = nulls == 0;
    if (out.all_valid) return;
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::size_t row = gathers ? static_cast<std::size_t>(picks[i]) & kRowMask : i;
      out.valid[i] = static_cast<std::uint8_t>((valid[row / 64] >> (row % 64)) & 1);
    }
  });
}

}  // namespace bamquery
