// Sums, counts and extremes of a program's registers, a group each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "driver/native/memory/large_vector.hpp"
#include "engine/native/pipeline/registers.hpp"

namespace bamquery {

__extension__ typedef __int128 WideSum;

enum class AggregateKind : std::uint8_t {
  kCount = 0,       ///< Rows that are not null; of no register all.
  kSum = 1,         ///< Of words, in 128 bits.
  kSumDoubles = 2,  ///< In the rows' order.
  kLeast = 3,
  kGreatest = 4,
  kLeastDouble = 5,  ///< NaN is the greatest number; of equal ones the first.
  kGreatestDouble = 6,
};
inline constexpr std::uint8_t kAggregateKinds = 7;

/// One aggregate: of register `argument` (-1: of rows), where flag `filter` is true (-1: of all rows).
struct AggregateStep {
  AggregateKind kind;
  std::int32_t argument;
  std::int32_t filter;
};

/// What came of an aggregate, a group each. Values of groups without a counted row are 0.
struct AggregateState {
  LargeVector<std::int64_t> counts;  ///< Rows that counted.
  LargeVector<std::int64_t> values;  ///< Words of extremes and of sums of doubles.
  LargeVector<std::int64_t> narrow;  ///< Sums of words, unless these are in `sums`.
  LargeVector<WideSum> sums;
  std::uint64_t narrow_bound = 0;  ///< Of the absolute values of what is in `narrow`: 2^62 at most.

  /// That of no rows.
  static AggregateState of_none(AggregateKind kind, std::int64_t groups);

  /// From now on there are so many groups.
  void resize(std::int64_t groups);

  /// Takes in that of later rows, of another kind than sums of doubles. `numbers`: the number here of each
  /// group there.
  void add(AggregateKind kind, const AggregateState& other, std::span<const std::uint32_t> numbers);
  /// The same where group 0 there is number `first` here, and so on.
  void add(AggregateKind kind, const AggregateState& other, std::size_t first);
};

/// Counts rows by group, for all aggregates together.
class RowCounter {
 public:
  explicit RowCounter(std::int64_t groups);

  /// From now on there are so many groups, no fewer than before.
  void grow(std::int64_t groups);

  /// As `Aggregator::add`.
  void add(const std::uint32_t* codes, std::int32_t count);
  LargeVector<std::int64_t> finish();

 private:
  std::uint32_t lanes_;
  LargeVector<std::int64_t> counts_;
};

/// Takes in rows vector by vector.
class Aggregator {
 public:
  Aggregator(const AggregateStep& step, std::int64_t groups);

  /// From now on there are so many groups, no fewer than before.
  void grow(std::int64_t groups);

  /// `codes`: each row's group, below the number of groups; null: all are group 0.
  void add(const Register* registers, const std::uint32_t* codes, std::int32_t count);
  /// `rows`: how many each group has, whether they count or not.
  AggregateState finish(const LargeVector<std::int64_t>& rows);

 private:
  void count_dropped(const std::uint8_t* kept, const std::uint32_t* codes, std::int32_t count);
  void one_lane();
  void flush();
  LargeVector<WideSum>& wide_sums();
  void add_words(const std::int64_t* words, const std::uint32_t* codes, std::int32_t count);
  void add_doubles(const std::int64_t* words, const std::uint32_t* codes, std::int32_t count);
  void add_extremes(const std::int64_t* words, const std::uint8_t* kept, const std::uint32_t* codes,
                    std::int32_t count);

  AggregateStep step_;
  std::int64_t groups_;
  std::uint32_t lanes_;  // copies of each group's numbers, since rows in a row mostly are of one group
  LargeVector<std::int64_t> dropped_;  // rows of each group that do not count; empty where all do
  LargeVector<std::int64_t> values_;
  LargeVector<std::int64_t> narrow_;  // what is not in `sums_` yet, which cannot overflow
  std::uint64_t narrow_bound_ = 0;    // of the absolute values of what is in them
  LargeVector<WideSum> sums_;         // empty as long as `narrow_` was enough
  LargeVector<std::uint8_t> seen_;    // of extremes: groups that have one
};

}  // namespace bamquery
