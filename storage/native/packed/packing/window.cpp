#include "storage/native/packed/packing/window.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "storage/native/packed/decode.hpp"

namespace bamquery {
namespace {

constexpr std::uint32_t kFewBits = 6;
constexpr std::uint32_t kFewValues = 1u << kFewBits;

std::uint64_t payload_bits(std::uint32_t bits, std::uint64_t escapes, const SpecialCounts& special) {
  return 8 * round_up_16(packed_code_bytes(bits, special.rows) + special.escape_bytes * escapes);
}

// Numbers of a vector as distances from the least one, which are looked at from both ends.
template <typename Offset>
struct CutOffsets {
  SimdLevel level;
  const CodeBuffer<Offset>& offsets;
  std::uint32_t count;
  std::uint64_t range;

  /// How many are from `first` to `last`; bits of `found` say which.
  std::uint32_t within(std::uint64_t first, std::uint64_t last, VectorMask& found) const {
    codes_within(level, offsets, count, first, last, found.data());
    std::uint32_t set = 0;
    for (std::uint32_t word = 0; 64 * word < count; ++word) {
      if (64 * word + 64 > count) found[word] &= (std::uint64_t{1} << count % 64) - 1;
      set += static_cast<std::uint32_t>(std::popcount(found[word]));
    }
    return set;
  }
};
template <typename Offset>
CutOffsets(SimdLevel, const CodeBuffer<Offset>&, std::uint32_t, std::uint64_t) -> CutOffsets<Offset>;

// Whether codes of one bit less may do for all numbers but `allowed`: half of the codes are within five
// eighths of them, wherever they begin. Mostly they are not, and that is known soon.
template <typename Offset>
bool may_halve(const CutOffsets<Offset>& numbers, std::uint32_t bits, std::uint32_t allowed) {
  if (bits > kPackedMaxBits) return true;
  std::array<std::uint32_t, 9> below{};
  VectorMask found;
  for (std::uint64_t eighth = 1; eighth < below.size(); ++eighth) {
    const std::uint64_t end = eighth << (bits - 3);
    below[eighth] = end > numbers.range ? numbers.count : numbers.within(0, end - 1, found);
  }
  for (std::size_t first = 0; first + 5 < below.size(); ++first) {
    if (below[first + 5] - below[first] + allowed >= numbers.count) return true;
  }
  return false;
}

// The numbers at one end that may be left out, and the next one. Number i is `values[i]` away from the end,
// and `rows[i]` rows have one that is nearer to it.
struct Tail {
  std::uint32_t size = 0;
  std::array<std::uint64_t, kPackedVectorRows / 16 + 1> values;
  std::array<std::uint32_t, kPackedVectorRows / 16 + 1> rows;
};

// How far in a tail goes is found by halving, until few more numbers than it are left to be sorted: counting
// takes an instruction for some numbers at once, and sorting all of them does not.
template <typename Offset>
Tail find_tail(const CutOffsets<Offset>& numbers, std::uint32_t allowed, bool above) {
  constexpr std::uint32_t kSpare = 32;
  const std::uint64_t range = numbers.range;
  VectorMask nearer;
  const auto count_nearer = [&](std::uint64_t distance) {
    if (distance == 0) return 0u;
    const std::uint64_t from = above ? range - (distance - 1) : 0;
    return numbers.within(from, from + (distance - 1), nearer);
  };
  // The greatest distance that few are nearer than is between these; `left` are not further away than `most`.
  std::uint64_t least = 0, most = range;
  std::uint32_t left = numbers.count;
  while (least < most && left > allowed + kSpare) {
    const std::uint64_t middle = most - (most - least) / 2;
    const std::uint32_t found = count_nearer(middle);
    if (found <= allowed) {
      least = middle;
    } else {
      most = middle - 1;
      left = found;
    }
  }
  std::array<std::uint64_t, kPackedVectorRows / 16 + kSpare> distances;
  const std::uint32_t listed = count_nearer(least == most ? least : most + 1);
  std::uint32_t size = 0;
  for (std::uint32_t word = 0; size < listed; ++word) {
    for (std::uint64_t bits = nearer[word]; bits != 0; bits &= bits - 1) {
      const auto at = 64 * word + static_cast<std::uint32_t>(std::countr_zero(bits));
      const std::uint64_t offset = numbers.offsets.codes[at];
      distances[size++] = above ? range - offset : offset;
    }
  }
  std::sort(distances.begin(), distances.begin() + size);
  const std::uint64_t end = size > allowed ? distances[allowed] : least == most ? least : range;
  Tail tail;
  for (std::uint32_t row = 0; row < size && distances[row] < end; ++row) {
    if (row > 0 && distances[row] == distances[row - 1]) continue;
    tail.values[tail.size] = distances[row];
    tail.rows[tail.size++] = row;
  }
  tail.values[tail.size] = end;
  tail.rows[tail.size++] = static_cast<std::uint32_t>(
      std::lower_bound(distances.begin(), distances.begin() + size, end) - distances.begin());
  return tail;
}

// Of each width, for each first number the greatest last one that fits: as the first one rises, so does that.
// Each distinct number outside takes a code, so that one more of them is never worse for what is to fit.
template <typename Offset>
CodeWindow cut_ends(const CutOffsets<Offset>& numbers, std::int64_t low, const SpecialCounts& special,
                    const CodeWindow& whole) {
  const std::uint32_t allowed = special.rows / 16;
  if (!may_halve(numbers, whole.bits, allowed)) return whole;
  const Tail below = find_tail(numbers, allowed, false);
  const Tail above = find_tail(numbers, allowed, true);
  const std::uint64_t cut = below.values[below.size - 1] + above.values[above.size - 1];
  const std::uint32_t taken = special.escapes + (special.nulls ? 1 : 0);
  CodeWindow best = whole;
  auto bits = static_cast<std::uint32_t>(std::bit_width(numbers.range - std::min(cut, numbers.range)));
  for (; bits <= kPackedMaxBits; ++bits) {
    if (payload_bits(bits, special.escapes, special) >= best.payload_bits) break;
    const auto fits = [&](std::uint32_t i, std::uint32_t j) {
      if (above.values[j] > numbers.range - below.values[i]) return false;
      const std::uint64_t span = numbers.range - below.values[i] - above.values[j];
      return span >> bits == 0 && (span + i + j + taken) >> bits == 0;
    };
    std::uint32_t j = above.size - 1;
    for (std::uint32_t i = 0; i < below.size; ++i) {
      while (j > 0 && fits(i, j - 1)) --j;
      if (!fits(i, j) || below.rows[i] + above.rows[j] > allowed) continue;
      const std::uint64_t escapes = special.escapes + i + j;
      const std::uint64_t cost = payload_bits(bits, escapes, special);
      if (cost >= best.payload_bits || escapes > kPackedMaxEscapes) continue;
      const std::uint64_t base = static_cast<std::uint64_t>(low) + below.values[i];
      best = {static_cast<std::int64_t>(base), numbers.range - below.values[i] - above.values[j] + 1, bits,
              cost};
    }
  }
  return best;
}

}  // namespace

CodeWindow whole_window(std::int64_t low, std::int64_t high, const SpecialCounts& special) {
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t last = range + special.escapes + (special.nulls ? 1u : 0u);  // the greatest code
  const auto bits = static_cast<std::uint32_t>(std::bit_width(last));
  if (last < range || bits > kPackedMaxBits || special.escapes > kPackedMaxEscapes) return {};
  return {low, range + 1, bits, payload_bits(bits, special.escapes, special)};
}

CodeWindow escapes_window(const SpecialCounts& special) {
  if (special.escapes > kPackedMaxEscapes) return {};
  const std::uint64_t last = special.escapes + (special.nulls ? 1u : 0u) - 1;
  const auto bits = static_cast<std::uint32_t>(std::bit_width(last));
  return {0, 0, bits, payload_bits(bits, special.escapes, special)};
}

CodeWindow WindowSearch::find(SimdLevel level, std::span<const std::int64_t> numbers, std::int64_t low,
                              std::int64_t high, const SpecialCounts& special, const CodeWindow& whole) {
  if (low == high || special.escapes > kPackedMaxEscapes) return whole;
  const auto from = static_cast<std::uint64_t>(low);
  distinct_.clear();
  std::array<std::uint32_t, kFewValues + 1> rows{};
  bool few = true;
  for (std::size_t i = 0; i < numbers.size() && few; ++i) {
    ++rows[distinct_.add(static_cast<std::uint64_t>(numbers[i]) - from)];
    few = distinct_.size() <= kFewValues;
  }
  if (few) return find_among_few(rows, low, special, whole);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - from;
  const auto cut = [&](auto& offsets) {
    using Offset = std::remove_reference_t<decltype(offsets.codes[0])>;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      offsets.codes[i] = static_cast<Offset>(static_cast<std::uint64_t>(numbers[i]) - from);
    }
    const CutOffsets numbers_cut{level, offsets, static_cast<std::uint32_t>(numbers.size()), range};
    return cut_ends(numbers_cut, low, special, whole);
  };
  return range >> 32 == 0 ? cut(narrow_) : cut(wide_);
}

