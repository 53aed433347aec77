// How long things took, in buckets whose width grows with the time: an eighth of a power of two each.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace bamquery {

/// Of one thread; merged when all are done.
class LatencyHistogram {
 public:
  void add(std::uint64_t ns) {
    ++counts_[bucket(ns)];
    ++total_;
    sum_ += ns;
    max_ = std::max(max_, ns);
  }

  void merge(const LatencyHistogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
  }

  std::uint64_t total() const { return total_; }
  std::uint64_t max() const { return max_; }
  double mean() const { return total_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(total_); }

  /// An upper bound, an eighth too large at most, of what `share` (0 to 1) of all stay below.
  std::uint64_t percentile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted || (seen == total_ && total_ != 0)) return std::min(limit(i), max_);
    }
    return max_;
  }

 private:
  static constexpr unsigned kStepBits = 3;
  static constexpr std::uint64_t kSteps = 1u << kStepBits;

  static std::size_t bucket(std::uint64_t ns) {
    if (ns < kSteps) return static_cast<std::size_t>(ns);
    const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kStepBits;
    return static_cast<std::size_t>(kSteps * shift + (ns >> shift));
  }

  /// The largest time that falls into a bucket.
  static std::uint64_t limit(std::size_t bucket) {
    if (bucket < kSteps) return bucket;
    const auto shift = static_cast<unsigned>(bucket / kSteps - 1);
    const std::uint64_t first = (kSteps + bucket % kSteps) << shift;
    return first + ((std::uint64_t{1} << shift) - 1);
  }

  std::array<std::uint64_t, kSteps * (64 - kStepBits + 1)> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace bamquery
