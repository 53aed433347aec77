// Packed columns at every level of instructions, for sanitizers: buffers end where their bytes do.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "storage/native/packed/decode.hpp"
#include "storage/native/packed/packing/pack.hpp"
#include "storage/native/packed/packing/sample.hpp"
#include "storage/native/packed/selecting/compare.hpp"
#include "storage/native/packed/selecting/pick.hpp"
#include "storage/native/packed/selecting/take.hpp"
#include "tests/native/check.hpp"

namespace {

using namespace bamquery;

std::mt19937_64 random_bits(7);

struct KindOf {
  ValueKind kind;
  std::size_t width;
};
constexpr KindOf kKinds[] = {{ValueKind::kInt8, 1},   {ValueKind::kInt16, 2},  {ValueKind::kInt32, 4},
                             {ValueKind::kInt64, 8},  {ValueKind::kUInt8, 1},  {ValueKind::kUInt16, 2},
                             {ValueKind::kUInt32, 4}, {ValueKind::kUInt64, 8}, {ValueKind::kFloat32, 4},
                             {ValueKind::kFloat64, 8}};

// A copy on the heap that ends with the last byte, so that a sanitizer sees the next one read.
template <typename T>
std::unique_ptr<T[]> exact(const T* from, std::size_t count) {
  auto copy = std::make_unique<T[]>(count);
  std::copy(from, from + count, copy.get());
  return copy;
}

std::vector<std::int64_t> vector_rows(std::int64_t rows) {
  std::vector<std::int64_t> counts;
  for (std::int64_t first = 0; first < rows; first += kVectorRows) {
    counts.push_back(std::min(kVectorRows, rows - first));
  }
  return counts;
}

// Values of up to `bits` bits, some of them outliers of any bits.
std::vector<std::byte> make_values(const KindOf& kind, std::int64_t rows, std::uint32_t bits) {
  std::vector<std::byte> values(static_cast<std::size_t>(rows) * kind.width);
  const std::uint64_t base = random_bits();
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    std::uint64_t value = base + (random_bits() >> (64 - bits));
    if (kind.kind == ValueKind::kFloat64) {
      const double decimal = static_cast<double>(random_bits() >> (64 - bits)) / 100;
      std::memcpy(&value, &decimal, sizeof value);
    }
    if (random_bits() % 100 == 0) value = random_bits();
    std::memcpy(values.data() + row * kind.width, &value, kind.width);
  }
  return values;
}

void test_levels(const KindOf& kind, std::int64_t rows, std::uint32_t bits) {
  const std::vector<std::byte> values = make_values(kind, rows, bits);
  const auto from = exact(values.data(), values.size());
  const PackingSample sample = sample_packing(kind.kind, from.get(), nullptr, rows);
  std::vector<std::byte> first_payload;
  for (const SimdLevel writing : simd_levels()) {
    use_simd_level(writing);
    const PackedVectors packed =
        pack_vectors({kind.kind, sample.scale, sample.exponents}, from.get(), nullptr, rows);
    if (writing == SimdLevel::kBaseline) first_payload = packed.payload;
    CHECK(packed.payload == first_payload);
    std::vector<std::int64_t> starts;
    for (const PackedVector& vector : packed.vectors) starts.push_back(std::int64_t{16} * vector.offset);
    const auto counts = vector_rows(rows);
    const auto payload = exact(packed.payload.data(), packed.payload.size());
    for (const SimdLevel reading : simd_levels()) {
      use_simd_level(reading);
      auto out = std::make_unique<std::byte[]>(values.size());
      CHECK(unpack_vectors(kind.kind, {payload.get(), packed.payload.size()}, starts, packed.vectors, counts,
                           sample.scale, out.get(), nullptr) == 0);
      CHECK(std::memcmp(out.get(), values.data(), values.size()) == 0);
    }
  }
}

// Decimals of k digits behind the point, as the C library reads them, are packed as such. What divides
// wrongly would still give every value back, as an escape or raw.
void test_decimals(std::uint32_t exponent) {
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) {
    const std::string digits = std::to_string(random_bits() % 1'000'000);
    values.push_back(std::strtod((digits + "e-" + std::to_string(exponent)).c_str(), nullptr));
  }
  const auto packed = pack_vectors({ValueKind::kFloat64, {1, 0}, {}},
                                   reinterpret_cast<const std::byte*>(values.data()), nullptr, 3000);
  for (const PackedVector& vector : packed.vectors) {
    CHECK(vector.form() == PackedForm::kDecimal && vector.exponent() == exponent);
    CHECK(vector.bits == 20 && vector.escapes() == 0);
  }
}

