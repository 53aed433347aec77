// Strings out of codes of symbols, whatever the codes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "storage/native/packed/fsst/symbol_table.hpp"

namespace bamquery {

/// Decodes strings by one table; never reads behind codes, nor writes behind a limit.
class SymbolDecoder {
 public:
  explicit SymbolDecoder(const SymbolTable& table) : table_(table) {}

  /// Bytes of the string of these codes; nothing where one is no symbol, or an escape is the last.
  std::optional<std::uint64_t> size(std::span<const std::uint8_t> codes) const;

  /// Writes the string from `out` on, and what may be anything behind it, but nothing from `limit` on.
  /// Returns where it ends; null where it does not fit, or `size` would be nothing.
  std::uint8_t* decode(std::span<const std::uint8_t> codes, std::uint8_t* out, std::uint8_t* limit) const;

 private:
  const SymbolTable& table_;
};

}  // namespace bamquery
