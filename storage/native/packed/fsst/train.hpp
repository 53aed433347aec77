// Symbols for strings, by a sample of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/native/packed/fsst/symbol_table.hpp"

namespace bamquery {

/// The symbols that make these strings short: the same for the same strings. `offsets` has one more than
/// there are, and counts bytes of `data` from `data_start` on. Some thousand pieces of them, evenly spread,
/// are looked at.
SymbolTable train_symbols(std::span<const std::int64_t> offsets, const std::byte* data,
                          std::int64_t data_start);

}  // namespace bamquery
