// Which block a benchmark's client asks for next: a function of the seed, the client and the count, so that
// lanes and threads need no state, and runs repeat.
#pragma once

#include "driver/core/bench/content.hpp"
#include "driver/core/platform.hpp"

#if !defined(__CUDACC__)
#include <cmath>
#endif

namespace bamquery {

#if !defined(__CUDACC__)
using std::exp;
using std::expm1;
using std::fabs;
using std::log;
using std::log1p;
#endif

/// SplitMix64: a counter through a mixer.
struct RandomStream {
  uint64_t state;

  BAMQUERY_CORE static RandomStream of(uint64_t seed, uint64_t client, uint64_t count) {
    return {mix_bits(mix_bits(mix_bits(seed) + client) + count)};
  }
  BAMQUERY_CORE uint64_t bits() { return mix_bits(state += 0x9e3779b97f4a7c15u); }
  /// In [0, 1).
  BAMQUERY_CORE double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// In [0, limit); the bias, limit ÷ 2^32 at most, is far below what a run can see.
  BAMQUERY_CORE uint64_t below(uint64_t limit) {
    return limit >> 32 == 0 ? ((bits() >> 32) * limit) >> 32 : bits() % limit;
  }
};

/// Ranks 1 to n with probability proportional to rank^-theta, by rejection-inversion (W. Hörmann and
/// G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM
/// TOMACS 6(3), 1996): constant time and memory for any n and any theta > 0, 1 included.
struct ZipfSampler {
  uint64_t ranks;
  double theta;
  double first_integral;
  double last_integral;
  double squeeze;

  BAMQUERY_CORE static ZipfSampler of(uint64_t ranks, double theta) {
    ZipfSampler zipf{ranks, theta, 0, 0, 0};
    zipf.first_integral = zipf.integral(1.5) - 1;
    zipf.last_integral = zipf.integral(static_cast<double>(ranks) + 0.5);
    zipf.squeeze = 2 - zipf.inverse(zipf.integral(2.5) - zipf.density(2));
    return zipf;
  }

  BAMQUERY_CORE uint64_t rank(RandomStream& random) const {
    // About one draw in ten is refused for the worst theta; the bound only keeps rounding from looping.
    for (int tries = 0; tries < 64; ++tries) {
      const double area = last_integral + random.unit() * (first_integral - last_integral);
      const double x = inverse(area);
      uint64_t rank = x < 1 ? 1 : static_cast<uint64_t>(x + 0.5);
      if (rank > ranks) rank = ranks;
      const double nearest = static_cast<double>(rank);
      if (nearest - x <= squeeze || area >= integral(nearest + 0.5) - density(nearest)) return rank;
    }
    return 1;
  }

 private:
  /// Integral of x^-theta from 1 to x.
  BAMQUERY_CORE double integral(double x) const {
    const double logarithm = log(x);
    return expm1_ratio((1 - theta) * logarithm) * logarithm;
  }
  BAMQUERY_CORE double density(double x) const { return exp(-theta * log(x)); }
  BAMQUERY_CORE double inverse(double area) const {
    double t = area * (1 - theta);
    if (t < -1) t = -1;  // rounding
    return exp(log1p_ratio(t) * area);
  }
  /// (e^x - 1) / x, also where x is (almost) 0.
  BAMQUERY_CORE static double expm1_ratio(double x) {
    return fabs(x) > 1e-8 ? expm1(x) / x : 1 + x / 2 * (1 + x / 3);
  }
  /// log(1 + x) / x.
  BAMQUERY_CORE static double log1p_ratio(double x) {
    return fabs(x) > 1e-8 ? log1p(x) / x : 1 - x * (0.5 - x / 3);
  }
};

/// A bijection of [0, count) that puts neighbours far apart: hot ranks should not share pages.
struct Scatter {
  uint64_t count;
  uint64_t seed;
  uint32_t bits;

  BAMQUERY_CORE static Scatter of(uint64_t count, uint64_t seed) {
    uint32_t bits = 1;
    while (count > 1 && (count - 1) >> bits != 0) ++bits;
    return {count, mix_bits(seed), bits};
  }

  /// Steps of one cycle of a bijection of [0, 2^bits) until one lies below `count`, as at least the step back
  /// to the beginning does.
  BAMQUERY_CORE uint64_t place(uint64_t rank) const {
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    uint64_t x = rank;
    do {
      x = ((x + seed) * 0xd1342543de82ef95u) & mask;
      x ^= x >> (bits / 2 + 1);
      x = (x * 0x9e3779b97f4a7c15u) & mask;
      x ^= x >> (bits / 2 + 1);
    } while (x >= count);
    return x;
  }
};

enum class AccessOrder : uint32_t { kSequential, kRandom, kZipf };

/// Blocks 0 to blocks - 1 in some order; trivially copyable, made by the host.
struct AccessPattern {
  AccessOrder order;
  uint64_t blocks;
  uint64_t clients;
  uint64_t seed;
  ZipfSampler zipf;
  Scatter scatter;

  BAMQUERY_CORE static AccessPattern of(AccessOrder order, uint64_t blocks, uint64_t clients, uint64_t seed,
                                        double theta) {
    return {order, blocks, clients, seed, ZipfSampler::of(blocks, theta), Scatter::of(blocks, seed)};
  }

  /// The block that `client` asks for as its `count`th.
  BAMQUERY_CORE uint64_t block(uint64_t client, uint64_t count) const {
    if (order == AccessOrder::kSequential) {
      const uint64_t first = client * blocks / clients;
      const uint64_t share = (client + 1) * blocks / clients - first;
      return share == 0 ? client % blocks : first + count % share;
    }
    RandomStream random = RandomStream::of(seed, client, count);
    if (order == AccessOrder::kRandom) return random.below(blocks);
    return scatter.place(zipf.rank(random) - 1);
  }
};
static_assert(sizeof(AccessPattern) == 96);  // The same on both sides: hosts hand it to kernels as bytes.

}  // namespace bamquery
