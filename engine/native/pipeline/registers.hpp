// What a program holds of the vector that it works on.
#pragma once

#include <array>
#include <cstdint>

#include "engine/native/pipeline/instruction.hpp"

// A loop compiled for processors with and without AVX2, one of which is chosen when the module is loaded.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define BAMQUERY_CLONES [[gnu::target_clones("avx2", "default")]]
#else
#define BAMQUERY_CLONES
#endif

namespace bamquery {

/// Values of 1,024 rows: words or flags. A null row has 0.
struct Register {
  alignas(64) std::array<std::int64_t, kProgramRows> words;
  alignas(64) std::array<std::uint8_t, kProgramRows> flags;
  alignas(64) std::array<std::uint8_t, kProgramRows> valid;  ///< 1 for rows that are not null.
  bool all_valid;                                            ///< Then `valid` means nothing.
};

}  // namespace bamquery
