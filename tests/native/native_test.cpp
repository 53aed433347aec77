// The native code without Python, so that sanitizers see all of it: buffers have exactly the size that is
// allowed to be touched, and every result is compared with a simple model. Usage: native_test FOLDER

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "driver/native/crc32c.hpp"
#include "driver/native/errors.hpp"
#include "driver/native/files/block_ranges.hpp"
#include "driver/native/files/mapped_file.hpp"
#include "driver/native/files/queue_file.hpp"
#include "storage/native/bitmap.hpp"
#include "storage/native/column_copy.hpp"
#include "storage/native/statistics.hpp"
#include "storage/native/utf8.hpp"

namespace {

using namespace bamquery;
using Bytes = std::vector<std::byte>;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

std::mt19937_64 random_bits(20);

std::int64_t below(std::int64_t limit) {
  return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random_bits);
}

Bytes random_bytes(std::int64_t size) {
  Bytes bytes(static_cast<std::size_t>(size));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_bits());
  return bytes;
}

constexpr std::array<std::int64_t, 14> kSizes = {0,    1,    31,   32,   33,   127,  1023,
                                                 1024, 1025, 2047, 4096, 4097, 5000, 9000};

void test_checksums() {
  for (int turn = 0; turn < 2000; ++turn) {
    const Bytes bytes = random_bytes(below(300));
    const auto seed = static_cast<std::uint32_t>(random_bits());
    CHECK(crc32c(bytes, seed) == crc32c_portable(bytes, seed));
  }
  for (const std::size_t length : {0U, 1U, 7U, 8U, 9U, 1000U}) {
    std::array<Bytes, 4> runs;
    std::array<const std::byte*, 4> starts{};
    for (std::size_t i = 0; i < 4; ++i) {
      runs[i] = random_bytes(static_cast<std::int64_t>(length));
      starts[i] = runs[i].data();
    }
    std::array<std::uint32_t, 4> crcs{};
    crc32c_four(starts.data(), length, crcs.data());
    for (std::size_t i = 0; i < 4; ++i) CHECK(crcs[i] == crc32c_portable(runs[i]));
  }
}

void test_bitmaps() {
  for (int turn = 0; turn < 3000; ++turn) {
    const Bytes source = random_bytes(1 + below(40));
    const std::int64_t count = below(8 * static_cast<std::int64_t>(source.size()) + 1);
    const std::int64_t offset = below(8 * static_cast<std::int64_t>(source.size()) - count + 1);
    const Bits bits{reinterpret_cast<const std::uint8_t*>(source.data()), offset};
    const std::int64_t start = below(70);
    const Bytes before = random_bytes((start + count + 7) / 8);
    Bytes target = before;
    const std::int64_t set = copy_bits(bits, count, reinterpret_cast<std::uint8_t*>(target.data()), start);
    CHECK(set == count_bits(bits, count));
    const Bits old{reinterpret_cast<const std::uint8_t*>(before.data()), 0};
    const Bits copied{reinterpret_cast<const std::uint8_t*>(target.data()), 0};
    for (std::int64_t bit = 0; bit < 8 * static_cast<std::int64_t>(target.size()); ++bit) {
      CHECK(copied[bit] == (bit < start || bit >= start + count ? old[bit] : bits[bit - start]));
    }
  }
}

