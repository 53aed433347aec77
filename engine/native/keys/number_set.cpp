#include "engine/native/keys/number_set.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "engine/native/keys/hash_words.hpp"
#include "storage/native/packed/simd_level.hpp"

namespace bamquery {
namespace {

// Bits of a table that should stay in a cache that cores share, for each member up to which a large one is
// made, and of one that is made however few there are.
constexpr std::uint64_t kMostFlags = 1ULL << 27, kSparse = 256, kSmall = 1ULL << 23;
// Members up to which their table is in the first cache even where most of it is empty, as most slots that
// are looked at should be.
constexpr std::uint64_t kFew = 1 << 9, kSpread = 4;

// The word of the least of some values, and the distance from it to the greatest.
template <typename T>
std::pair<std::uint64_t, std::uint64_t> range_of(Values<T> values, std::int64_t rows) {
  T low = values[0], high = low;
  for (std::int64_t i = 1; i < rows; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  return {word_of(low), word_of(high) - word_of(low)};
}

// Bits of the values whose distance from `low` is found; what is below wraps to more than any distance.
template <typename T, typename IsFound>
[[gnu::always_inline]] inline void set_found_bits(Values<T> values, std::int64_t rows, std::uint64_t low,
                                                  IsFound&& is_found, std::uint8_t* bits) {
  for (std::int64_t start = 0; start < rows; start += 64) {
    const std::int64_t count = std::min<std::int64_t>(64, rows - start);
    std::uint64_t word = 0;
    for (std::int64_t i = 0; i < count; ++i) word |= is_found(word_of(values[start + i]) - low) << i;
    std::memcpy(bits + start / 8, &word, static_cast<std::size_t>((count + 7) / 8));
  }
}

// A set's bits by distance, of which the one behind the greatest distance is clear.
struct Flags {
  const std::uint64_t* words;
  std::uint64_t span;

  std::uint64_t operator()(std::uint64_t distance) const {
    const std::uint64_t place = std::min(distance, span + 1);
    return words[place / 64] >> (place % 64) & 1;
  }
};

#if defined(__x86_64__)
template <typename T>
BAMQUERY_AVX512 void set_flagged_bits_avx512(Values<T> values, std::int64_t rows, std::uint64_t low,
                                             Flags flags, std::uint8_t* bits) {
  set_found_bits(values, rows, low, flags, bits);
}
#endif

template <typename T>
void set_flagged_bits(Values<T> values, std::int64_t rows, std::uint64_t low, Flags flags,
                      std::uint8_t* bits) {
#if defined(__x86_64__)
  if (simd_level() == SimdLevel::kAvx512) return set_flagged_bits_avx512(values, rows, low, flags, bits);
#endif
  set_found_bits(values, rows, low, flags, bits);
}

}  // namespace

NumberSet::NumberSet(const KeyColumn& members) {
  if (members.rows == 0) return;
  is_empty_ = false;
  with_values(members, [&](const auto values) {
    std::tie(low_, span_) = range_of(values, members.rows);
    const auto count = static_cast<std::uint64_t>(members.rows);
    if (span_ < std::min(kMostFlags, std::max(kSparse * count, kSmall))) {
      flags_.resize((span_ + 1) / 64 + 1);
      for (std::int64_t i = 0; i < members.rows; ++i) {
        const std::uint64_t distance = word_of(values[i]) - low_;
        flags_[distance / 64] |= 1ULL << (distance % 64);
      }
      return;
    }
    slots_.resize(slots_for(count < kFew ? kSpread * count : count));
    mask_ = slots_.size() - 1;
    for (std::int64_t i = 0; i < members.rows; ++i) {
      const std::uint64_t distance = word_of(values[i]) - low_;
      if (distance == 0) continue;
      std::uint64_t at = hash_word(distance) & mask_;
      while (slots_[at] != 0 && slots_[at] != distance) at = (at + 1) & mask_;
      slots_[at] = distance;
    }
  });
}

void NumberSet::contains(const KeyColumn& column, std::uint8_t* bits) const {
  if (is_empty_) {
    std::memset(bits, 0, static_cast<std::size_t>((column.rows + 7) / 8));
    return;
  }
  if (slots_.empty()) {
    with_values(column, [&](const auto values) {
      set_flagged_bits(values, column.rows, low_, Flags{flags_.data(), span_}, bits);
    });
    return;
  }
  const auto is_held = [span = span_, mask = mask_,
                        slots = slots_.data()](std::uint64_t distance) -> std::uint64_t {
    if (distance > span) return 0;
    std::uint64_t at = hash_word(distance) & mask;
    while (slots[at] != 0 && slots[at] != distance) at = (at + 1) & mask;
    return distance == 0 || slots[at] != 0 ? 1 : 0;
  };
  with_values(column, [&](const auto values) { set_found_bits(values, column.rows, low_, is_held, bits); });
}

}  // namespace bamquery
