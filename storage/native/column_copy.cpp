#include "storage/native/column_copy.hpp"

#include <cstring>

namespace bamquery {
namespace {

template <std::size_t Width>
void copy_fixed(const std::byte* source, std::int64_t rows, Bits validity, std::byte* target) {
  for (std::int64_t row = 0; row < rows; row += 64) {
    const auto count = static_cast<int>(std::min<std::int64_t>(64, rows - row));
    const std::uint64_t valid = validity.word(row, count);
    const std::byte* from = source + static_cast<std::size_t>(row) * Width;
    std::byte* to = target + static_cast<std::size_t>(row) * Width;
    std::memcpy(to, from, static_cast<std::size_t>(count) * Width);
    if (valid == (count == 64 ? ~0ULL : (1ULL << count) - 1)) continue;
    for (int i = 0; i < count; ++i) {
      if (((valid >> i) & 1) == 0) std::memset(to + static_cast<std::size_t>(i) * Width, 0, Width);
    }
  }
}

}  // namespace

void copy_values(const std::byte* source, std::int64_t rows, std::int64_t width, Bits validity,
                 std::byte* target) {
  if (validity.all_set()) {
    if (rows > 0) std::memcpy(target, source, static_cast<std::size_t>(rows * width));
    return;
  }
  switch (width) {
    case 1:
      return copy_fixed<1>(source, rows, validity, target);
    case 2:
      return copy_fixed<2>(source, rows, validity, target);
    case 4:
      return copy_fixed<4>(source, rows, validity, target);
    case 8:
      return copy_fixed<8>(source, rows, validity, target);
    default:
      return copy_fixed<16>(source, rows, validity, target);
  }
}

bool string_ends(std::span<const std::int64_t> offsets, std::int64_t data_size, Bits validity,
                 std::int64_t start, std::int64_t* ends) {
  const auto rows = static_cast<std::int64_t>(offsets.size()) - 1;
  if (offsets.front() < 0 || offsets.back() > data_size) return false;
  bool ascending = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length =
        offsets[static_cast<std::size_t>(row) + 1] - offsets[static_cast<std::size_t>(row)];
    ascending &= length >= 0;
    start += validity[row] ? length : 0;
    ends[row] = start;
  }
  return ascending;
}

void copy_strings(std::span<const std::int64_t> offsets, const std::byte* data, Bits validity,
                  std::byte* target) {
  const std::size_t rows = offsets.size() - 1;
  std::size_t row = 0;
  while (row < rows) {  // runs of valid rows lie end to end
    if (!validity[static_cast<std::int64_t>(row)]) {
      ++row;
      continue;
    }
    const std::size_t first = row;
    while (row < rows && validity[static_cast<std::int64_t>(row)]) ++row;
    const auto length = static_cast<std::size_t>(offsets[row] - offsets[first]);
    if (length > 0) std::memcpy(target, data + offsets[first], length);
    target += length;
  }
}

std::int64_t join_offsets(std::span<const std::int64_t> stored, std::span<const std::int64_t> counts,
                          std::int64_t data_size, std::int64_t* joined, std::int64_t* starts,
                          std::int64_t* lengths) {
  std::int64_t end = 0;
  const std::int64_t* at = stored.data();
  *joined++ = 0;
  for (std::size_t vector = 0; vector < counts.size(); ++vector) {
    const std::int64_t rows = counts[vector];
    const std::int64_t first = at[0];
    bool ascending = first >= 0 && at[rows] <= data_size;
    for (std::int64_t row = 0; row < rows; ++row) {
      ascending &= at[row] <= at[row + 1];
      // Wraps instead of overflowing where the offsets are garbage; such a vector is refused below.
      *joined++ = static_cast<std::int64_t>(static_cast<std::uint64_t>(end) +
                                            static_cast<std::uint64_t>(at[row + 1]) -
                                            static_cast<std::uint64_t>(first));
    }
    if (!ascending) return static_cast<std::int64_t>(vector);
    starts[vector] = first;
    lengths[vector] = at[rows] - first;
    end += lengths[vector];
    at += rows + 1;
  }
  return -1;
}

}  // namespace bamquery
