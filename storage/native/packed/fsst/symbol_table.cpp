#include "storage/native/packed/fsst/symbol_table.hpp"

#include <cstring>
#include <stdexcept>

namespace bamquery {

std::vector<std::byte> store_symbols(const SymbolTable& table) {
  std::vector<std::byte> stored{static_cast<std::byte>(table.count)};
  for (std::uint32_t code = 0; code < table.count; ++code) {
    stored.push_back(static_cast<std::byte>(table.lengths[code]));
  }
  for (std::uint32_t code = 0; code < table.count; ++code) {
    for (std::uint32_t place = 0; place < table.lengths[code]; ++place) {
      stored.push_back(static_cast<std::byte>(table.bytes[code] >> (8 * place)));
    }
  }
  return stored;
}

SymbolTable load_symbols(std::span<const std::byte> stored) {
  const auto refuse = [] { throw std::invalid_argument("its table of symbols cannot be"); };
  SymbolTable table;
  if (stored.empty()) refuse();
  const auto count = std::to_integer<std::uint32_t>(stored[0]);
  if (count > kMostSymbols || stored.size() < 1 + count) refuse();
  std::size_t at = 1 + count;
  for (std::uint32_t code = 0; code < count; ++code) {
    const auto length = std::to_integer<std::uint32_t>(stored[1 + code]);
    if (length < 1 || length > kMostSymbolBytes || stored.size() - at < length) refuse();
    Symbol symbol{0, length};
    std::memcpy(&symbol.bytes, stored.data() + at, length);
    table.add(symbol);
    at += length;
  }
  if (at != stored.size()) refuse();
  return table;
}

}  // namespace bamquery
