#include "storage/native/packed/selecting/take.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "driver/native/files/block_ranges.hpp"
#include "storage/native/packed/parameters.hpp"

namespace bamquery {
namespace {

constexpr std::int64_t kWord = 8;

// What lies behind a vector's codes: where in its payload, and how likely a row wants some of it.
struct RestArea {
  std::uint64_t start;
  std::uint64_t bytes;
  double chance;
};

RestArea rest_area(const PackedVector& vector, std::uint32_t rows, std::uint32_t width) {
  const double chance = referring_chance(vector, rows);
  if (vector.is_raw()) {
    return {packed_bitmap_start(rows, width), vector.has_nulls() ? kPackedBitmapBytes : 0u, chance};
  }
  return {packed_code_bytes(vector.bits, rows), std::uint64_t{vector.escape_bytes()} * vector.escapes(),
          chance};
}

// How likely it is that one of so many rows asks, each with that chance; a fraction of what `std::pow` takes.
double chance_of_any(double chance, std::int64_t rows) {
  double none = 1;
  for (double factor = 1 - chance; rows > 0; rows >>= 1, factor *= factor) {
    if ((rows & 1) != 0) none *= factor;
  }
  return 1 - none;
}

// Blocks that are read with some probability, ascending; the last one is open, as more may ask for it.
class ExpectedBlocks {
 public:
  // Some of the block is asked for with that probability, whoever else asks for it.
  void add(std::int64_t block, double chance) {
    if (block != open_) {
      close();
      open_ = block;
    }
    chance_ = 1 - (1 - chance_) * (1 - chance);
  }
  // The block has been read.
  void drop(std::int64_t block) {
    if (block == open_) chance_ = 0;
  }
  void close() {
    blocks += chance_;
    runs += chance_ * (open_ == closed_ + 1 ? 1 - closed_chance_ : 1);
    closed_ = open_;
    closed_chance_ = std::exchange(chance_, 0);
  }

  double blocks = 0;
  double runs = 0;

 private:
  std::int64_t open_ = -4, closed_ = -4;
  double chance_ = 0, closed_chance_ = 0;
};

// Place of the first of ascending rows `at` to `end` - 1 that is `row` or behind it; `end`: there is none.
// Takes no branches that a processor could not foresee.
std::size_t first_at_least(std::span<const std::int64_t> rows, std::size_t at, std::size_t end,
                           std::int64_t row) {
  if (at == end) return end;
  for (std::size_t left = end - at; left > 1;) {
    const std::size_t half = left / 2;
    at += rows[at + half - 1] < row ? half : 0;
    left -= half;
  }
  return at + (rows[at] < row ? 1 : 0);
}

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

PackedRows::Found PackedRows::find_vector(std::int64_t row) const {
  if (row < 0 || row >= column_rows_) throw std::invalid_argument("no such row");
  const std::int64_t number = row / kVectorRows;
  const PackedVector& vector = vectors_[static_cast<std::size_t>(number)];
  const std::int64_t begin = number * kVectorRows;
  const auto of_vector = static_cast<std::uint32_t>(std::min(kVectorRows, column_rows_ - begin));
  const auto start = static_cast<std::int64_t>(vector.payload_start());
  if (start > data_bytes_) throw_packed_fault(number, PackedFault::kPayload);
  const PackedFault fault = packed_fault(vector, packed_.type, of_vector, packed_.width,
                                         static_cast<std::uint64_t>(data_bytes_ - start));
  if (fault != PackedFault::kNone) throw_packed_fault(number, fault);
  return {&vector, begin, of_vector};
}

// Calls `function(i, row in its vector, vector, rows of the vector)` for each row.
template <typename Function>
void PackedRows::for_rows(std::span<const std::int64_t> rows, Function&& function) const {
  Found known{nullptr, 0, 0};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t row = rows[i];
    if (known.vector == nullptr || row < known.begin || row >= known.begin + known.rows) {
      known = find_vector(row);
    }
    function(i, static_cast<std::uint32_t>(row - known.begin), *known.vector, known.rows);
  }
}

void PackedRows::places(std::span<const std::int64_t> rows, std::int64_t* places) const {
  for_rows(rows, [&](std::size_t i, std::uint32_t row, const PackedVector& vector, std::uint32_t) {
    places[i] = place_of(vector, row);
  });
}

std::int64_t PackedRows::place_of(const PackedVector& vector, std::uint32_t row) const {
  const std::uint64_t within = vector.is_raw() ? std::uint64_t{row} * packed_.width : row * vector.bits / 8u;
  return static_cast<std::int64_t>(vector.payload_start() + within);
}

PackedRows::Blocks PackedRows::count_blocks(std::span<const std::int64_t> rows, std::int64_t base,
                                            std::int64_t block_size) const {
  const BlockNumbers number(block_size);
  Blocks found;
  ExpectedBlocks rest;
  std::int64_t last = -2;  // block with codes
  const auto expect_rest = [&](const PackedVector& vector, std::uint32_t of_vector, std::int64_t taken) {
    const RestArea area = rest_area(vector, of_vector, packed_.width);
    if (area.bytes == 0) return;
    const std::int64_t start = base + static_cast<std::int64_t>(vector.payload_start() + area.start);
    const std::int64_t end = start + static_cast<std::int64_t>(area.bytes);
    for (std::int64_t block = number.of(start); block * block_size < end; ++block) {
      if (block <= last) continue;  // its codes end there, and have been read
      const std::int64_t inside =
          std::min(end, (block + 1) * block_size) - std::max(start, block * block_size);
      const double share = static_cast<double>(inside) / static_cast<double>(area.bytes);
      rest.add(block, chance_of_any(area.chance * share, taken));
    }
  };
  for (std::size_t i = 0; i < rows.size();) {
    const auto [vector, begin, of_vector] = find_vector(rows[i]);
    const auto most = static_cast<std::size_t>(begin + kVectorRows - rows[i]);
    const std::size_t end = first_at_least(rows, i + 1, std::min(i + most, rows.size()), begin + kVectorRows);
    if (rows[end - 1] >= begin + of_vector) throw std::invalid_argument("no such row");
    // Rows whose words end within blocks that one before them is in need no more than this look.
    const auto bits = static_cast<std::int64_t>(vector->is_raw() ? 8u * packed_.width : vector->bits);
    const std::int64_t start = base + static_cast<std::int64_t>(vector->payload_start()) + kWord - 1;
    for (std::size_t next = i; next < end; ++next) {
      const std::int64_t behind = 8 * ((last + 1) * block_size - start);
      while (next < end && (rows[next] - begin) * bits < behind) ++next;
      if (next == end) break;
      const std::int64_t offset = base + place_of(*vector, static_cast<std::uint32_t>(rows[next] - begin));
      const std::int64_t first = number.of(offset);
      const std::int64_t last_of_row = number.of(offset + kWord - 1);
      if (first > last + 1) ++found.runs;
      for (std::int64_t block = std::max(first, last + 1); block <= last_of_row; ++block) {
        ++found.blocks;
        rest.drop(block);
      }
      last = std::max(last, last_of_row);
    }
    expect_rest(*vector, of_vector, static_cast<std::int64_t>(end - i));
    i = end;
  }
  rest.close();
  found.rest_runs = rest.runs;
  found.rest_blocks = rest.blocks;
  return found;
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
