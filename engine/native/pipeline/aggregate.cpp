#include "engine/native/pipeline/aggregate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "engine/native/pipeline/validity.hpp"

namespace bamquery {
namespace {

// Groups up to which four copies of their numbers lie in the first cache.
constexpr std::int64_t kFewGroups = 256;
constexpr std::uint32_t kLanes = 4;
// Words below are added up in 64 bits for a while, up to a bound of what their absolute values come to.
constexpr std::uint64_t kNarrowWords = std::uint64_t{1} << 50;
constexpr std::uint64_t kMostNarrow = std::uint64_t{1} << 62;

// Words in two halves, which cannot overflow: 1,024 of 32 bits each.
BAMQUERY_CLONES WideSum sum_words(const std::int64_t* words, std::int32_t count) {
  std::int64_t low = 0, high = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    low += words[i] & 0xffffffff;
    high += words[i] >> 32;
  }
  return (static_cast<WideSum>(high) << 32) + low;
}

// A bound of absolute values, at most twice as large: 2^64 - 1 where they may be anything.
BAMQUERY_CLONES std::uint64_t bound_words(const std::int64_t* words, std::int32_t count) {
  std::uint64_t bits = 0;
  for (std::int32_t i = 0; i < count; ++i) bits |= static_cast<std::uint64_t>(words[i] ^ (words[i] >> 63));
  const auto width = static_cast<int>(std::bit_width(bits));
  return width >= 63 ? ~std::uint64_t{0} : std::uint64_t{1} << width;
}

BAMQUERY_CLONES std::int64_t count_flags(const std::uint8_t* flags, std::int32_t count) {
  std::int64_t found = 0;
  for (std::int32_t i = 0; i < count; ++i) found += flags[i];
  return found;
}

bool precedes(AggregateKind kind, std::int64_t one, std::int64_t other) {
  const auto a = std::bit_cast<double>(one), b = std::bit_cast<double>(other);
  switch (kind) {
    case AggregateKind::kLeast:
      return one < other;
    case AggregateKind::kGreatest:
      return one > other;
    case AggregateKind::kLeastDouble:
      return (a < b) | ((a == a) & (b != b));
    default:
      return (a > b) | ((a != a) & (b == b));
  }
}

// `number_of`: the number here of a group there.
template <typename NumberOf>
void add_state(AggregateKind kind, AggregateState& state, const AggregateState& other, NumberOf&& number_of) {
  for (std::size_t from = 0; from < other.values.size(); ++from) {
    if (other.counts[from] == 0) continue;
    const std::size_t group = number_of(from);
    if (state.counts[group] == 0 || precedes(kind, other.values[from], state.values[group])) {
      state.values[group] = other.values[from];
    }
  }
  for (std::size_t from = 0; from < other.counts.size(); ++from)
    state.counts[number_of(from)] += other.counts[from];
  if (kind != AggregateKind::kSum) return;
  const bool stays_narrow =
      state.sums.empty() && other.sums.empty() && state.narrow_bound + other.narrow_bound <= kMostNarrow;
  if (stays_narrow) {
    state.narrow_bound += other.narrow_bound;
    for (std::size_t from = 0; from < other.narrow.size(); ++from) {
      state.narrow[number_of(from)] += other.narrow[from];
    }
    return;
  }
  if (state.sums.empty()) {
    state.sums.assign(state.narrow.begin(), state.narrow.end());
    state.narrow = {};
  }
  for (std::size_t from = 0; from < other.narrow.size(); ++from)
    state.sums[number_of(from)] += other.narrow[from];
  for (std::size_t from = 0; from < other.sums.size(); ++from)
    state.sums[number_of(from)] += other.sums[from];
}

}  // namespace

AggregateState AggregateState::of_none(AggregateKind kind, std::int64_t groups) {
  const auto all = static_cast<std::size_t>(groups);
  AggregateState state;
  state.counts.resize(all);
  if (kind == AggregateKind::kSum) {
    state.narrow.resize(all);
  } else if (kind != AggregateKind::kCount) {
    state.values.resize(all);
  }
  return state;
}

void AggregateState::resize(std::int64_t groups) {
  const auto all = static_cast<std::size_t>(groups);
  counts.resize(all);
  if (!values.empty()) values.resize(all);
  if (!narrow.empty()) narrow.resize(all);
  if (!sums.empty()) sums.resize(all);
}

