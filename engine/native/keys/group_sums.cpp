#include "engine/native/keys/group_sums.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>
#include <vector>

#include "engine/native/keys/row_shares.hpp"

namespace bamquery {
namespace {

// Groups of which there are several sums of different rows: one sum after the other would wait for itself.
constexpr std::int64_t kFewGroups = 256;
constexpr std::int64_t kLanes = 4;
// Limbs of 128 bits, and the least number of 39 digits.
constexpr std::size_t kNumberLimbs = 4;
constexpr Int128 kLimit = static_cast<Int128>(10'000'000'000'000'000'000ULL) * 10'000'000'000'000'000'000ULL;
// Groups whose lanes are so few that each block may add them up, and bits of which a block's sum has 62.
constexpr std::int64_t kBlockGroups = 64;
constexpr int kSmallBits = 52;
constexpr std::uint64_t kLimbMask = (1ULL << kLimbBits) - 1;

// Calls `use` with each row and its group; false at the first one that is of none.
template <typename Code, typename Use>
bool each_row_of(const RowGroups& rows, Use&& use) {
  const Values<Code> codes{rows.data};
  const auto groups = static_cast<std::uint64_t>(rows.groups);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto group = static_cast<std::uint64_t>(codes[row]);
    if (group >= groups) return false;
    use(row, group);
  }
  return true;
}

template <typename Use>
bool each_row(const RowGroups& rows, Use&& use) {
  if (rows.data == nullptr) {
    if (rows.groups < 1) return rows.rows == 0;
    for (std::int64_t row = 0; row < rows.rows; ++row) use(row, std::uint64_t{0});
    return true;
  }
  return rows.width == 4 ? each_row_of<std::int32_t>(rows, use) : each_row_of<std::int64_t>(rows, use);
}

// Sums whose order does not matter, by `use(sums of the row's lane, row, group)`.
template <typename Sum, typename Use>
bool in_lanes_of(const RowGroups& rows, Sum* sums, Use&& use) {
  if (rows.groups > kFewGroups) {
    return each_row(rows, [&](std::int64_t row, std::uint64_t group) { use(sums[group], row, group); });
  }
  std::vector<Sum> lanes(static_cast<std::size_t>(kLanes * rows.groups));
  if (!each_row(rows, [&](std::int64_t row, std::uint64_t group) {
        use(lanes[group * kLanes + static_cast<std::uint64_t>(row % kLanes)], row, group);
      })) {
    return false;
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) sums[i / kLanes] += lanes[i];
  return true;
}

template <typename Sum, typename Use>
bool in_lanes(const RowGroups& rows, Sum* sums, Use&& use) {
  return in_lanes_of(rows, sums, [&](Sum& own, std::int64_t row, std::uint64_t) { use(own, row); });
}

// A sum of 128-bit numbers: that of their low words, and that of their high words with the signs. Neither can
// overflow, so that nothing need be compared.
struct WideSum {
  UnsignedInt128 low = 0;
  Int128 high = 0;

  void add(Int128 value) {
    low += static_cast<std::uint64_t>(value);
    high += static_cast<std::int64_t>(value >> 64);
  }
  void operator+=(const WideSum& other) {
    low += other.low;
    high += other.high;
  }
};

// Sums of a few groups. A block of numbers that all are small, as most decimals are, adds up in 64 bits.
bool sum_blocks(const RowGroups& rows, const KeyColumn& column, std::span<WideSum> sums) {
  const Values<Int128> numbers{column.data};
  const Values<std::uint64_t> words{column.data};
  std::vector<std::uint64_t> lanes(sums.size() * kLanes);
  for (std::int64_t start = 0; start < rows.rows; start += kBlockRows) {
    RowGroups block = rows;
    block.rows = std::min(kBlockRows, rows.rows - start);
    if (block.data != nullptr) block.data += start * rows.width;
    std::uint64_t beyond = 0;
    for (std::int64_t row = start; row < start + block.rows; ++row) {
      const std::uint64_t low = words[2 * row];
      const auto sign = static_cast<std::uint64_t>(static_cast<std::int64_t>(low) >> 63);
      beyond |= (words[2 * row + 1] ^ sign) | ((low ^ sign) >> kSmallBits);
    }
    if (beyond != 0) {
      if (!each_row(block, [&](std::int64_t row, std::uint64_t group) {
            if (column.valid[start + row]) sums[group].add(numbers[start + row]);
          })) {
        return false;
      }
      continue;
    }
    if (!each_row(block, [&](std::int64_t row, std::uint64_t group) {
          const std::uint64_t low = column.valid[start + row] ? words[2 * (start + row)] : 0;
          lanes[group * kLanes + static_cast<std::uint64_t>(row % kLanes)] += low;
        })) {
      return false;
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      sums[lane / kLanes].add(static_cast<std::int64_t>(lanes[lane]));
      lanes[lane] = 0;
    }
  }
  return true;
}

// Of less than 64 bits, 2**31 values fit 64 bits; of 64 bits they fit 128.
template <typename T>
using SumOf =
    std::conditional_t<sizeof(T) == 16, WideSum, std::conditional_t<sizeof(T) == 8, Int128, std::int64_t>>;

template <typename T>
bool add_up(const RowGroups& rows, const KeyColumn& column, Values<T> from, std::span<SumOf<T>> sums) {
  if constexpr (sizeof(T) == 16) {
    if (rows.groups <= kBlockGroups) return sum_blocks(rows, column, sums);
  }
  const auto add = [](SumOf<T>& sum, T value) {
    if constexpr (sizeof(T) == 16) {
      sum.add(value);
    } else {
      sum += value;
    }
  };
  if (!column.has_nulls()) {
    return in_lanes(rows, sums.data(), [&](SumOf<T>& sum, std::int64_t row) { add(sum, from[row]); });
  }
  return in_lanes(rows, sums.data(), [&](SumOf<T>& sum, std::int64_t row) {
    if (column.valid[row]) add(sum, from[row]);
  });
}

// Limbs of a sum, the lowest of them at `first`; what is beyond the last one goes with it.
void write_limbs(Int128 sum, std::span<std::int64_t* const> limbs, std::size_t first, std::size_t group) {
  const std::size_t last = limbs.size() - 1;
  for (std::size_t i = first; i < last; ++i) {
    limbs[i][group] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) & kLimbMask);
    sum >>= kLimbBits;
  }
  limbs[last][group] = static_cast<std::int64_t>(sum);
}

