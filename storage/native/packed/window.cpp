#include "storage/native/packed/window.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace bamquery {
namespace {

constexpr std::uint32_t kFewBits = 6;

std::uint64_t payload_bits(std::uint32_t bits, std::uint64_t escapes, std::uint32_t rows) {
  return 8 * round_up_16(packed_code_bytes(bits, rows) + 8 * escapes);
}

// Ascending, by 11 bits at a time.
template <typename Offset>
Offset* sort_offsets(Offset* offsets, Offset* other, std::size_t count, std::uint32_t range_bits) {
  constexpr std::uint32_t kDigit = 11;
  for (std::uint32_t shift = 0; shift < range_bits; shift += kDigit) {
    std::array<std::uint16_t, 1u << kDigit> places{};
    constexpr Offset kMask = (1u << kDigit) - 1;
    for (std::size_t i = 0; i < count; ++i) ++places[(offsets[i] >> shift) & kMask];
    std::uint16_t place = 0;
    const std::size_t used =
        range_bits - shift < kDigit ? std::size_t{1} << (range_bits - shift) : places.size();
    for (std::size_t digit = 0; digit < used; ++digit) {
      const std::uint16_t here = places[digit];
      places[digit] = place;
      place = static_cast<std::uint16_t>(place + here);
    }
    for (std::size_t i = 0; i < count; ++i) other[places[(offsets[i] >> shift) & kMask]++] = offsets[i];
    std::swap(offsets, other);
  }
  return offsets;
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

CodeWindow WindowSearch::find(std::span<const std::int64_t> numbers, std::int64_t low, std::int64_t high,
                              const SpecialCounts& special, const CodeWindow& whole) {
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const auto range_bits = static_cast<std::uint32_t>(std::bit_width(range));
  if (range_bits <= 1 || special.escapes > kPackedMaxEscapes) return whole;
  sorted_.resize(kPackedVectorRows);
  other_.resize(kPackedVectorRows);
  if (range_bits <= 32) return find_sorted<std::uint32_t>(numbers, low, range_bits, special, whole);
  return find_sorted<std::uint64_t>(numbers, low, range_bits, special, whole);
}

template <typename Offset>
CodeWindow WindowSearch::find_sorted(std::span<const std::int64_t> numbers, std::int64_t low,
                                     std::uint32_t range_bits, const SpecialCounts& special,
                                     const CodeWindow& whole) {
  const std::size_t count = numbers.size();
  auto* const memory = reinterpret_cast<Offset*>(sorted_.data());
  for (std::size_t i = 0; i < count; ++i) {
    memory[i] = static_cast<Offset>(static_cast<std::uint64_t>(numbers[i]) - static_cast<std::uint64_t>(low));
  }
  const Offset* const sorted =
      sort_offsets(memory, reinterpret_cast<Offset*>(other_.data()), count, range_bits);

  // Ends of a window: the distinct offsets that may be its first, and how many rows and values lie outside.
  // Beyond `most` of them at either end nothing is looked at: no window may leave out more.
  struct End {
    Offset offset;
    std::uint32_t rows;    // beyond this one
    std::uint32_t values;  // distinct ones beyond it
  };
  const std::uint32_t allowed = special.rows / 16;
  const std::uint32_t most = std::max<std::uint32_t>(allowed, 1u << kFewBits);
  std::array<End, kPackedVectorRows / 16 + 2> lows, highs;
  std::uint32_t low_count = 0, high_count = 0, low_rows = 0, high_rows = 0;
  bool few = true;  // whether `lows` are all distinct offsets
  for (std::size_t i = 0; i < count;) {
    if (low_count == lows.size() - 1 || low_count > most) {
      few = false;
      break;
    }
    std::size_t next = i + 1;
    while (next < count && sorted[next] == sorted[i]) ++next;
    lows[low_count] = {sorted[i], low_rows, low_count};
    ++low_count;
    low_rows = static_cast<std::uint32_t>(next);
    i = next;
  }
  for (std::size_t i = count; i > 0;) {
    if (high_count == highs.size() - 1 || high_count > most) break;
    std::size_t next = i - 1;
    while (next > 0 && sorted[next - 1] == sorted[i - 1]) --next;
    highs[high_count] = {sorted[i - 1], high_rows, high_count};
    ++high_count;
    high_rows = static_cast<std::uint32_t>(count - next);
    i = next;
  }

  CodeWindow best = whole;
  const std::uint32_t nulls = special.nulls ? 1 : 0;
  const std::uint32_t most_bits = std::min(std::min(range_bits, kPackedMaxBits), whole.bits);
  for (std::uint32_t bits = most_bits + 1; bits-- > 0;) {
    if (bits <= kFewBits && !few) break;
    const bool limited = bits > kFewBits;
    const std::uint64_t codes = std::uint64_t{1} << bits;
    if (payload_bits(bits, special.escapes, special.rows) >= best.payload_bits) continue;
    // As the lower end rises, the upper one may, too: `h` only falls. Each distinct value outside takes a
    // code from the window, so that leaving out one more is never worse for what is to fit.
    bool fits = false;
    for (std::uint32_t l = 0, h = high_count; l < low_count; ++l) {
      if (limited && lows[l].rows > allowed) break;
      const auto outside = [&](std::uint32_t at) {
        return lows[l].values + highs[at].values + special.escapes;
      };
      const auto crossed = [&](std::uint32_t at) { return highs[at].offset < lows[l].offset; };
      const auto possible = [&](std::uint32_t at) {
        if (crossed(at)) return true;
        const std::uint64_t range = highs[at].offset - lows[l].offset;
        return range < codes && range + outside(at) + nulls < codes;
      };
      while (h > 0 && possible(h - 1)) --h;
      if (h == high_count || crossed(h)) continue;
      if (limited && lows[l].rows + highs[h].rows > allowed) continue;
      fits = true;
      const std::uint64_t cost = payload_bits(bits, outside(h), special.rows);
      if (outside(h) <= kPackedMaxEscapes && cost < best.payload_bits) {
        best = {static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + lows[l].offset),
                std::uint64_t{highs[h].offset} - lows[l].offset + 1, bits, cost};
      }
    }
    if (!fits && limited) {
      if (!few) break;      // narrower windows leave out even more
      bits = kFewBits + 1;  // but for those of few values
    }
  }
  return best;
}

}  // namespace bamquery
