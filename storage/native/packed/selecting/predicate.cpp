#include "storage/native/packed/selecting/predicate.hpp"

#include <algorithm>
#include <limits>

namespace bamquery {
namespace {

__extension__ typedef __int128 Int128;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();

// Flags that a cache of a core holds, more or less.
constexpr std::uint64_t kMostFlags = 1 << 20;

bool is_signed(ValueKind kind) {
  return kind == ValueKind::kInt128 ||
         with_packed_type(kind, [](auto value) { return std::numeric_limits<decltype(value)>::is_signed; });
}

WideOrderKey greatest_key(ValueKind kind) {
  if (kind == ValueKind::kInt128) return ~WideOrderKey{0};
  return with_packed_type(
      kind, []<typename T>(T) -> WideOrderKey { return static_cast<OrderKey<T>>(~OrderKey<T>{0}); });
}

// Ascending and apart.
std::vector<KeyInterval> ordered(std::vector<KeyInterval> intervals) {
  std::erase_if(intervals, [](const KeyInterval& i) { return i.low > i.high; });
  std::ranges::sort(intervals, {}, &KeyInterval::low);
  std::vector<KeyInterval> apart;
  for (const KeyInterval& next : intervals) {
    if (!apart.empty() && next.low <= apart.back().high) {
      apart.back().high = std::max(apart.back().high, next.high);
    } else {
      apart.push_back(next);
    }
  }
  return apart;
}

std::vector<KeyInterval> complement(std::span<const KeyInterval> apart, WideOrderKey greatest) {
  std::vector<KeyInterval> rest;
  WideOrderKey from = 0;
  for (const KeyInterval& interval : apart) {
    if (interval.low > from) rest.push_back({from, interval.low - 1});
    if (interval.high >= greatest) return rest;
    from = interval.high + 1;
  }
  rest.push_back({from, greatest});
  return rest;
}

std::vector<KeyInterval> intersection(std::span<const KeyInterval> a, std::span<const KeyInterval> b) {
  std::vector<KeyInterval> both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const KeyInterval common{std::max(a[i].low, b[j].low), std::min(a[i].high, b[j].high)};
    if (common.low <= common.high) both.push_back(common);
    (a[i].high < b[j].high ? i : j) += 1;
  }
  return both;
}

// The least number from `low` to `high` of which `reached` is true; `high` + 1 if there is none. Once true,
// it stays true.
template <typename Reached>
Int128 least_number(Int128 low, Int128 high, const Reached& reached) {
  Int128 end = high + 1;
  while (low < end) {
    const Int128 middle = low + (end - low) / 2;
    if (reached(static_cast<std::int64_t>(middle))) {
      end = middle;
    } else {
      low = middle + 1;
    }
  }
  return end;
}

}  // namespace

PackedPredicate::PackedPredicate(ValueKind kind, const PackedScale& scale, std::span<const KeyTerm> terms,
                                 bool nulls_pass)
    : kind_(kind), scale_(scale), nulls_pass_(nulls_pass) {
  const WideOrderKey greatest = greatest_key(kind);
  passing_ = {{0, greatest}};
  for (const KeyTerm& term : terms) {
    std::vector<KeyInterval> within = ordered(term.intervals);
    if (term.negated) within = complement(within, greatest);
    passing_ = intersection(passing_, within);
  }
}

bool PackedPredicate::passes(WideOrderKey key) const {
  const auto next = std::ranges::upper_bound(passing_, key, {}, &KeyInterval::low);
  return next != passing_.begin() && key <= std::prev(next)->high;
}

PackedPredicate::Numbers& PackedPredicate::known(const PackedVector& vector) {
  if (last_ != nullptr && last_form_ == vector.exponent_form) return *last_;
  const auto [place, is_new] = known_.try_emplace(vector.exponent_form);
  if (is_new) {
    const PackedForm form = vector.form();
    if (kind_ == ValueKind::kFloat32) {
      place->second.intervals = find_floats<float>(form, vector.exponent());
    } else if (kind_ == ValueKind::kFloat64) {
      place->second.intervals = find_floats<double>(form, vector.exponent());
    } else {
      place->second.intervals = find_integers(form == PackedForm::kInteger ? scale_ : PackedScale{1, 0});
    }
  }
  last_ = &place->second;
  last_form_ = vector.exponent_form;
  return *last_;
}

