#include "storage/native/packed/selecting/take.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace bamquery {
namespace {

void clear_bit(std::uint8_t* bitmap, std::size_t bit) {
  bitmap[bit >> 3] = static_cast<std::uint8_t>(bitmap[bit >> 3] & ~(1u << (bit & 7)));
}

// One value as Arrow has it; T is how it is decoded.
template <typename T>
void store_value(ValueKind kind, T value, std::size_t at, std::byte* values) {
  if (kind == ValueKind::kBool) {
    auto* bits = reinterpret_cast<std::uint8_t*>(values);
    clear_bit(bits, at);
    bits[at >> 3] =
        static_cast<std::uint8_t>(bits[at >> 3] | ((static_cast<unsigned>(value) & 1u) << (at & 7)));
  } else if (kind == ValueKind::kInt128) {
    const auto low = static_cast<std::int64_t>(value);
    const std::int64_t words[2] = {low, low >> 63};
    std::memcpy(values + 16 * at, words, sizeof words);
  } else {
    std::memcpy(values + sizeof(T) * at, &value, sizeof value);
  }
}

}  // namespace

PackedRows::PackedRows(ValueKind kind, std::span<const PackedVector> vectors, std::int64_t column_rows,
                       std::int64_t data_bytes)
    : kind_(kind),
      packed_(packed_kind(kind)),
      vectors_(vectors),
      column_rows_(column_rows),
      data_bytes_(data_bytes) {
  const auto count = static_cast<std::int64_t>(vectors.size());
  if (column_rows < 0 || data_bytes < 0 || (column_rows + kVectorRows - 1) / kVectorRows != count) {
    throw std::invalid_argument("parameters are not those of so many rows");
  }
}

// Calls `function(i, row in its vector, vector, rows of the vector)` for each row.
template <typename Function>
void PackedRows::for_rows(std::span<const std::int64_t> rows, Function&& function) const {
  std::int64_t known = -1;
  std::uint32_t of_vector = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t row = rows[i];
    if (row < 0 || row >= column_rows_) throw std::invalid_argument("no such row");
    const std::int64_t number = row / kVectorRows;
    const PackedVector& vector = vectors_[static_cast<std::size_t>(number)];
    if (number != known) {
      known = number;
      of_vector = static_cast<std::uint32_t>(std::min(kVectorRows, column_rows_ - number * kVectorRows));
      const auto start = static_cast<std::int64_t>(vector.payload_start());
      if (start > data_bytes_) throw_packed_fault(number, PackedFault::kPayload);
      const PackedFault fault = packed_fault(vector, packed_.type, of_vector, packed_.width,
                                             static_cast<std::uint64_t>(data_bytes_ - start));
      if (fault != PackedFault::kNone) throw_packed_fault(number, fault);
    }
    function(i, static_cast<std::uint32_t>(row % kVectorRows), vector, of_vector);
  }
}

void PackedRows::places(std::span<const std::int64_t> rows, std::int64_t* places) const {
  for_rows(rows, [&](std::size_t i, std::uint32_t row, const PackedVector& vector, std::uint32_t) {
    const std::uint64_t within =
        vector.is_raw() ? std::uint64_t{row} * packed_.width : row * vector.bits / 8u;
    places[i] = static_cast<std::int64_t>(vector.payload_start() + within);
  });
}

PackedRows::Rest PackedRows::unpack(std::span<const std::int64_t> rows, std::span<const std::uint64_t> words,
                                    const PackedScale& scale, std::byte* values, std::uint8_t* bitmap) const {
  if (!rows.empty()) std::memset(bitmap, 0xff, (rows.size() + 7) / 8);
  Rest rest;
  const auto read_on = [&](std::size_t i, std::uint64_t place) {
    rest.positions.push_back(static_cast<std::int64_t>(i));
    rest.places.push_back(static_cast<std::int64_t>(place));
  };
  with_packed_type(kind_, [&]<typename T>(T) {
    for_rows(
        rows, [&](std::size_t i, std::uint32_t row, const PackedVector& vector, std::uint32_t of_vector) {
          if (vector.is_raw()) {
            store_value(kind_, value_of_bits<T>(words[i]), i, values);
            if (!vector.has_nulls()) return;
            const std::uint64_t bitmap_at =
                vector.payload_start() + packed_bitmap_start(of_vector, packed_.width);
            return read_on(i, bitmap_at + row / 64 * 8);
          }
          const std::uint64_t code = packed_code_of_word(words[i], vector.bits, row);
          const std::uint64_t first = vector.first_special();
          if (code < first) {
            const std::uint64_t n = static_cast<std::uint64_t>(vector.base) + code;
            return store_value(kind_, packed_value<T>(vector.form(), vector.exponent(), scale, n), i, values);
          }
          store_value(kind_, T{0}, i, values);
          if (code == vector.null_code()) return clear_bit(bitmap, i);
          read_on(i, vector.payload_start() + packed_code_bytes(vector.bits, of_vector) +
                         vector.escape_bytes() * (code - first));
        });
  });
  return rest;
}

void PackedRows::unpack_rest(std::span<const std::int64_t> rows, std::span<const std::int64_t> positions,
                             std::span<const std::uint64_t> words, const PackedScale& scale,
                             std::byte* values, std::uint8_t* bitmap) const {
  std::vector<std::int64_t> asked;
  asked.reserve(positions.size());
  for (const std::int64_t position : positions) {
    if (position < 0 || static_cast<std::size_t>(position) >= rows.size()) {
      throw std::invalid_argument("no such position");
    }
    asked.push_back(rows[static_cast<std::size_t>(position)]);
  }
  with_packed_type(kind_, [&]<typename T>(T) {
    for_rows(asked, [&](std::size_t i, std::uint32_t row, const PackedVector& vector, std::uint32_t) {
      const auto at = static_cast<std::size_t>(positions[i]);
      if (!vector.is_raw()) {
        store_value(kind_, packed_escape<T>(vector, scale, words[i]), at, values);
      } else if (((words[i] >> (row % 64)) & 1) == 0) {
        store_value(kind_, T{0}, at, values);
        clear_bit(bitmap, at);
      }
    });
  });
}

}  // namespace bamquery