void write_limbs(const WideSum& sum, std::span<std::int64_t* const> limbs, std::size_t group) {
  const auto low = static_cast<std::uint64_t>(sum.low);
  limbs[0][group] = static_cast<std::int64_t>(low & kLimbMask);
  limbs[1][group] = static_cast<std::int64_t>(low >> kLimbBits);
  write_limbs(sum.high + static_cast<Int128>(sum.low >> 64), limbs, 2, group);
}

}  // namespace

bool count_groups(const RowGroups& rows, Bits valid, std::int64_t* counts) {
  if (rows.data == nullptr && rows.groups == 1) {
    counts[0] = count_bits(valid, rows.rows);
    return true;
  }
  if (valid.all_set()) return in_lanes(rows, counts, [](std::int64_t& sum, std::int64_t) { ++sum; });
  return in_lanes(rows, counts, [&](std::int64_t& sum, std::int64_t row) { sum += valid[row] ? 1 : 0; });
}

bool sum_whole(const RowGroups& rows, const std::int64_t* values, std::int64_t* sums) {
  auto* wrapping = reinterpret_cast<std::uint64_t*>(sums);
  return in_lanes(rows, wrapping, [&](std::uint64_t& sum, std::int64_t row) {
    sum += static_cast<std::uint64_t>(values[row]);
  });
}

bool sum_checked(const RowGroups& rows, const std::int64_t* values, std::int64_t* sums, bool& fits) {
  bool overflows = false;
  const bool is_right = each_row(rows, [&](std::int64_t row, std::uint64_t group) {
    overflows |= __builtin_add_overflow(sums[group], values[row], &sums[group]);
  });
  fits = !overflows;
  return is_right;
}

bool narrow_sums(const std::int64_t* words, std::int64_t count, std::int64_t* sums) {
  std::int64_t beyond = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sums[i] = words[2 * i];
    beyond |= words[2 * i + 1] ^ (sums[i] >> 63);
  }
  return beyond == 0;
}

bool sum_doubles(const RowGroups& rows, const double* values, double* sums) {
  return each_row(rows, [&](std::int64_t row, std::uint64_t group) { sums[group] += values[row]; });
}

namespace {

struct PairSums {
  std::int64_t count = 0;
  double y = 0, x = 0, yy = 0, xx = 0, xy = 0;

  PairSums& operator+=(const PairSums& other) {
    count += other.count;
    y += other.y;
    x += other.x;
    yy += other.yy;
    xx += other.xx;
    xy += other.xy;
    return *this;
  }
};

}  // namespace