const NumberFlags* PackedPredicate::flags(const PackedVector& vector) {
  Numbers& numbers = known(vector);
  const std::vector<NumberInterval>& intervals = numbers.intervals;
  if (intervals.empty()) return nullptr;
  const auto low = static_cast<std::uint64_t>(intervals.front().low);
  const std::uint64_t span = static_cast<std::uint64_t>(intervals.back().high) - low;
  if (span >= kMostFlags) return nullptr;
  std::vector<std::uint8_t>& bytes = numbers.flags.bytes;
  if (bytes.empty()) {
    numbers.flags.low = intervals.front().low;
    bytes.resize(span + 2);
    for (const NumberInterval& i : intervals) {
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::uint64_t>(i.low) - low);
      std::fill(from, from + static_cast<std::ptrdiff_t>(i.high - i.low) + 1, std::uint8_t{1});
    }
  }
  return &numbers.flags;
}

// Values are origin + number * divisor in whole numbers, so bounds are divided as these.
std::vector<NumberInterval> PackedPredicate::find_integers(const PackedScale& scale) const {
  const bool negative = is_signed(kind_);
  const Int128 origin = negative ? Int128{static_cast<std::int64_t>(scale.origin)} : Int128{scale.origin};
  const auto divisor = static_cast<Int128>(scale.divisor);
  const WideOrderKey half = negative ? greatest_key(kind_) / 2 + 1 : 0;  // the key of 0
  const auto value = [&](WideOrderKey key) {
    // No value has 66 bits: bounds that have are as good as those next to it.
    constexpr WideOrderKey kFar = WideOrderKey{1} << 65;
    if (key >= half) return static_cast<Int128>(std::min(key - half, kFar));
    return -static_cast<Int128>(std::min(half - key, kFar));
  };
  const auto down = [&](Int128 a) { return a >= 0 ? a / divisor : -((divisor - 1 - a) / divisor); };
  std::vector<NumberInterval> found;
  for (const KeyInterval& keys : passing_) {
    const Int128 low = -down(origin - value(keys.low));
    const Int128 high = down(value(keys.high) - origin);
    if (low > high || low > kGreatest || high < kLeast) continue;
    found.push_back({static_cast<std::int64_t>(std::max<Int128>(low, kLeast)),
                     static_cast<std::int64_t>(std::min<Int128>(high, kGreatest))});
  }
  return found;
}

// Values rise with their numbers, so bounds are found by trying: no bound is ever rounded.
template <typename T>
std::vector<NumberInterval> PackedPredicate::find_floats(PackedForm form, std::uint32_t exponent) const {
  const bool decimal = form == PackedForm::kDecimal;
  const auto key_of = [&](std::int64_t n) {
    return order_key(packed_value<T>(form, exponent, scale_, static_cast<std::uint64_t>(n)));
  };
  // Of floats, places of NaNs are outside: they are at both ends, and all have the greatest key.
  constexpr std::int64_t kFirstPlace = 0x007fffff, kLastPlace = 0xff800000;
  const Int128 first = decimal ? kLeast : kFirstPlace;
  const Int128 last = decimal ? kGreatest : kLastPlace;
  const auto nan = static_cast<OrderKey<T>>(~OrderKey<T>{0});
  std::vector<NumberInterval> found;
  const auto add = [&](Int128 low, Int128 high) {
    if (low <= high) found.push_back({static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)});
  };
  if (!decimal && passes(nan)) add(0, kFirstPlace - 1);
  for (const KeyInterval& keys : passing_) {
    const Int128 low = least_number(first, last, [&](std::int64_t n) { return key_of(n) >= keys.low; });
    add(low, least_number(low, last, [&](std::int64_t n) { return key_of(n) > keys.high; }) - 1);
  }
  if (!decimal && passes(nan)) add(kLastPlace + 1, 0xffffffff);
  return found;
}

}  // namespace bamquery
