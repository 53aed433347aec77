// Strings out of codes of symbols, whatever the codes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "storage/native/packed/fsst/symbol_table.hpp"

namespace bamquery {

inline constexpr std::size_t kMarkedCodes = 16384;
inline constexpr std::uint32_t kInside = 0xffffffff;

/// Decodes strings by one table; never reads behind codes, nor writes behind a limit.
class SymbolDecoder {
 public:
  explicit SymbolDecoder(const SymbolTable& table) : table_(table) {}

  /// Bytes of the string of these codes; nothing where one is no symbol, or an escape is the last.
  std::optional<std::uint64_t> size(std::span<const std::uint8_t> codes) const;

  /// Writes the string from `out` on, and what may be anything behind it, but nothing from `limit` on.
  /// Returns where it ends; null where it does not fit, or `size` would be nothing.
  std::uint8_t* decode(std::span<const std::uint8_t> codes, std::uint8_t* out, std::uint8_t* limit) const;

  /// The same of several strings' codes, end to end, of which there are at most kMarkedCodes: where one ends
  /// costs no branch. `marks[i]` gets how many bytes the codes up to number i make, and kInside where that is
  /// an escape. What is behind `out` has room for kMostSymbolBytes for each code.
  std::uint8_t* decode_marking(std::span<const std::uint8_t> codes, std::uint8_t* out,
                               std::uint32_t* marks) const;

 private:
  const SymbolTable& table_;
};

}  // namespace bamquery