bool sum_pairs(const RowGroups& rows, const double* y, const double* x, const PairMoments& found) {
  // Means are counted from a value of the group's, its last one, from which others are no further than need
  // be.
  struct Pair {
    double y = 0, x = 0;
  };
  const auto groups = static_cast<std::size_t>(rows.groups);
  std::vector<Pair> base(groups);
  if (!each_row(rows, [&](std::int64_t row, std::uint64_t group) { base[group] = {y[row], x[row]}; })) {
    return false;
  }
  for (Pair& pair : base) pair = {std::isfinite(pair.y) ? pair.y : 0, std::isfinite(pair.x) ? pair.x : 0};
  std::vector<PairSums> moved(groups), products(groups);
  in_lanes_of(rows, moved.data(), [&](PairSums& sums, std::int64_t row, std::uint64_t group) {
    ++sums.count;
    sums.y += y[row] - base[group].y;
    sums.x += x[row] - base[group].x;
  });
  std::vector<Pair> means(groups);
  for (std::size_t group = 0; group < groups; ++group) {
    const auto count = static_cast<double>(moved[group].count);
    means[group] = {base[group].y + moved[group].y / count, base[group].x + moved[group].x / count};
  }
  in_lanes_of(rows, products.data(), [&](PairSums& sums, std::int64_t row, std::uint64_t group) {
    const double from_y = y[row] - means[group].y, from_x = x[row] - means[group].x;
    sums.yy += from_y * from_y;
    sums.xx += from_x * from_x;
    sums.xy += from_y * from_x;
  });
  for (std::size_t group = 0; group < groups; ++group) {
    found.counts[group] = moved[group].count;
    found.mean_y[group] = means[group].y;
    found.mean_x[group] = means[group].x;
    found.yy[group] = products[group].yy;
    found.xx[group] = products[group].xx;
    found.xy[group] = products[group].xy;
  }
  return true;
}

int limbs_of(int width) { return width == 16 ? 5 : width == 8 ? 3 : 2; }

bool sum_limbs(const RowGroups& rows, const KeyColumn& values, std::span<std::int64_t* const> limbs) {
  bool is_right = false;
  with_values(values, [&]<typename T>(Values<T> from) {
    std::vector<SumOf<T>> sums(static_cast<std::size_t>(rows.groups));
    is_right = add_up(rows, values, from, std::span(sums));
    for (std::size_t group = 0; group < sums.size(); ++group) {
      if constexpr (sizeof(T) == 16) {
        write_limbs(sums[group], limbs, group);
      } else {
        write_limbs(sums[group], limbs, 0, group);
      }
    }
  });
  return is_right;
}

bool merge_limbs(const RowGroups& rows, std::span<const std::int64_t* const> values,
                 std::span<std::int64_t* const> limbs) {
  for (std::size_t i = 0; i < limbs.size(); ++i) {
    const std::int64_t* from = values[i];
    std::int64_t* sums = limbs[i];
    if (!each_row(rows, [&](std::int64_t row, std::uint64_t group) { sums[group] += from[row]; })) {
      return false;
    }
  }
  for (std::size_t i = 0; i + 1 < limbs.size(); ++i) {
    for (std::int64_t group = 0; group < rows.groups; ++group) {
      limbs[i + 1][group] += limbs[i][group] >> kLimbBits;
      limbs[i][group] = static_cast<std::int64_t>(static_cast<std::uint64_t>(limbs[i][group]) & kLimbMask);
    }
  }
  return true;
}

namespace {

bool join_some(std::span<const std::int64_t* const> limbs, std::int64_t begin, std::int64_t end,
               std::int64_t* words) {
  bool fits = true;
  if (limbs.size() == 1) {
    for (std::int64_t i = begin; i < end; ++i) {
      words[2 * i] = limbs[0][i];
      words[2 * i + 1] = limbs[0][i] >> 63;
    }
    return true;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    UnsignedInt128 number = 0;
    Int128 carry = 0;  // differences of sums have limbs of any sign
    for (std::size_t limb = 0; limb < kNumberLimbs; ++limb) {
      if (limb < limbs.size()) carry += limbs[limb][i];
      number |= static_cast<UnsignedInt128>(static_cast<std::uint64_t>(carry) & kLimbMask)
                << (limb * kLimbBits);
      carry >>= kLimbBits;
    }
    for (std::size_t limb = kNumberLimbs; limb < limbs.size(); ++limb) carry += limbs[limb][i];
    const auto sum = static_cast<Int128>(number);
    // What is above 128 bits may only repeat the sign.
    fits = fits && carry == (sum < 0 ? -1 : 0) && sum > -kLimit && sum < kLimit;
    words[2 * i] = static_cast<std::int64_t>(sum);
    words[2 * i + 1] = static_cast<std::int64_t>(sum >> 64);
  }
  return fits;
}

}  // namespace

bool join_limbs(std::span<const std::int64_t* const> limbs, std::int64_t count, std::int64_t* words) {
  std::atomic<bool> fit = true;
  share_items(count, worth_shares(count), 1, [&](std::int64_t, std::int64_t first, std::int64_t own) {
    if (!join_some(limbs, first, first + own, words)) fit = false;
  });
  return fit;
}

}  // namespace bamquery