template <typename T>
void test_fixed_statistics(ValueKind kind) {
  for (const std::int64_t rows : kSizes) {
    for (const bool nullable : {false, true}) {
      const Bytes bytes = random_bytes(rows * static_cast<std::int64_t>(sizeof(T)));
      const Bytes bitmap = random_bytes((rows + 7) / 8);
      std::vector<T> values(static_cast<std::size_t>(rows));
      if (rows > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
      const auto* validity = nullable ? reinterpret_cast<const std::uint8_t*>(bitmap.data()) : nullptr;
      const auto vectors = static_cast<std::size_t>((rows + kVectorRows - 1) / kVectorRows);
      Bytes minima(vectors * sizeof(T)), maxima(vectors * sizeof(T));
      std::vector<std::uint16_t> nulls(vectors), nans(vectors);
      std::vector<std::uint32_t> crcs(vectors);
      vector_statistics(kind, reinterpret_cast<const std::byte*>(values.data()), validity, rows,
                        {minima.data(), maxima.data(), nulls.data(), nans.data(), crcs.data()});
      for (std::size_t vector = 0; vector < vectors; ++vector) {
        const std::int64_t first = static_cast<std::int64_t>(vector) * kVectorRows;
        const std::int64_t end = std::min(first + kVectorRows, rows);
        T low{}, high{};
        std::int64_t null = 0, nan = 0, seen = 0;
        for (std::int64_t row = first; row < end; ++row) {
          const T value = values[static_cast<std::size_t>(row)];
          if (!Bits{validity, 0}[row]) {
            ++null;
          } else if (value != value) {
            ++nan;
          } else {
            low = seen == 0 ? value : std::min(low, value);
            high = seen == 0 ? value : std::max(high, value);
            ++seen;
          }
        }
        T found_low, found_high;
        std::memcpy(&found_low, minima.data() + vector * sizeof(T), sizeof(T));
        std::memcpy(&found_high, maxima.data() + vector * sizeof(T), sizeof(T));
        CHECK(found_low == low && found_high == high);
        CHECK(nulls[vector] == null && nans[vector] == nan);
        const auto at = static_cast<std::size_t>(first) * sizeof(T);
        CHECK(crcs[vector] == crc32c_portable({reinterpret_cast<const std::byte*>(values.data()) + at,
                                               static_cast<std::size_t>(end - first) * sizeof(T)}));
      }
    }
  }
}

void test_string_statistics() {
  for (int turn = 0; turn < 300; ++turn) {
    const std::int64_t rows = kSizes[static_cast<std::size_t>(below(kSizes.size()))];
    const std::int64_t longest = 1 + below(40);
    const std::int64_t start = below(1000);
    std::vector<std::int64_t> offsets{start};
    for (std::int64_t row = 0; row < rows; ++row) offsets.push_back(offsets.back() + below(longest));
    Bytes data = random_bytes(offsets.back() - start);
    if (turn % 3 == 0) {
      for (std::byte& byte : data) byte &= std::byte{0x7F};
    } else if (turn % 3 == 1) {
      for (std::byte& byte : data) byte |= std::byte{0xF0};  // hardly anything is a character
    }
    const Bytes bitmap = random_bytes((rows + 7) / 8);
    const auto* validity = turn % 2 == 0 ? nullptr : reinterpret_cast<const std::uint8_t*>(bitmap.data());
    const auto vectors = static_cast<std::size_t>((rows + kVectorRows - 1) / kVectorRows);
    Bytes minima(vectors * kPrefixBytes), maxima(vectors * kPrefixBytes);
    std::vector<std::uint8_t> low_lengths(vectors), high_lengths(vectors);
    std::vector<std::uint16_t> nulls(vectors);
    std::vector<std::uint32_t> crcs(vectors), offset_crcs(vectors);
    const std::int64_t ill_formed =
        string_statistics(offsets, data.data(), start, validity, turn % 5 != 0,
                          {minima.data(), low_lengths.data(), maxima.data(), high_lengths.data(),
                           nulls.data(), crcs.data(), offset_crcs.data()});
    CHECK(turn % 3 != 0 || ill_formed == -1);
    const auto text = [&](const Bytes& cells, std::size_t vector, std::size_t size) {
      return std::string(reinterpret_cast<const char*>(cells.data()) + vector * kPrefixBytes, size);
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      if (!Bits{validity, 0}[row]) continue;
      const auto at = static_cast<std::size_t>(row);
      const auto vector = static_cast<std::size_t>(row / kVectorRows);
      const std::string value(reinterpret_cast<const char*>(data.data()) + (offsets[at] - start),
                              static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
      CHECK(low_lengths[vector] <= kPrefixBytes && text(minima, vector, low_lengths[vector]) <= value);
      if (high_lengths[vector] != kNoPrefix) CHECK(text(maxima, vector, high_lengths[vector]) >= value);
    }
  }
}

void test_utf8() {
  const auto valid = [](std::string_view text) { return is_utf8(std::as_bytes(std::span(text))); };
  for (const char* text :
       {"", "a", "\xC3\xA9", "\xE2\x82\xAC", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    CHECK(valid(text));
  }
  for (const char* text : {"\x80", "\xC3", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
                           "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3\x28"}) {
    CHECK(!valid(text));
  }
  for (std::int64_t size = 0; size < 40; ++size) {
    Bytes text(static_cast<std::size_t>(size), std::byte{'a'});
    CHECK(is_ascii(text));
    if (text.empty()) continue;
    text[static_cast<std::size_t>(below(size))] = std::byte{0x80};
    CHECK(!is_ascii(text));
  }
}

void test_garbage_offsets() {
  for (int turn = 0; turn < 500; ++turn) {
    const std::array<std::int64_t, 3> counts = {below(50), below(50), below(50)};
    std::vector<std::int64_t> stored;
    for (const std::int64_t count : counts) {
      for (std::int64_t row = 0; row <= count; ++row) {
        stored.push_back(turn % 2 == 0 ? static_cast<std::int64_t>(random_bits()) : below(1000));
      }
    }
    std::vector<std::int64_t> joined(static_cast<std::size_t>(counts[0] + counts[1] + counts[2]) + 1);
    std::array<std::int64_t, 3> starts{}, lengths{};
    join_offsets(stored, counts, 1000, joined.data(), starts.data(), lengths.data());
    std::vector<std::int64_t> ends(stored.size() - 1);
    for (std::int64_t& offset : stored) offset &= 0xFFFFFF;
    string_ends(stored, 1000, {}, 0, ends.data());
  }
}

std::string write_file(const std::string& folder, const Bytes& contents) {
  const std::string path = folder + "/file";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
  return path;
}

void test_reads(const BlockFile& file, const Bytes& contents) {
  const auto size = static_cast<std::int64_t>(contents.size());
  for (int turn = 0; turn < 60; ++turn) {
    std::vector<std::int64_t> offsets, lengths;
    std::vector<std::uint32_t> crcs;
    Bytes expected;
    for (int i = 0; i < 40; ++i) offsets.push_back(below(size));
    std::sort(offsets.begin(), offsets.end());
    for (const std::int64_t offset : offsets) {
      lengths.push_back(std::min(below(30'000), size - offset));
      const auto* first = contents.data() + offset;
      expected.insert(expected.end(), first, first + lengths.back());
      crcs.push_back(crc32c_portable({first, static_cast<std::size_t>(lengths.back())}));
    }
    Bytes found(expected.size());
    std::int64_t mismatch = 0;
    const ReadCounts counts = file.read_ranges({offsets, lengths}, crcs, found.data(), mismatch);
    CHECK(found == expected && mismatch == -1);
    CHECK(counts.blocks == count_blocks(RangeItems{offsets, lengths}, file.block_size()).blocks);
    crcs[17] ^= 1;
    file.read_ranges({offsets, lengths}, crcs, found.data(), mismatch);
    CHECK(mismatch == 17);

    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < size / 8; row += 1 + below(500)) rows.push_back(row);
    Bytes gathered(rows.size() * 8), bits(rows.size());
    file.gather({0, 8, 8, rows}, gathered.data());
    file.gather_bit_bytes({0, rows}, bits.data());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(std::memcmp(gathered.data() + i * 8, contents.data() + rows[i] * 8, 8) == 0);
      CHECK(bits[i] == contents[static_cast<std::size_t>(rows[i] / 8)]);
    }
  }
}

template <typename Read>
void check_truncated(const Read& read) {
  try {
    read();
    CHECK(false);
  } catch (const StorageError& error) {
    CHECK(std::string(error.what()).starts_with("truncated while in use"));
  }
}

void test_files(const std::string& folder) {
  const Bytes contents = random_bytes(3'000'001);
  const std::string path = write_file(folder, contents);
  const auto size = static_cast<std::int64_t>(contents.size());
  const MappedFile mapped(path, size, 512);
  const QueueFile direct(path, size, {.depth = 8});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::vector<std::int64_t> rows;
      for (std::int64_t row = 0; row < size / 8; row += 101) rows.push_back(row);
      for (int turn = 0; turn < 20; ++turn) {
        Bytes a(rows.size() * 8), b(rows.size() * 8);
        mapped.gather({0, 8, 8, rows}, a.data());
        direct.gather({0, 8, 8, rows}, b.data());
        CHECK(a == b);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  test_reads(mapped, contents);
  test_reads(direct, contents);

  const std::vector<std::int64_t> start = {0}, whole = {size}, rows = {0, 100, 200'000};
  Bytes target(contents.size());
  std::int64_t mismatch = 0;
  CHECK(truncate(path.c_str(), 5000) == 0);
  std::vector<const BlockFile*> files = {&direct};
#if !defined(__SANITIZE_THREAD__)  // whose runtime does not survive a jump out of a SIGBUS handler
  files.push_back(&mapped);
#endif
  for (const BlockFile* file : files) {
    check_truncated([&] { file->read_ranges({start, whole}, {}, target.data(), mismatch); });
    check_truncated([&] { file->gather({0, 8, 8, rows}, target.data()); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  test_checksums();
  test_bitmaps();
  test_fixed_statistics<std::int8_t>(ValueKind::kInt8);
  test_fixed_statistics<std::int16_t>(ValueKind::kInt16);
  test_fixed_statistics<std::int32_t>(ValueKind::kInt32);
  test_fixed_statistics<std::int64_t>(ValueKind::kInt64);
  test_fixed_statistics<std::uint8_t>(ValueKind::kUInt8);
  test_fixed_statistics<std::uint16_t>(ValueKind::kUInt16);
  test_fixed_statistics<std::uint32_t>(ValueKind::kUInt32);
  test_fixed_statistics<std::uint64_t>(ValueKind::kUInt64);
  test_fixed_statistics<float>(ValueKind::kFloat32);
  test_fixed_statistics<double>(ValueKind::kFloat64);
  test_string_statistics();
  test_utf8();
  test_garbage_offsets();
  test_files(argv[1]);
  std::puts("all native tests passed");
}