// Whatever parameters and bytes are: an exception, or values; nothing outside is touched.
void test_hostile(const KindOf& kind) {
  const auto rows = static_cast<std::int64_t>(1 + random_bits() % 2500);
  const std::size_t bytes = random_bits() % 3 == 0 ? random_bits() % 200 * 16 : random_bits() % 3000 * 16;
  auto data = std::make_unique<std::byte[]>(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(random_bits());
  const auto counts = vector_rows(rows);
  std::vector<PackedVector> made(counts.size());
  std::vector<std::int64_t> starts;
  for (PackedVector& vector : made) {
    const std::uint64_t bits = random_bits();
    std::memcpy(&vector, &bits, sizeof bits);
    vector.base = static_cast<std::int64_t>(random_bits());
    if (random_bits() % 8 != 0) {
      vector.offset = static_cast<std::uint32_t>(random_bits() % (bytes / 16 + 2));
      vector.bits = static_cast<std::uint8_t>(random_bits() % 9 == 0 ? 64 : random_bits() % 57);
      vector.exponent_form &= 0x8f;
      vector.escapes_nulls =
          static_cast<std::uint16_t>(vector.escapes_nulls & (random_bits() % 2 == 0 ? 0xc003 : 0xc0ff));
    }
    starts.push_back(std::int64_t{16} * vector.offset);
  }
  const auto vectors = exact(made.data(), made.size());
  const std::span<const PackedVector> parameters(vectors.get(), made.size());
  const PackedScale scale{random_bits() | 1, random_bits()};
  const std::span<const std::byte> payload(data.get(), bytes);
  auto values = std::make_unique<std::byte[]>(static_cast<std::size_t>(rows) * kind.width);
  auto bitmap = std::make_unique<std::uint8_t[]>(static_cast<std::size_t>(rows + 7) / 8);
  const KeyTerm term{{{random_bits(), random_bits()}, {5, random_bits()}}, random_bits() % 2 == 0};
  try {
    unpack_vectors(kind.kind, payload, starts, parameters, counts, scale, values.get(), bitmap.get());
    PackedPredicate predicate(kind.kind, scale, std::span(&term, 1), random_bits() % 4 == 0);
    compare_packed(predicate, payload, starts, parameters, counts, bitmap.get());
    std::vector<std::int64_t> picked, taken;
    for (std::int64_t row = 0; row < rows; ++row) {
      taken.push_back(row);
      if (random_bits() % (row < 1024 ? 2 : 40) == 0) picked.push_back(row);
    }
    std::vector<std::int64_t> begins(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), std::int64_t{0});
    pick_rows(kind.kind, payload, starts, parameters, counts, begins, scale, picked, values.get(),
              bitmap.get());
    const PackedRows packed(kind.kind, parameters, rows, static_cast<std::int64_t>(bytes));
    std::vector<std::int64_t> places(taken.size());
    packed.places(taken, places.data());
    const auto load = [&](std::span<const std::int64_t> from) {
      std::vector<std::uint64_t> words;
      for (const std::int64_t place : from) {
        CHECK(place >= 0 && static_cast<std::size_t>(place) <= bytes);
        std::uint64_t word = 0;
        const auto at = static_cast<std::size_t>(place);
        std::memcpy(&word, data.get() + at, std::min<std::size_t>(8, bytes - at));
        words.push_back(word);
      }
      return words;
    };
    const auto rest = packed.unpack(taken, load(places), scale, values.get(), bitmap.get());
    packed.unpack_rest(taken, rest.positions, load(rest.places), scale, values.get(), bitmap.get());
  } catch (const std::invalid_argument&) {
    // impossible parameters
  }
}

}  // namespace

int main() {
  for (const SimdLevel level : simd_levels()) std::printf("%s\n", simd_level_name(level).data());
  for (const KindOf& kind : kKinds) {
    for (const std::int64_t rows : {1, 31, 128, 129, 1023, 1024, 1025, 2500}) {
      for (const std::uint32_t bits : {1, 3, 7, 8, 13, 24, 25, 26, 33, 48, 55, 56, 57, 63}) {
        test_levels(kind, rows, bits);
      }
    }
  }
  for (const SimdLevel level : simd_levels()) {
    use_simd_level(level);
    for (std::uint32_t exponent = 0; exponent <= kPackedMaxExponent; ++exponent) test_decimals(exponent);
    for (const KindOf& kind : kKinds) {
      for (int i = 0; i < 1000; ++i) test_hostile(kind);
    }
  }
  std::puts("all packed tests passed");
}