// All windows of all widths, narrow ones first: whatever is dearer than the best so far ends it.
CodeWindow WindowSearch::find_among_few(std::span<const std::uint32_t> rows, std::int64_t low,
                                        const SpecialCounts& special, const CodeWindow& whole) {
  const std::uint32_t count = distinct_.size();
  std::array<std::uint16_t, kPackedVectorRows> ranks;
  distinct_.sort(ranks);
  std::array<std::uint32_t, kFewValues + 2> before{};  // rows below value number i
  for (std::uint32_t i = 0; i < count; ++i) before[ranks[i] + 1u] = rows[i];
  for (std::uint32_t i = 0; i < count; ++i) before[i + 1] += before[i];

  CodeWindow best = whole;
  const std::uint32_t allowed = special.rows / 16;
  for (std::uint32_t bits = 0; bits <= kPackedMaxBits; ++bits) {
    if (payload_bits(bits, special.escapes, special) >= best.payload_bits) break;
    const std::uint64_t codes = std::uint64_t{1} << bits;
    // As the first value rises, the last one may, too. Each value outside takes a code, so that one more of
    // them is never worse for what is to fit.
    for (std::uint32_t first = 0, last = 0; first < count; ++first) {
      const auto fits = [&](std::uint32_t to) {
        const std::uint64_t range = distinct_.value(to) - distinct_.value(first);
        const std::uint32_t outside = count - 1 - (to - first);
        return range < codes && range + outside + special.escapes + (special.nulls ? 1u : 0u) < codes;
      };
      last = std::max(last, first);
      while (last + 1 < count && fits(last + 1)) ++last;
      if (!fits(last)) continue;
      if (bits > kFewBits && before[count] - (before[last + 1] - before[first]) > allowed) continue;
      const std::uint64_t escapes = special.escapes + count - 1 - (last - first);
      const std::uint64_t cost = payload_bits(bits, escapes, special);
      if (escapes <= kPackedMaxEscapes && cost < best.payload_bits) {
        const std::uint64_t base = static_cast<std::uint64_t>(low) + distinct_.value(first);
        const std::uint64_t width = distinct_.value(last) - distinct_.value(first) + 1;
        best = {static_cast<std::int64_t>(base), width, bits, cost};
      }
    }
  }
  return best;
}

}  // namespace bamquery
