// Counts and sums of groups of rows: exact for whole numbers, in the rows' order for doubles.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/native/keys/key_column.hpp"

namespace bamquery {

/// The group of each row, in 32 or 64 bits; without data all rows are of group 0.
struct RowGroups {
  const std::byte* data = nullptr;
  int width = 4;
  std::int64_t rows = 0;
  std::int64_t groups = 0;
};

/// Bits of a limb. Sums are kept in limbs so that adding up to 2**31 of them cannot overflow: all but the
/// highest are from 0 to below 2**32.
inline constexpr int kLimbBits = 32;

/// Counts and sums return false where a row is of no group; what they have written is of no use then.
/// Results have one entry a group and are zero before.

/// The rows of each group whose bit is set.
bool count_groups(const RowGroups& rows, Bits valid, std::int64_t* counts);

/// Sums that wrap.
bool sum_whole(const RowGroups& rows, const std::int64_t* values, std::int64_t* sums);

/// The same; `fits` says whether none has wrapped.
bool sum_checked(const RowGroups& rows, const std::int64_t* values, std::int64_t* sums, bool& fits);

/// Numbers of two words each as ones of 64 bits; false where one does not fit.
bool narrow_sums(const std::int64_t* words, std::int64_t count, std::int64_t* sums);

/// Sums of doubles, each group's in the order of its rows, from 0.0 on.
bool sum_doubles(const RowGroups& rows, const double* values, double* sums);

/// Means of pairs of doubles, and sums of products of distances from these.
struct PairMoments {
  std::int64_t* counts;
  double* mean_y;
  double* mean_x;
  double* yy;
  double* xx;
  double* xy;
};

/// Of each group; a mean of no pairs is no number. That of one number over and over is the number.
bool sum_pairs(const RowGroups& rows, const double* y, const double* x, const PairMoments& found);

/// How many limbs are enough for the sums of values of a width.
int limbs_of(int width);

/// Exact sums of the values that are not null, in as many limbs as `limbs` has.
bool sum_limbs(const RowGroups& rows, const KeyColumn& values, std::span<std::int64_t* const> limbs);

/// Sums of numbers that are in limbs already.
bool merge_limbs(const RowGroups& rows, std::span<const std::int64_t* const> values,
                 std::span<std::int64_t* const> limbs);

/// The numbers that limbs are of, `count` of them, as two words each; false where one has more than 38
/// digits.
bool join_limbs(std::span<const std::int64_t* const> limbs, std::int64_t count, std::int64_t* words);

}  // namespace bamquery
