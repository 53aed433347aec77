#include "storage/native/packed/fsst/matcher.hpp"

namespace bamquery {

Matcher::Matcher() {
  long_.fill({1, 0, 0, 0});
  one_.fill({kSymbolEscape, 1});
  two_.fill({kSymbolEscape, 1});
}

bool Matcher::insert(const Symbol& symbol, std::uint8_t code) {
  const Match match{code, static_cast<std::uint8_t>(symbol.length)};
  if (symbol.length == 1) {
    one_[symbol.bytes] = match;
    for (std::size_t second = 0; second < 256; ++second) {
      Match& known = two_[symbol.bytes | second << 8];
      if (known.length < 2) known = match;
    }
    return true;
  }
  if (symbol.length == 2) {
    two_[symbol.bytes] = match;
    return true;
  }
  Long& found = long_[place(symbol.bytes)];
  if (found.mask != 0) return false;
  found = {symbol.bytes, ~std::uint64_t{0} >> (64 - 8 * symbol.length), code, match.length};
  return true;
}

}  // namespace bamquery
