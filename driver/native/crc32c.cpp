#include "driver/native/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace bamquery {
namespace {

// Tables and words below are read in memory order.
static_assert(std::endian::native == std::endian::little, "Arrow files are written in little-endian order");

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed

constexpr std::array<std::array<std::uint32_t, 256>, 8> make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t slice = 1; slice < 8; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

std::uint64_t load_word(const std::byte* data) {
  std::uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

#if defined(__x86_64__)
#define BAMQUERY_CRC_TARGET __attribute__((target("sse4.2")))
BAMQUERY_CRC_TARGET inline std::uint64_t step8(std::uint64_t crc, std::uint64_t word) {
  return _mm_crc32_u64(crc, word);
}
BAMQUERY_CRC_TARGET inline std::uint64_t step1(std::uint64_t crc, std::byte byte) {
  return _mm_crc32_u8(static_cast<std::uint32_t>(crc), static_cast<std::uint8_t>(byte));
}
bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__aarch64__)
#define BAMQUERY_CRC_TARGET __attribute__((target("+crc")))
BAMQUERY_CRC_TARGET inline std::uint64_t step8(std::uint64_t crc, std::uint64_t word) {
  return __crc32cd(static_cast<std::uint32_t>(crc), word);
}
BAMQUERY_CRC_TARGET inline std::uint64_t step1(std::uint64_t crc, std::byte byte) {
  return __crc32cb(static_cast<std::uint32_t>(crc), static_cast<std::uint8_t>(byte));
}
bool has_instruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#else
#define BAMQUERY_CRC_TARGET
inline std::uint64_t step8(std::uint64_t crc, std::uint64_t word) {
  return crc32c_portable(std::as_bytes(std::span(&word, 1)), ~static_cast<std::uint32_t>(crc)) ^ 0xFFFFFFFF;
}
inline std::uint64_t step1(std::uint64_t crc, std::byte byte) {
  return crc32c_portable(std::span(&byte, 1), ~static_cast<std::uint32_t>(crc)) ^ 0xFFFFFFFF;
}
bool has_instruction() { return false; }
#endif

const bool kHasInstruction = has_instruction();

BAMQUERY_CRC_TARGET std::uint32_t crc32c_hardware(std::span<const std::byte> data, std::uint32_t seed) {
  std::uint64_t crc = ~seed;
  const std::byte* at = data.data();
  std::size_t left = data.size();
  for (; left >= 8; left -= 8, at += 8) crc = step8(crc, load_word(at));
  for (; left > 0; --left, ++at) crc = step1(crc, *at);
  return ~static_cast<std::uint32_t>(crc);
}

BAMQUERY_CRC_TARGET void crc32c_four_hardware(const std::byte* const runs[4], std::size_t length,
                                              std::uint32_t crcs[4]) {
  std::uint64_t a = 0xFFFFFFFF, b = a, c = a, d = a;
  std::size_t at = 0;
  for (; at + 8 <= length; at += 8) {
    a = step8(a, load_word(runs[0] + at));
    b = step8(b, load_word(runs[1] + at));
    c = step8(c, load_word(runs[2] + at));
    d = step8(d, load_word(runs[3] + at));
  }
  for (; at < length; ++at) {
    a = step1(a, runs[0][at]);
    b = step1(b, runs[1][at]);
    c = step1(c, runs[2][at]);
    d = step1(d, runs[3][at]);
  }
  crcs[0] = ~static_cast<std::uint32_t>(a);
  crcs[1] = ~static_cast<std::uint32_t>(b);
  crcs[2] = ~static_cast<std::uint32_t>(c);
  crcs[3] = ~static_cast<std::uint32_t>(d);
}

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  const std::byte* at = data.data();
  std::size_t left = data.size();
  for (; left >= 8; left -= 8, at += 8) {
    const std::uint64_t word = load_word(at) ^ crc;
    crc = 0;
    for (std::size_t slice = 0; slice < 8; ++slice) crc ^= kTables[7 - slice][(word >> (8 * slice)) & 0xFF];
  }
  for (; left > 0; --left, ++at)
    crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xFF];
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed) {
  return kHasInstruction ? crc32c_hardware(data, seed) : crc32c_portable(data, seed);
}

void crc32c_four(const std::byte* const runs[4], std::size_t length, std::uint32_t crcs[4]) {
  if (kHasInstruction) return crc32c_four_hardware(runs, length, crcs);
  for (std::size_t run = 0; run < 4; ++run) crcs[run] = crc32c_portable({runs[run], length});
}

}  // namespace bamquery