void AggregateState::add(AggregateKind kind, const AggregateState& other,
                         std::span<const std::uint32_t> numbers) {
  add_state(kind, *this, other, [&](std::size_t group) { return numbers[group]; });
}

void AggregateState::add(AggregateKind kind, const AggregateState& other, std::size_t first) {
  add_state(kind, *this, other, [&](std::size_t group) { return first + group; });
}

RowCounter::RowCounter(std::int64_t groups)
    : lanes_(groups <= kFewGroups ? kLanes : 1), counts_(static_cast<std::size_t>(groups) * lanes_) {}

void RowCounter::grow(std::int64_t groups) {
  if (groups > kFewGroups && lanes_ > 1) {
    counts_ = finish();
    lanes_ = 1;
  }
  counts_.resize(static_cast<std::size_t>(groups) * lanes_);
}

void RowCounter::add(const std::uint32_t* codes, std::int32_t count) {
  if (codes == nullptr) {
    counts_[0] += count;
    return;
  }
  std::int64_t* const counts = counts_.data();
  if (lanes_ == 1) {
    for (std::int32_t i = 0; i < count; ++i) ++counts[codes[i]];
    return;
  }
  std::int32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    ++counts[std::size_t{codes[i]} * kLanes];
    ++counts[std::size_t{codes[i + 1]} * kLanes + 1];
    ++counts[std::size_t{codes[i + 2]} * kLanes + 2];
    ++counts[std::size_t{codes[i + 3]} * kLanes + 3];
  }
  for (; i < count; ++i) ++counts[std::size_t{codes[i]} * kLanes];
}

LargeVector<std::int64_t> RowCounter::finish() {
  if (lanes_ == 1) return std::move(counts_);
  LargeVector<std::int64_t> found(counts_.size() / lanes_);
  for (std::size_t place = 0; place < counts_.size(); ++place) found[place / lanes_] += counts_[place];
  return found;
}

Aggregator::Aggregator(const AggregateStep& step, std::int64_t groups)
    : step_(step), groups_(groups), lanes_(groups <= kFewGroups ? kLanes : 1) {
  const auto all = static_cast<std::size_t>(groups);
  if (step.kind == AggregateKind::kSum) {
    narrow_.resize(all * lanes_);
  } else if (step.kind != AggregateKind::kCount) {
    // Doubles are added in the rows' order, and what comes first among equals stays.
    values_.resize(all);
    seen_.resize(all);
  }
}

void Aggregator::grow(std::int64_t groups) {
  const auto all = static_cast<std::size_t>(groups);
  groups_ = groups;
  if (!dropped_.empty()) dropped_.resize(all);
  if (step_.kind == AggregateKind::kSum) {
    if (!sums_.empty()) sums_.resize(all);
    if (groups > kFewGroups) one_lane();
    narrow_.resize(all * lanes_);
  } else if (step_.kind != AggregateKind::kCount) {
    values_.resize(all);
    seen_.resize(all);
  }
}

void Aggregator::add(const Register* registers, const std::uint32_t* codes, std::int32_t count) {
  const Register* const argument = step_.argument < 0 ? nullptr : &registers[step_.argument];
  const Register* const filter = step_.filter < 0 ? nullptr : &registers[step_.filter];
  const std::uint8_t* kept = argument == nullptr || argument->all_valid ? nullptr : argument->valid.data();
  const bool looks = step_.kind != AggregateKind::kCount;  // at values: there may be flags only
  const std::int64_t* words = looks ? argument->words.data() : nullptr;
  std::array<std::uint8_t, kProgramRows> both;
  std::array<std::int64_t, kProgramRows> chosen;
  if (filter != nullptr) {
    const auto rows = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < rows; ++i) {
      both[i] = static_cast<std::uint8_t>(filter->flags[i] & (kept == nullptr ? 1 : kept[i]));
    }
    if (words != nullptr) {
      for (std::size_t i = 0; i < rows; ++i) chosen[i] = words[i] & -static_cast<std::int64_t>(both[i]);
      words = chosen.data();
    }
    kept = both.data();
  }
  // Rows that do not count have 0, which changes no sum; a sum of doubles begins with 0.0, so no zero's sign.
  switch (step_.kind) {
    case AggregateKind::kCount:
      break;
    case AggregateKind::kSum:
      add_words(words, codes, count);
      break;
    case AggregateKind::kSumDoubles:
      add_doubles(words, codes, count);
      break;
    default:
      add_extremes(words, kept, codes, count);
  }
  if (kept != nullptr) count_dropped(kept, codes, count);
}

