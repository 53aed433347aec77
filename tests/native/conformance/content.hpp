// Bytes that are expected: the pattern of blocks, and guards that nobody may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "tests/native/conformance/check.hpp"
#include "tests/native/conformance/pattern.hpp"

namespace bamquery::conformance {

inline constexpr unsigned char kGuard = 0xa5;

inline void fill_guard(std::span<std::byte> bytes) { std::memset(bytes.data(), kGuard, bytes.size()); }

inline void expect_guard(std::span<const std::byte> bytes, const char* which) {
  std::uint64_t guard;
  std::memset(&guard, kGuard, sizeof guard);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof guard) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    EXPECT(word == guard, std::string("byte ") + std::to_string(at) + " of " + which + " was touched");
  }
}

/// Whole blocks, from `lba` on.
inline void fill_pattern(std::uint64_t contents, std::uint64_t lba, std::uint32_t block_bytes,
                         std::span<std::byte> bytes) {
  const std::uint64_t words = block_bytes / 8;
  for (std::size_t at = 0; at < bytes.size(); ++lba) {
    for (std::uint64_t word = 0; word < words; ++word, at += 8) {
      const std::uint64_t value = pattern(contents, lba, word);
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
  }
}

inline bool has_pattern(std::uint64_t contents, std::uint64_t lba, std::uint32_t block_bytes,
                        std::span<const std::byte> bytes, std::string* wrong = nullptr) {
  const std::uint64_t words = block_bytes / 8;
  for (std::size_t at = 0; at < bytes.size(); ++lba) {
    for (std::uint64_t word = 0; word < words; ++word, at += 8) {
      std::uint64_t value;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      if (value == pattern(contents, lba, word)) continue;
      if (wrong != nullptr) {
        *wrong = "word " + std::to_string(word) + " of LBA " + std::to_string(lba) + " is " +
                 std::to_string(value) + ", not " + std::to_string(pattern(contents, lba, word));
      }
      return false;
    }
  }
  return true;
}

inline void expect_pattern(std::uint64_t contents, std::uint64_t lba, std::uint32_t block_bytes,
                           std::span<const std::byte> bytes) {
  std::string wrong;
  EXPECT(has_pattern(contents, lba, block_bytes, bytes, &wrong), wrong);
}

/// What a namespace holds in its patterned blocks.
inline void expect_pattern(const Space& space, std::uint64_t lba, std::span<const std::byte> bytes) {
  expect_pattern(space.contents, lba, space.block_bytes, bytes);
}

/// The first byte in which they differ.
inline void expect_equal(std::span<const std::byte> seen, std::span<const std::byte> expected,
                         const char* what) {
  EXPECT(seen.size() == expected.size());
  for (std::size_t at = 0; at < seen.size(); ++at) {
    if (std::memcmp(seen.data() + at, expected.data() + at, std::min<std::size_t>(4096, seen.size() - at)) ==
        0) {
      at += 4095;
      continue;
    }
    EXPECT(seen[at] == expected[at], std::string(what) + " differs at byte " + std::to_string(at));
  }
}

}  // namespace bamquery::conformance
