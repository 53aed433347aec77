#include "storage/native/packed/simd_level.hpp"

#include <atomic>

namespace bamquery {
namespace {

std::atomic<SimdLevel>& level_in_use() {
  static std::atomic<SimdLevel> level{simd_levels().back()};
  return level;
}

}  // namespace

std::vector<SimdLevel> simd_levels() {
  std::vector<SimdLevel> levels{SimdLevel::kBaseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    levels.push_back(SimdLevel::kAvx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi")) {
      levels.push_back(SimdLevel::kAvx512);
    }
  }
#endif
  return levels;
}

SimdLevel simd_level() { return level_in_use().load(std::memory_order_relaxed); }

void use_simd_level(SimdLevel level) { level_in_use().store(level, std::memory_order_relaxed); }

std::string_view simd_level_name(SimdLevel level) {
  switch (level) {
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
    default:
      return "baseline";
  }
}

}  // namespace bamquery
