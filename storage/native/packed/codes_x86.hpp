// codes.hpp by AVX2 and AVX-512: `groups` of eight codes, `words` of 64 of them.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>

namespace bamquery {

void unpack_avx2(const std::byte* packed, std::uint32_t bits, std::uint32_t groups, std::uint32_t* out);
void unpack_avx2(const std::byte* packed, std::uint32_t bits, std::uint32_t groups, std::uint64_t* out);
void unpack_avx512(const std::byte* packed, std::uint32_t bits, std::uint32_t groups, std::uint32_t* out);
void unpack_avx512(const std::byte* packed, std::uint32_t bits, std::uint32_t groups, std::uint64_t* out);

/// Whether code - low, modulo 2^bits, is at most `span`, of packed codes.
void packed_within_avx2(const std::byte* packed, std::uint32_t bits, std::uint32_t words, std::uint32_t low,
                        std::uint32_t span, std::uint64_t* mask);

/// Whether code - low, modulo the type, is at most `span`.
void within_avx2(const std::uint32_t* codes, std::uint32_t words, std::uint32_t low, std::uint32_t span,
                 std::uint64_t* mask);
void within_avx2(const std::uint64_t* codes, std::uint32_t words, std::uint64_t low, std::uint64_t span,
                 std::uint64_t* mask);
void within_avx512(const std::uint32_t* codes, std::uint32_t words, std::uint32_t low, std::uint32_t span,
                   std::uint64_t* mask);
void within_avx512(const std::uint64_t* codes, std::uint32_t words, std::uint64_t low, std::uint64_t span,
                   std::uint64_t* mask);

}  // namespace bamquery

#endif
