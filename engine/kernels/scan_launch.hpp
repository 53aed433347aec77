// What kernels of the scan are launched with: so many threads, and the type of the column they are compiled
// for.
#pragma once

#include "driver/core/platform.hpp"

#if !defined(BAMQUERY_SCAN_TYPE)
#define BAMQUERY_SCAN_TYPE double
#endif

namespace bamquery {

inline constexpr uint32_t kThreads = 256;  ///< Of a thread block: THREADS of the launcher.
inline constexpr uint32_t kWarps = kThreads / 32;

}  // namespace bamquery
