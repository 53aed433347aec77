// Symbols of up to eight bytes, each of which a byte stands for in strings that are stored with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/core/string_vector.hpp"

namespace bamquery {

/// A symbol: its bytes, the first one least significant, and zeros behind them.
struct Symbol {
  std::uint64_t bytes = 0;
  std::uint32_t length = 0;

  bool operator==(const Symbol&) const = default;
};

/// Symbols by their codes: FSST, Boncz, Neumann, Leis, VLDB 13(11), 2020.
struct SymbolTable {
  std::array<std::uint64_t, 256> bytes{};
  std::array<std::uint8_t, 256> lengths{};  ///< 0 of codes that are no symbols.
  std::uint32_t count = 0;

  /// The next code means this one; there are fewer than kMostSymbols.
  void add(const Symbol& symbol) {
    bytes[count] = symbol.bytes;
    lengths[count] = static_cast<std::uint8_t>(symbol.length);
    ++count;
  }
  Symbol symbol(std::uint32_t code) const { return {bytes[code], lengths[code]}; }
};

/// As files have it: how many there are, a byte for each one's length, then their bytes, end to end.
std::vector<std::byte> store_symbols(const SymbolTable& table);

/// The table of such bytes. Raises std::invalid_argument where they are none.
SymbolTable load_symbols(std::span<const std::byte> stored);

}  // namespace bamquery
