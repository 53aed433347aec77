#include "engine/native/keys/partition.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/native/keys/row_shares.hpp"

namespace bamquery {
namespace {

constexpr std::uint64_t kNull = 0x9E3779B97F4A7C15ULL;

// The finalizer of splitmix64: every bit of the result depends on every bit given.
std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
  return word ^ (word >> 31);
}

constexpr std::int64_t kWord = 8, kMostWords = 8;

std::uint64_t hash_string(const std::byte* text, std::int64_t length) {
  auto hash = static_cast<std::uint64_t>(length);
  std::uint64_t word = 0;
  if (length < kWord) {
    if (length == 0) return hash;
    std::memcpy(&word, text, static_cast<std::size_t>(length));
    return mix(hash * 31 + word);
  }
  const auto add = [&](std::int64_t at) {
    std::memcpy(&word, text + at, sizeof word);
    hash = mix(hash * 31 + word);
  };
  // One behind the other, or spread over what is longer; the last one ends with the string.
  const std::int64_t last = length - kWord;
  const std::int64_t step = length <= kMostWords * kWord ? kWord : last / (kMostWords - 1);
  std::int64_t at = 0;
  for (std::int64_t words = 1; words < kMostWords && at < last; ++words, at += step) add(at);
  add(last);
  return hash;
}

// Places that are looked at before it is asked whether they are known to be in no order.
constexpr std::int64_t kStep = 4096;

// Whether each of these places, but the first, is greater than the one before it.
bool ascend(const std::int64_t* places, std::int64_t count) {
  bool all = true;
  for (std::int64_t i = 1; i < count; ++i) all &= places[i] > places[i - 1];
  return all;
}

}  // namespace

bool hash_strings(std::span<const std::int64_t> offsets, const std::byte* data, std::int64_t size,
                  std::uint64_t* hashes) {
  const auto rows = static_cast<std::int64_t>(offsets.size()) - 1;
  std::atomic<bool> is_right = true;
  share_items(rows, worth_shares(rows), 1, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(first + count); ++row) {
      const std::int64_t begin = offsets[row], end = offsets[row + 1];
      if (begin < 0 || begin > end || end > size) {
        is_right = false;
        return;
      }
      hashes[row] = hash_string(data + begin, end - begin);
    }
  });
  return is_right;
}

void hash_rows(std::span<const KeyColumn> columns, std::int64_t rows, std::uint64_t* hashes) {
  share_items(rows, worth_shares(rows), 1, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    std::fill_n(hashes + first, count, 0);
    for (const KeyColumn& column : columns) {
      with_values(column, [&]<typename T>(Values<T> values) {
        for (std::int64_t row = first; row < first + count; ++row) {
          const T value = values[row];
          std::uint64_t own = word_of(value);
          if constexpr (sizeof(T) == 16) {
            own ^= mix(static_cast<std::uint64_t>(static_cast<UnsignedInt128>(value) >> 64));
          }
          if (column.has_nulls() && !column.valid[row]) own = kNull;
          hashes[row] = mix(hashes[row] * 31 + own);
        }
      });
    }
  });
}

void partition_rows(std::span<const std::uint64_t> hashes, int shift, std::span<std::int64_t> ends,
                    std::int64_t* order) {
  const std::uint64_t mask = ends.size() - 1;
  const auto rows = static_cast<std::int64_t>(hashes.size());
  const std::int64_t shares = worth_shares(rows);
  // Of each share, how many rows each part has of it, and then where the next one of them goes.
  std::vector<std::int64_t> places(static_cast<std::size_t>(shares) * ends.size());
  const auto of_share = [&](std::int64_t share) {
    return std::span(places).subspan(static_cast<std::size_t>(share) * ends.size(), ends.size());
  };
  share_items(rows, shares, 1, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    const std::span<std::int64_t> own = of_share(share);
    for (std::int64_t row = first; row < first + count; ++row) {
      ++own[(hashes[static_cast<std::size_t>(row)] >> shift) & mask];
    }
  });
  std::int64_t begin = 0;
  for (std::size_t part = 0; part < ends.size(); ++part) {
    for (std::int64_t share = 0; share < shares; ++share) {
      begin += std::exchange(of_share(share)[part], begin);
    }
    ends[part] = begin;
  }
  share_items(rows, shares, 1, [&](std::int64_t share, std::int64_t first, std::int64_t count) {
    const std::span<std::int64_t> own = of_share(share);
    for (std::int64_t row = first; row < first + count; ++row) {
      order[own[(hashes[static_cast<std::size_t>(row)] >> shift) & mask]++] = row;
    }
  });
}

bool gather_values(const std::byte* values, std::int64_t count, int width,
                   std::span<const std::int64_t> places, std::byte* target) {
  const auto gather = [&]<typename T>(T) {
    const Values<T> from{values};
    const auto rows = static_cast<std::int64_t>(places.size());
    std::atomic<bool> is_right = true;
    share_items(rows, worth_shares(rows), 1, [&](std::int64_t, std::int64_t first, std::int64_t own) {
      std::byte* to = target + static_cast<std::size_t>(first) * sizeof(T);
      for (const std::int64_t place :
           places.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(own))) {
        if (static_cast<std::uint64_t>(place) >= static_cast<std::uint64_t>(count)) {
          is_right = false;
          return;
        }
        const T value = from[place];
        std::memcpy(to, &value, sizeof value);
        to += sizeof value;
      }
    });
    return is_right.load();
  };
  return width == 1   ? gather(std::uint8_t{})
         : width == 2 ? gather(std::uint16_t{})
         : width == 4 ? gather(std::uint32_t{})
                      : gather(std::uint64_t{});
}

PlaceOrder order_of_places(std::span<const std::int64_t> places) {
  const auto rows = static_cast<std::int64_t>(places.size());
  std::atomic<bool> all_ascend = true;
  share_items(rows, worth_shares(rows), 1, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    const std::int64_t end = first + count;
    for (std::int64_t start = first; start < end && all_ascend; start += kStep) {
      // From the last place of the step before on, which may be another thread's.
      const std::int64_t from = std::max<std::int64_t>(start - 1, 0);
      if (!ascend(places.data() + from, std::min(start + kStep, end) - from)) all_ascend = false;
    }
  });
  if (!all_ascend) return PlaceOrder::kNone;
  // Of as many different whole numbers as there are from the first to the last each is the next one.
  const bool is_run = rows == 0 || places.back() - places.front() == rows - 1;
  return is_run ? PlaceOrder::kRun : PlaceOrder::kAscend;
}

bool set_flags(std::span<const std::int64_t> places, std::span<std::uint8_t> flags) {
  const auto rows = static_cast<std::int64_t>(places.size());
  std::atomic<bool> is_right = true;
  share_items(rows, worth_shares(rows), 1, [&](std::int64_t, std::int64_t first, std::int64_t count) {
    for (const std::int64_t row :
         places.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))) {
      const auto place = static_cast<std::uint64_t>(row);
      if (place >= flags.size()) {
        is_right = false;
        return;
      }
      // Nothing else is handed over by it: whoever reads them waits for the threads.
      std::atomic_ref(flags[place]).store(1, std::memory_order_relaxed);
    }
  });
  return is_right;
}

}  // namespace bamquery
