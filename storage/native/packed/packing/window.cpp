#include "storage/native/packed/packing/window.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "storage/native/packed/decode.hpp"

namespace bamquery {
namespace {

constexpr std::uint32_t kFewBits = 6;
constexpr std::uint32_t kFewValues = 1u << kFewBits;

std::uint64_t payload_bits(std::uint32_t bits, std::uint64_t escapes, std::uint32_t rows) {
  return 8 * round_up_16(packed_code_bytes(bits, rows) + 8 * escapes);
}

}  // namespace

CodeWindow whole_window(std::int64_t low, std::int64_t high, const SpecialCounts& special) {
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t last = range + special.escapes + (special.nulls ? 1u : 0u);  // the greatest code
  const auto bits = static_cast<std::uint32_t>(std::bit_width(last));
  if (last < range || bits > kPackedMaxBits || special.escapes > kPackedMaxEscapes) return {};
  return {low, range + 1, bits, payload_bits(bits, special.escapes, special.rows)};
}

CodeWindow escapes_window(const SpecialCounts& special) {
  if (special.escapes > kPackedMaxEscapes) return {};
  const std::uint64_t last = special.escapes + (special.nulls ? 1u : 0u) - 1;
  const auto bits = static_cast<std::uint32_t>(std::bit_width(last));
  return {0, 0, bits, payload_bits(bits, special.escapes, special.rows)};
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
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    offsets_.codes[i] = static_cast<std::uint64_t>(numbers[i]) - from;
  }
  return cut_ends(level, static_cast<std::uint32_t>(numbers.size()), low,
                  static_cast<std::uint64_t>(high) - from, special, whole);
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
    if (payload_bits(bits, special.escapes, special.rows) >= best.payload_bits) break;
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
      const std::uint64_t cost = payload_bits(bits, escapes, special.rows);
      if (escapes <= kPackedMaxEscapes && cost < best.payload_bits) {
        const std::uint64_t base = static_cast<std::uint64_t>(low) + distinct_.value(first);
        const std::uint64_t width = distinct_.value(last) - distinct_.value(first) + 1;
        best = {static_cast<std::int64_t>(base), width, bits, cost};
      }
    }
  }
  return best;
}

// Bit by bit: cuts off what is above, or else below, a window of one bit less, until too many rows are
// outside.
CodeWindow WindowSearch::cut_ends(SimdLevel level, std::uint32_t count, std::int64_t low, std::uint64_t range,
                                  const SpecialCounts& special, const CodeWindow& whole) {
  CodeWindow best = whole;
  const std::uint32_t allowed = special.rows / 16;
  const std::uint32_t taken = special.escapes + (special.nulls ? 1 : 0);
  std::uint64_t first = 0, last = range;  // offsets that are inside
  VectorMask inside;
  // The window of `codes` codes at one end, if it leaves out few rows; then `first` and `last` are its own.
  const auto cut = [&](std::uint64_t codes, bool top, std::uint32_t& escapes) {
    escapes = 0;
    for (int round = 0; round < 3 && taken + escapes < codes; ++round) {
      const std::uint64_t span = std::min(codes - taken - escapes - 1, last - first);
      const std::uint64_t next_first = top ? first : last - span;
      const std::uint64_t next_last = top ? first + span : last;
      codes_within(level, offsets_, count, next_first, next_last, inside.data());
      const VectorMask all = first_rows(count);
      std::uint32_t outside = 0;
      for (std::size_t word = 0; word < all.size(); ++word) {
        inside[word] = all[word] & (64 * word < count ? ~inside[word] : 0);
        outside += static_cast<std::uint32_t>(std::popcount(inside[word]));
      }
      if (outside > allowed) return false;
      distinct_.clear();
      for (std::size_t word = 0; word < all.size(); ++word) {
        for (std::uint64_t left = inside[word]; left != 0; left &= left - 1) {
          distinct_.add(offsets_.codes[64 * word + static_cast<std::size_t>(std::countr_zero(left))]);
        }
      }
      if (distinct_.size() <= escapes) {
        first = next_first;
        last = next_last;
        return true;
      }
      escapes = distinct_.size();
    }
    return false;
  };
  const auto range_bits = static_cast<std::uint32_t>(std::bit_width(range));
  for (std::uint32_t bits = std::min({range_bits, kPackedMaxBits, whole.bits}); bits > kFewBits; --bits) {
    if (payload_bits(bits, special.escapes, special.rows) >= best.payload_bits) continue;
    std::uint32_t escapes;
    const std::uint64_t codes = std::uint64_t{1} << bits;
    if (!cut(codes, true, escapes) && !cut(codes, false, escapes)) break;
    // What is left may need far fewer bits: outliers are far away.
    std::uint64_t least = last, most = first;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t offset = offsets_.codes[i];
      const bool kept = offset - first <= last - first;
      least = kept && offset < least ? offset : least;
      most = kept && offset > most ? offset : most;
    }
    first = least;
    last = most;
    bits = std::min(bits, static_cast<std::uint32_t>(std::bit_width(last - first + taken + escapes)));
    const std::uint64_t cost = payload_bits(bits, special.escapes + escapes, special.rows);
    if (cost < best.payload_bits) {
      best = {static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + first), last - first + 1, bits,
              cost};
    }
    if (bits <= kFewBits) break;
  }
  return best;
}

}  // namespace bamquery
