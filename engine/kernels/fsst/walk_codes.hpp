// Codes of strings to symbols, by a warp: for any kernel that wants what is in compressed strings.
#pragma once

#include "engine/kernels/fsst/coded_strings.hpp"
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_prefix.hpp"

namespace bamquery {

/// What the lanes of a warp know of each other's strings: in shared memory, one for each warp.
struct WarpStrings {
  uint64_t begins[33];  ///< Codes before each lane's, and all.
  const byte* codes[32];
  const StringSymbols* symbols[32];
};

/// What a code stands for.
struct DecodedCode {
  uint32_t string;   ///< The lane whose string it is in.
  bool is_there;     ///< There is one for this lane.
  bool begins;       ///< Its string.
  bool ends;         ///< Its string.
  bool is_possible;  ///< If not, it stands for nothing.
  uint32_t length;
  uint64_t bytes;   ///< So many, the first one least significant.
  uint32_t before;  ///< Bytes of the lanes before.
  uint32_t all;     ///< Bytes of all lanes.
  uint64_t walked;  ///< Bytes of all codes that the warp saw before these.
};

/// Calls `take(DecodedCode)` for all codes of the lanes' strings, the first lane's first, 32 at a time.
/// `mine` is this lane's string, by `symbols`; null: its codes are its bytes. All lanes call, and take.
template <typename Take>
__device__ inline void walk_codes(WarpStrings& strings, const CodedString& mine, const StringSymbols* symbols,
                                  const Take& take) {
  const uint32_t lane = Lanes::lane();
  __syncwarp();  // All have read of the strings before.
  const uint64_t behind = warp_prefix(mine.size);
  strings.begins[lane + 1] = behind;
  if (lane == 0) strings.begins[0] = 0;
  strings.codes[lane] = mine.codes;
  strings.symbols[lane] = symbols;
  __syncwarp();
  const uint64_t total = strings.begins[32];
  uint64_t walked = 0;
  uint32_t inside = 0;  // 1: the code before is an escape, and the next one stands for itself
  for (uint64_t first = 0; first < total; first += 32) {
    const uint64_t at = first + lane;
    DecodedCode found{};
    found.is_there = at < total;
    found.walked = walked;
    const StringSymbols* table = nullptr;
    uint32_t code = 0;
    if (found.is_there) {
      found.string = last_at_most(strings.begins, 32, at);
      found.begins = at == strings.begins[found.string];
      found.ends = at + 1 == strings.begins[found.string + 1];
      table = strings.symbols[found.string];
      code = static_cast<uint32_t>(strings.codes[found.string][at - strings.begins[found.string]]);
    }
    // How many escapes are right before a code tells whether it stands for itself. A possible string leaves
    // none open, so that it does not matter where those before it end.
    const uint32_t escapes = __ballot_sync(~0u, table != nullptr && code == kSymbolEscape);
    const uint32_t fresh = (~escapes << 1) & ((2u << lane) - 1);
    const uint32_t before = fresh != 0 ? lane - highest_bit(fresh) : lane + inside;
    const bool stands_for_itself = table == nullptr || before % 2 != 0;
    const bool is_escape = !stands_for_itself && code == kSymbolEscape;
    found.is_possible = true;
    if (found.is_there && stands_for_itself) {
      found.length = 1;
      found.bytes = code;
    } else if (found.is_there) {
      found.length = table->lengths[code];
      found.bytes = table->bytes[code];
      found.is_possible = is_escape ? !found.ends : found.length != 0;
    }
    const uint32_t sum = warp_prefix(found.length);
    found.before = sum - found.length;
    found.all = __shfl_sync(~0u, sum, 31);
    take(found);
    walked += found.all;
    inside = __shfl_sync(~0u, is_escape ? 1u : 0u, 31);
  }
}

/// One fragment's symbols, held in shared memory by a thread block whose rows are of it.
class HeldSymbols {
 public:
  __device__ explicit HeldSymbols(StringSymbols& room) : room_(room) {}

  /// The symbols of a piece, where the rows of the whole thread block are of pieces [first, last]. All
  /// threads call, with the same arguments but for `piece`.
  __device__ const StringSymbols* of(const StringSymbols* symbols, uint32_t first, uint32_t last,
                                     uint32_t piece) {
    if (first != last) return symbols + piece;
    if (held_ != first) {
      constexpr uint32_t kWords = sizeof(StringSymbols) / sizeof(uint64_t);
      const auto* const from = reinterpret_cast<const uint64_t*>(symbols + first);
      auto* const to = reinterpret_cast<uint64_t*>(&room_);
      __syncthreads();  // All have read the symbols that were here.
      for (uint32_t i = threadIdx.x; i < kWords; i += kThreads) to[i] = from[i];
      __syncthreads();
      held_ = first;
    }
    return &room_;
  }

 private:
  StringSymbols& room_;
  uint32_t held_ = ~0u;
};

}  // namespace bamquery
