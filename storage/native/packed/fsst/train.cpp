#include "storage/native/packed/fsst/train.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "storage/native/packed/fsst/matcher.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kSampleBytes = std::size_t{64} << 10;
constexpr std::size_t kPieceBytes = 512;  // of a string, at most
constexpr int kGenerations = 5;
constexpr std::uint32_t kLeastCount = 5;
constexpr std::uint32_t kSingles = 256;  // what stands for byte b without a symbol is kSingles + b
constexpr std::uint32_t kNames = 512;

struct Piece {
  const std::uint8_t* begin;
  std::size_t length;
};

std::vector<Piece> sample(std::span<const std::int64_t> offsets, const std::byte* data,
                          std::int64_t data_start) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data);
  const std::size_t rows = offsets.size() - 1;
  std::size_t total = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    total += std::min(static_cast<std::size_t>(offsets[row + 1] - offsets[row]), kPieceBytes);
  }
  const std::size_t step = std::max<std::size_t>((total + kSampleBytes - 1) / kSampleBytes, 1);
  std::vector<Piece> pieces;
  for (std::size_t row = step / 2; row < rows; row += step) {
    const auto length = static_cast<std::size_t>(offsets[row + 1] - offsets[row]);
    const std::size_t taken = std::min(length, kPieceBytes);
    // Of long strings a piece from anywhere: their beginnings may be all alike.
    const std::size_t skipped = (row * 0x9e3779b97f4a7c15u >> 32) % (length - taken + 1);
    if (taken > 0) pieces.push_back({bytes + (offsets[row] - data_start) + skipped, taken});
  }
  return pieces;
}

// How often each name, and each pair of names that follow on each other, was used.
struct Counts {
  std::vector<std::uint32_t> single = std::vector<std::uint32_t>(kNames);
  std::vector<std::uint32_t> pair = std::vector<std::uint32_t>(std::size_t{kNames} * kNames);
  std::size_t bytes = 0;  // of the sample, compressed
};

struct Generation {
  SymbolTable table;
  Matcher matcher;
};

Symbol symbol_of(const SymbolTable& table, std::uint32_t name) {
  return name < kSingles ? table.symbol(name) : Symbol{name - kSingles, 1};
}

void count(const Generation& now, const std::vector<Piece>& pieces, Counts& counts) {
  std::ranges::fill(counts.single, 0u);
  std::ranges::fill(counts.pair, 0u);
  counts.bytes = 0;
  for (const Piece& piece : pieces) {
    std::uint32_t before = kNames;
    for (std::size_t at = 0; at < piece.length;) {
      const std::size_t left = piece.length - at;
      const std::uint64_t word = load_bytes(piece.begin + at, std::min<std::size_t>(left, 8), left);
      const Matcher::Match match = now.matcher.find(word, left);
      const auto first = kSingles + static_cast<std::uint32_t>(word & 0xff);
      const std::uint32_t name = match.code == kSymbolEscape ? first : match.code;
      counts.bytes += match.code == kSymbolEscape ? 2 : 1;
      ++counts.single[name];
      if (before != kNames) ++counts.pair[std::size_t{before} * kNames + name];
      if (match.length > 1) {  // so that single bytes stay in the running
        ++counts.single[first];
        if (before != kNames) ++counts.pair[std::size_t{before} * kNames + first];
      }
      before = name;
      at += match.length;
    }
  }
}

struct Candidate {
  Symbol symbol;
  std::uint64_t gain;
};

std::vector<Candidate> candidates(const SymbolTable& table, const Counts& counts, bool with_pairs) {
  std::vector<Candidate> found;
  const auto add = [&](Symbol symbol, std::uint64_t gain) { found.push_back({symbol, gain}); };
  for (std::uint32_t name = 0; name < kNames; ++name) {
    if (counts.single[name] < kLeastCount) continue;
    const Symbol first = symbol_of(table, name);
    // Of single bytes more than they save: each one without a symbol takes two.
    add(first, std::uint64_t{counts.single[name]} * (first.length == 1 ? kMostSymbolBytes : first.length));
    if (!with_pairs || first.length == kMostSymbolBytes) continue;
    for (std::uint32_t next = 0; next < kNames; ++next) {
      const std::uint32_t times = counts.pair[std::size_t{name} * kNames + next];
      if (times < kLeastCount) continue;
      const Symbol second = symbol_of(table, next);
      const std::uint32_t length = std::min(first.length + second.length, kMostSymbolBytes);
      const std::uint64_t both = first.bytes | second.bytes << (8 * first.length);
      add({both, length}, std::uint64_t{times} * length);
    }
  }
  // Equal ones are one. Their order is that of gains, and never by chance.
  const auto by_symbol = [](const Candidate& one) { return std::tuple(one.symbol.length, one.symbol.bytes); };
  std::ranges::sort(found, {}, by_symbol);
  std::vector<Candidate> merged;
  for (const Candidate& one : found) {
    if (!merged.empty() && merged.back().symbol == one.symbol) {
      merged.back().gain += one.gain;
    } else {
      merged.push_back(one);
    }
  }
  std::ranges::stable_sort(merged, std::greater{}, &Candidate::gain);
  return merged;
}

std::unique_ptr<Generation> next_generation(const Generation& now, const Counts& counts, bool with_pairs) {
  auto next = std::make_unique<Generation>();
  for (const Candidate& one : candidates(now.table, counts, with_pairs)) {
    if (next->table.count == kMostSymbols) break;
    if (next->matcher.insert(one.symbol, static_cast<std::uint8_t>(next->table.count))) {
      next->table.add(one.symbol);
    }
  }
  return next;
}

}  // namespace

SymbolTable train_symbols(std::span<const std::int64_t> offsets, const std::byte* data,
                          std::int64_t data_start) {
  const std::vector<Piece> pieces = sample(offsets, data, data_start);
  auto now = std::make_unique<Generation>();
  SymbolTable best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  Counts counts;
  for (int generation = 0;; ++generation) {
    count(*now, pieces, counts);
    if (counts.bytes < least) {
      least = counts.bytes;
      best = now->table;
    }
    if (generation == kGenerations) return best;
    // The last one chooses among symbols that were tried.
    now = next_generation(*now, counts, generation + 1 < kGenerations);
  }
}

}  // namespace bamquery