void Aggregator::count_dropped(const std::uint8_t* kept, const std::uint32_t* codes, std::int32_t count) {
  if (dropped_.empty()) dropped_.resize(static_cast<std::size_t>(groups_));
  if (codes == nullptr) {
    dropped_[0] += count - count_flags(kept, count);
    return;
  }
  std::int64_t* const dropped = dropped_.data();
  for (std::int32_t i = 0; i < count; ++i) dropped[codes[i]] += 1 - kept[i];
}

void Aggregator::add_words(const std::int64_t* words, const std::uint32_t* codes, std::int32_t count) {
  if (codes == nullptr) {
    wide_sums()[0] += sum_words(words, count);
    return;
  }
  const std::uint64_t most = bound_words(words, count);
  if (most >= kNarrowWords) {
    LargeVector<WideSum>& sums = wide_sums();
    for (std::int32_t i = 0; i < count; ++i) sums[codes[i]] += words[i];
    return;
  }
  if (narrow_bound_ + most * kProgramRows > kMostNarrow) flush();
  narrow_bound_ += most * kProgramRows;
  std::int64_t* const sums = narrow_.data();
  if (lanes_ == 1) {
    for (std::int32_t i = 0; i < count; ++i) sums[codes[i]] += words[i];
    return;
  }
  // Rows next to each other mostly are of one group: each of four has a sum of its own to wait for.
  std::int32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    sums[std::size_t{codes[i]} * kLanes] += words[i];
    sums[std::size_t{codes[i + 1]} * kLanes + 1] += words[i + 1];
    sums[std::size_t{codes[i + 2]} * kLanes + 2] += words[i + 2];
    sums[std::size_t{codes[i + 3]} * kLanes + 3] += words[i + 3];
  }
  for (; i < count; ++i) sums[std::size_t{codes[i]} * kLanes] += words[i];
}

void Aggregator::one_lane() {
  if (lanes_ == 1) return;
  for (std::size_t place = 0; place < narrow_.size(); ++place) {
    const std::int64_t sum = narrow_[place];
    narrow_[place] = 0;
    narrow_[place / lanes_] += sum;
  }
  narrow_.resize(narrow_.size() / lanes_);
  lanes_ = 1;
}

LargeVector<WideSum>& Aggregator::wide_sums() {
  if (sums_.empty()) sums_.resize(static_cast<std::size_t>(groups_));
  return sums_;
}

void Aggregator::flush() {
  LargeVector<WideSum>& sums = wide_sums();
  for (std::size_t place = 0; place < narrow_.size(); ++place) {
    sums[place / lanes_] += narrow_[place];
    narrow_[place] = 0;
  }
  narrow_bound_ = 0;
}

void Aggregator::add_doubles(const std::int64_t* words, const std::uint32_t* codes, std::int32_t count) {
  auto* const sums = values_.data();
  if (codes == nullptr) {
    double sum = std::bit_cast<double>(sums[0]);
    for (std::int32_t i = 0; i < count; ++i) sum += std::bit_cast<double>(words[i]);
    sums[0] = std::bit_cast<std::int64_t>(sum);
    return;
  }
  for (std::int32_t i = 0; i < count; ++i) {
    auto& sum = sums[codes[i]];
    sum = std::bit_cast<std::int64_t>(std::bit_cast<double>(sum) + std::bit_cast<double>(words[i]));
  }
}

void Aggregator::add_extremes(const std::int64_t* words, const std::uint8_t* kept, const std::uint32_t* codes,
                              std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) {
    if (kept != nullptr && kept[i] == 0) continue;
    const std::size_t group = codes == nullptr ? 0 : codes[i];
    if (seen_[group] == 0 || precedes(step_.kind, words[i], values_[group])) values_[group] = words[i];
    seen_[group] = 1;
  }
}

AggregateState Aggregator::finish(const LargeVector<std::int64_t>& rows) {
  AggregateState state;
  if (!sums_.empty()) {
    flush();
  } else {
    one_lane();
    state.narrow = std::move(narrow_);
    state.narrow_bound = narrow_bound_;
  }
  state.counts = rows;
  for (std::size_t group = 0; group < dropped_.size(); ++group) state.counts[group] -= dropped_[group];
  state.values = std::move(values_);
  state.sums = std::move(sums_);
  return state;
}

}  // namespace bamquery
