#include "storage/native/packed/selecting/pick.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "driver/native/threads/shared_work.hpp"
#include "storage/native/packed/decode_values.hpp"

namespace bamquery {
namespace {

// Rows that are worth another thread. To look at a vector for few of its rows takes as long as some rows.
constexpr std::int64_t kLeastPicked = 1 << 13;
constexpr std::int64_t kRowsOfVector = 8;

// Part of a vector's rows from which on it takes less to decode them all.
constexpr std::uint32_t kManyRows = 6;

template <typename T>
T decode_row(const Payload& payload, const PackedVector& vector, std::uint32_t rows, const PackedScale& scale,
             std::uint32_t row, bool& valid) {
  if (vector.is_raw()) {
    T value;
    std::memcpy(&value, payload.bytes() + std::size_t{row} * sizeof(T), sizeof value);
    if (vector.has_nulls()) {
      const std::byte* bitmap = payload.bytes() + packed_bitmap_start(rows, sizeof(T));
      valid = ((std::to_integer<unsigned>(bitmap[row >> 3]) >> (row & 7)) & 1) != 0;
    }
    return valid ? value : T{0};
  }
  std::uint64_t word;
  std::memcpy(&word, payload.bytes() + row * vector.bits / 8u, sizeof word);
  const std::uint64_t code = packed_code_of_word(word, vector.bits, row);
  const std::uint64_t first = vector.first_special();
  if (code < first) {
    const std::uint64_t n = static_cast<std::uint64_t>(vector.base) + code;
    return packed_value<T>(vector.form(), vector.exponent(), scale, n);
  }
  valid = code != vector.null_code();
  return valid ? packed_escape<T>(vector, scale, payload.escape(static_cast<std::uint32_t>(code - first)))
               : T{0};
}

// The rows at `positions`, `before` of which are those of other vectors. `valid` is null where nobody asks.
template <typename T>
void pick_from_vector(SimdLevel level, const Payload& payload, const PackedVector& vector, std::uint32_t rows,
                      const PackedScale& scale, std::span<const std::int64_t> positions, std::int64_t before,
                      T* out, VectorMask* valid) {
  if (valid != nullptr) *valid = first_rows(static_cast<std::uint32_t>(positions.size()));
  const auto drop = [&](std::size_t i) {
    if (valid != nullptr) (*valid)[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  };
  if (kManyRows * positions.size() < rows) {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      bool known = true;
      const auto row = static_cast<std::uint32_t>(positions[i] - before);
      out[i] = decode_row<T>(payload, vector, rows, scale, row, known);
      if (!known) drop(i);
    }
    return;
  }
  std::array<T, kPackedVectorRows> values;
  VectorMask all;
  decode_vector(level, payload, vector, rows, scale, values.data(), all);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    out[i] = values[static_cast<std::size_t>(positions[i] - before)];
  }
  if (!vector.has_nulls()) return;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto row = static_cast<std::size_t>(positions[i] - before);
    if (((all[row / 64] >> (row % 64)) & 1) == 0) drop(i);
  }
}

// How many of the ascending positions are before `end`; all are checked.
std::size_t count_before(std::span<const std::int64_t> positions, std::int64_t begin, std::int64_t end) {
  const auto most = std::min(positions.size(), static_cast<std::size_t>(end - begin));
  const auto* const first = positions.data();
  const auto count = static_cast<std::size_t>(std::lower_bound(first, first + most, end) - first);
  bool ascend = count == 0 ? positions.empty() || first[0] >= end : first[0] >= begin;
  for (std::size_t i = 1; i < count; ++i) ascend &= first[i - 1] < first[i];
  if (!ascend || (count > 0 && first[count - 1] >= end)) {
    throw std::invalid_argument("positions do not ascend");
  }
  return count;
}

}  // namespace

std::int64_t pick_rows(ValueKind kind, std::span<const std::byte> payload,
                       std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                       std::span<const std::int64_t> rows, std::span<const std::int64_t> begins,
                       const PackedScale& scale, std::span<const std::int64_t> positions,
                       const PickTarget& target) {
  const SimdLevel level = simd_level();
  const PackedKind packed = packed_kind(kind);
  return with_packed_type(kind, [&]<typename T>(T) {
    const bool in_place = packed.width == sizeof(T) && kind != ValueKind::kBool;
    std::size_t done = 0;
    std::int64_t nulls = 0;
    for (std::size_t v = 0; v < vectors.size() && done < positions.size(); ++v) {
      const std::int64_t begin = begins[v];
      const std::size_t count = count_before(positions.subspan(done), begin, begin + rows[v]);
      if (count == 0) continue;
      const auto wanted = positions.subspan(done, count);
      const Payload found(payload, starts[v], vectors[v], rows[v], packed, static_cast<std::int64_t>(v));
      const auto of_vector = static_cast<std::uint32_t>(rows[v]);
      const auto picked = static_cast<std::uint32_t>(count);
      const auto at = target.at + static_cast<std::int64_t>(done);
      VectorMask mask;
      VectorMask* const valid = target.bitmap == nullptr ? nullptr : &mask;
      if (in_place) {
        auto* out = reinterpret_cast<T*>(target.values) + at;
        pick_from_vector(level, found, vectors[v], of_vector, scale, wanted, begin, out, valid);
      } else {
        std::array<T, kPackedVectorRows> decoded;
        pick_from_vector(level, found, vectors[v], of_vector, scale, wanted, begin, decoded.data(), valid);
        store_values(kind, decoded.data(), picked, target.values, at);
      }
      if (target.bitmap != nullptr) {
        nulls += picked - store_mask(level, mask, picked, target.bitmap, at);
      }
      done += count;
    }
    if (done < positions.size()) throw std::invalid_argument("no such position");
    return nulls;
  });
}

std::int64_t pick_rows(ValueKind kind, std::span<const std::byte> payload,
                       std::span<const std::int64_t> starts, std::span<const PackedVector> vectors,
                       std::span<const std::int64_t> rows, std::span<const std::int64_t> begins,
                       const PackedScale& scale, std::span<const std::int64_t> positions, std::byte* values,
                       std::uint8_t* bitmap) {
  const auto wanted = static_cast<std::int64_t>(positions.size());
  const std::int64_t looked_at = std::min(wanted, static_cast<std::int64_t>(vectors.size()));
  const std::int64_t parts = worth_parts(wanted + kRowsOfVector * looked_at, kLeastPicked);
  std::atomic<std::int64_t> nulls = 0;
  // Runs of whole bytes of the bitmap; a vector in which one of them ends is decoded twice.
  share_items(wanted, parts, 64, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    const auto own = positions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    if (first > 0 && positions[static_cast<std::size_t>(first - 1)] >= own[0]) {
      throw std::invalid_argument("positions do not ascend");
    }
    const auto behind = std::upper_bound(begins.begin(), begins.end(), own[0]) - begins.begin();
    const auto v = static_cast<std::size_t>(std::max<std::ptrdiff_t>(behind - 1, 0));
    nulls += pick_rows(kind, payload, starts.subspan(v), vectors.subspan(v), rows.subspan(v),
                       begins.subspan(v), scale, own, {values, bitmap, first});
  });
  return nulls;
}

}  // namespace bamquery
