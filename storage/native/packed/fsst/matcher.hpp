// The longest symbol that bytes begin with, found by two loads.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "storage/native/packed/fsst/symbol_table.hpp"

namespace bamquery {

/// Finds symbols of a table. Those of three bytes and more are found by a hash of their first three, of
/// which each has a place of its own: `insert` refuses those whose place is taken.
class Matcher {
 public:
  struct Match {
    std::uint8_t code;  ///< kSymbolEscape where no symbol fits.
    std::uint8_t length;
  };

  Matcher();

  /// Whether the symbol can be told from those before it, and `find` finds it from now on.
  bool insert(const Symbol& symbol, std::uint8_t code);

  /// What the first `left` bytes of `word` begin with; there is at least one, and those behind are zero.
  Match find(std::uint64_t word, std::size_t left) const {
    const Long& found = long_[place(word)];
    if ((word & found.mask) == found.bytes && found.length <= left) return {found.code, found.length};
    if (left == 1) return one_[word & 0xff];
    return two_[word & 0xffff];
  }

  /// The same of eight bytes and more.
  Match find(std::uint64_t word) const {
    const Long& found = long_[place(word)];
    if ((word & found.mask) == found.bytes) return {found.code, found.length};
    return two_[word & 0xffff];
  }

 private:
  struct Long {
    std::uint64_t bytes;
    std::uint64_t mask;  ///< 0 of a free place, where `bytes` are not.
    std::uint8_t code;
    std::uint8_t length;
  };
  static constexpr unsigned kPlaceBits = 10;

  static std::size_t place(std::uint64_t word) {
    return static_cast<std::uint32_t>((word & 0xffffff) * 2971215073u) >> (32 - kPlaceBits);
  }

  std::array<Long, std::size_t{1} << kPlaceBits> long_;
  std::array<Match, 65536> two_;
  std::array<Match, 256> one_;
};

/// Up to eight bytes as a word, zeros behind them; `readable` bytes may be loaded, `left` of them count.
inline std::uint64_t load_bytes(const std::uint8_t* from, std::size_t left, std::size_t readable) {
  std::uint64_t word = 0;
  if (readable >= sizeof word) {
    std::memcpy(&word, from, sizeof word);
    return left >= sizeof word ? word : word & ((std::uint64_t{1} << (8 * left)) - 1);
  }
  std::memcpy(&word, from, left);
  return word;
}

}  // namespace bamquery
