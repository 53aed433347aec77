// Which vector instructions packed columns are read and written with.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

// Function attributes: the loops within are compiled for those instructions, whatever the build's are.
#if defined(__x86_64__)
#define BAMQUERY_AVX2 __attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt")))
#define BAMQUERY_AVX512 \
  __attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))
#endif

namespace bamquery {

/// On aarch64 there is kBaseline only, whose loops compilers turn into NEON; results are the same everywhere.
enum class SimdLevel : std::uint8_t { kBaseline, kAvx2, kAvx512 };

/// What this processor has, least first.
std::vector<SimdLevel> simd_levels();

/// The level in use: this processor's last, unless `use_simd_level` said another.
SimdLevel simd_level();

/// For tests and benchmarks. The level must be one of `simd_levels`.
void use_simd_level(SimdLevel level);

std::string_view simd_level_name(SimdLevel level);

}  // namespace bamquery
