// Statistics and checksums of vectors, computed while a column is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "storage/native/bitmap.hpp"

namespace bamquery {

inline constexpr std::int64_t kVectorRows = 1024;  // bamquery.storage.format.layout.VECTOR_ROWS

/// How the bytes of a value compare.
enum class ValueKind : std::uint8_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat32,
  kFloat64,
  kInt128,  ///< Decimals: two's complement, least significant byte first.
  kBool,    ///< Bits; minimum and maximum are bytes, 0 or 1.
};

/// Where the results for each vector go; `minima` and `maxima` have one value of the kind's width a vector,
/// zero where a vector has no value to compare.
struct VectorStatistics {
  std::byte* minima;
  std::byte* maxima;
  std::uint16_t* null_counts;
  std::uint16_t* nan_counts;
  std::uint32_t* values_crcs;
};

/// Statistics of the vectors that `rows` rows make. NaN is left out of minimum and maximum; a minimum of zero
/// is -0.0 and a maximum of zero +0.0, whichever signs there were. `values` and `validity` (null: no nulls)
/// start with the first row and are canonical: zero under nulls, clear behind the last row.
void vector_statistics(ValueKind kind, const std::byte* values, const std::uint8_t* validity,
                       std::int64_t rows, const VectorStatistics& out);

inline constexpr std::size_t kPrefixBytes = 16;
inline constexpr std::uint8_t kNoPrefix = 255;

/// As VectorStatistics, for strings: prefixes of up to 16 bytes, each in a 16-byte cell with its length
/// beside. A minimum is a lower bound. A maximum is an upper bound: where cut, its last character is raised
/// by one. The length is kNoPrefix where a vector has no value, or no bound fits (a maximum of bytes 0xFF).
struct StringStatistics {
  std::byte* minima;
  std::uint8_t* minimum_lengths;
  std::byte* maxima;
  std::uint8_t* maximum_lengths;
  std::uint16_t* null_counts;
  std::uint32_t* values_crcs;
  std::uint32_t* offsets_crcs;  ///< Over a vector's rows + 1 offsets as stored.
};

/// `offsets` has rows + 1 entries; `data` starts with byte `data_start` of what they count. With `utf8`,
/// prefixes are cut between characters, and the first row that is not UTF-8 is returned; -1 if there is none.
std::int64_t string_statistics(std::span<const std::int64_t> offsets, const std::byte* data,
                               std::int64_t data_start, const std::uint8_t* validity, bool utf8,
                               const StringStatistics& out);

/// CRC-32C of every run that cutting `data` each `stride` bytes makes; every run is `overlap` bytes longer
/// than that, so long as there is data.
void strided_crcs(std::span<const std::byte> data, std::size_t stride, std::size_t overlap,
                  std::uint32_t* crcs);

}  // namespace bamquery
