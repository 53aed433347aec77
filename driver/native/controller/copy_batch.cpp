#include "driver/native/controller/copy_batch.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bamquery {
namespace {

void copy_through_caches(std::span<const CopyItem> items) {
  for (const CopyItem& item : items) std::memcpy(item.to, item.from, item.bytes);
}

#if defined(__x86_64__)

constexpr std::uint32_t kStep = 128;

// `item.to` is a multiple of 32.
__attribute__((target("avx2"))) void stream_item(const CopyItem& item) {
  std::uint32_t at = 0;
  for (; at + kStep <= item.bytes; at += kStep) {
    const auto* const from = reinterpret_cast<const __m256i*>(item.from + at);
    auto* const to = reinterpret_cast<__m256i*>(item.to + at);
    const __m256i a = _mm256_loadu_si256(from);
    const __m256i b = _mm256_loadu_si256(from + 1);
    const __m256i c = _mm256_loadu_si256(from + 2);
    const __m256i d = _mm256_loadu_si256(from + 3);
    _mm256_stream_si256(to, a);
    _mm256_stream_si256(to + 1, b);
    _mm256_stream_si256(to + 2, c);
    _mm256_stream_si256(to + 3, d);
  }
  std::memcpy(item.to + at, item.from + at, item.bytes - at);
}

__attribute__((target("avx2"))) void copy_past_caches(std::span<const CopyItem> items) {
  for (const CopyItem& item : items) {
    if (reinterpret_cast<std::uintptr_t>(item.to) % 32 == 0) {
      stream_item(item);
    } else {
      std::memcpy(item.to, item.from, item.bytes);
    }
  }
  // Streaming stores are ordered by a fence only, not by the release store that posts the completion.
  _mm_sfence();
}

#endif

}  // namespace

void copy_batch(std::span<const CopyItem> items, [[maybe_unused]] CopyStores stores) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (stores == CopyStores::kStreaming && has_avx2) {
    copy_past_caches(items);
    return;
  }
#endif
  copy_through_caches(items);
}

}  // namespace bamquery
