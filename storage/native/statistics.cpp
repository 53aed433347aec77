#include "storage/native/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "driver/native/crc32c.hpp"
#include "driver/native/threads/shared_work.hpp"
#include "storage/native/utf8.hpp"

namespace bamquery {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UnsignedInt128;

template <typename T>
struct Extremes {
  T minimum;
  T maximum;
  std::int64_t nans;
  bool any;
};

template <typename T>
constexpr T kHighest =
    std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
template <typename T>
constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::lowest();
template <>
constexpr Int128 kHighest<Int128> = static_cast<Int128>(~UnsignedInt128{0} >> 1);
template <>
constexpr Int128 kLowest<Int128> = -kHighest<Int128> - 1;

// Many independent accumulators, so that compilers make vector instructions of it; `x < low ? x : low` is the
// very operation of minpd, which leaves NaN out.
template <typename T>
[[gnu::always_inline]] inline Extremes<T> find_extremes(const T* values, std::int64_t count) {
  constexpr std::int64_t kLanes = sizeof(T) > 8 ? 1 : static_cast<std::int64_t>(128 / sizeof(T));
  std::array<T, kLanes> low, high;
  low.fill(kHighest<T>);
  high.fill(kLowest<T>);
  std::int64_t nans = 0;
  std::int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const T value = values[at + lane];
      const auto l = static_cast<std::size_t>(lane);
      low[l] = value < low[l] ? value : low[l];
      high[l] = value > high[l] ? value : high[l];
      if constexpr (std::is_floating_point_v<T>) nans += value != value;
    }
  }
  for (; at < count; ++at) {
    const T value = values[at];
    low[0] = value < low[0] ? value : low[0];
    high[0] = value > high[0] ? value : high[0];
    if constexpr (std::is_floating_point_v<T>) nans += value != value;
  }
  for (std::size_t lane = 1; lane < static_cast<std::size_t>(kLanes); ++lane) {
    low[0] = low[lane] < low[0] ? low[lane] : low[0];
    high[0] = high[lane] > high[0] ? high[lane] : high[0];
  }
  return {low[0], high[0], nans, count > nans};
}

template <typename T>
using FindExtremes = Extremes<T> (*)(const T*, std::int64_t);

template <typename T>
Extremes<T> find_extremes_baseline(const T* values, std::int64_t count) {
  return find_extremes(values, count);
}

#if defined(__x86_64__)
template <typename T>
__attribute__((target("avx2"))) Extremes<T> find_extremes_avx2(const T* values, std::int64_t count) {
  return find_extremes(values, count);
}
template <typename T>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) Extremes<T> find_extremes_avx512(
    const T* values, std::int64_t count) {
  return find_extremes(values, count);
}
#endif

template <typename T>
FindExtremes<T> best_find_extremes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return find_extremes_avx512<T>;
  }
  if (__builtin_cpu_supports("avx2")) return find_extremes_avx2<T>;
#endif
  return find_extremes_baseline<T>;
}

// Moves the values that are not null together; the result needs no mask.
template <typename T>
std::int64_t compact(const T* values, Bits validity, std::int64_t count, T* kept) {
  std::int64_t size = 0;
  for (std::int64_t at = 0; at < count; at += 64) {
    const auto block = static_cast<int>(std::min<std::int64_t>(64, count - at));
    const std::uint64_t valid = validity.word(at, block);
    for (int i = 0; i < block; ++i) {
      kept[size] = values[at + i];
      size += static_cast<std::int64_t>((valid >> i) & 1);
    }
  }
  return size;
}

template <typename T>
void fixed_statistics(const T* values, const std::uint8_t* validity, std::int64_t rows,
                      const VectorStatistics& out) {
  static const FindExtremes<T> find = best_find_extremes<T>();
  std::array<T, static_cast<std::size_t>(kVectorRows) + 1>
      kept;  // one more: compact() writes before it counts
  for (std::int64_t first = 0; first < rows; first += kVectorRows) {
    const std::int64_t vector = first / kVectorRows;
    const std::int64_t count = std::min(kVectorRows, rows - first);
    const T* dense = values + first;
    std::int64_t valid = count;
    if (validity != nullptr) {
      const Bits bits{validity, first};
      valid = count_bits(bits, count);
      if (valid < count) {
        compact(dense, bits, count, kept.data());
        dense = kept.data();
      }
    }
    Extremes<T> found = find(dense, valid);
    if (!found.any) found.minimum = found.maximum = T{};
    if constexpr (std::is_floating_point_v<T>) {
      if (found.minimum == 0) found.minimum = -T{0};
      if (found.maximum == 0) found.maximum = T{0};
    }
    const auto at = static_cast<std::size_t>(vector) * sizeof(T);
    std::memcpy(out.minima + at, &found.minimum, sizeof(T));
    std::memcpy(out.maxima + at, &found.maximum, sizeof(T));
    out.null_counts[vector] = static_cast<std::uint16_t>(count - valid);
    out.nan_counts[vector] = static_cast<std::uint16_t>(found.nans);
  }
}

void bool_statistics(const std::uint8_t* values, const std::uint8_t* validity, std::int64_t rows,
                     const VectorStatistics& out) {
  for (std::int64_t first = 0; first < rows; first += kVectorRows) {
    const std::int64_t vector = first / kVectorRows;
    const std::int64_t count = std::min(kVectorRows, rows - first);
    const std::int64_t valid = count_bits({validity, first}, count);
    const std::int64_t set = count_bits({values, first}, count);  // bits under nulls are clear
    out.minima[vector] = static_cast<std::byte>(valid > 0 && set == valid);
    out.maxima[vector] = static_cast<std::byte>(set > 0);
    out.null_counts[vector] = static_cast<std::uint16_t>(count - valid);
    out.nan_counts[vector] = 0;
  }
}

// Statistics and checksum of a few vectors at a time, so that the second pass finds them in cache.
template <typename T>
void fused_statistics(const std::byte* values, const std::uint8_t* validity, std::int64_t rows,
                      const VectorStatistics& out) {
  constexpr std::int64_t kGroup = 4;
  constexpr auto kVectorBytes = static_cast<std::size_t>(kVectorRows) * sizeof(T);
  for (std::int64_t first = 0; first < rows; first += kGroup * kVectorRows) {
    const std::int64_t count = std::min(kGroup * kVectorRows, rows - first);
    const std::int64_t vector = first / kVectorRows;
    const std::byte* at = values + static_cast<std::size_t>(first) * sizeof(T);
    const auto cell = static_cast<std::size_t>(vector) * sizeof(T);
    strided_crcs({at, static_cast<std::size_t>(count) * sizeof(T)}, kVectorBytes, 0,
                 out.values_crcs + vector);
    fixed_statistics(
        reinterpret_cast<const T*>(at), validity == nullptr ? nullptr : validity + first / 8, count,
        {out.minima + cell, out.maxima + cell, out.null_counts + vector, out.nan_counts + vector, nullptr});
  }
}

constexpr std::int64_t kLeastStrings = 8 * kVectorRows;  // of a thread's part

using String = std::span<const std::byte>;

bool less(String a, String b) {
  const std::size_t common = std::min(a.size(), b.size());
  const int order = common == 0 ? 0 : std::memcmp(a.data(), b.data(), common);
  return order != 0 ? order < 0 : a.size() < b.size();
}

bool continues(std::byte byte) { return (byte & std::byte{0xC0}) == std::byte{0x80}; }

// The longest prefix of up to 16 bytes, cut between characters.
std::size_t prefix_length(String value, bool utf8) {
  if (value.size() <= kPrefixBytes) return value.size();
  std::size_t length = kPrefixBytes;
  while (utf8 && length > 0 && continues(value[length])) --length;
  return length;
}

// Raises the prefix to a bound of everything that starts with it; its new length, or kNoPrefix.
std::uint8_t raise_bytes(std::byte* prefix, std::size_t length) {
  while (length > 0 && prefix[length - 1] == std::byte{0xFF}) --length;
  if (length == 0) return kNoPrefix;
  prefix[length - 1] = static_cast<std::byte>(std::to_integer<unsigned>(prefix[length - 1]) + 1);
  return static_cast<std::uint8_t>(length);
}

// The same in whole characters, so that the bound is valid UTF-8 too. Bytes order as code points do. What is
// not UTF-8, or would need one byte more, is dropped, and the character before it raised instead.
std::uint8_t raise_utf8(std::byte* prefix, std::size_t length) {
  constexpr std::array<std::uint32_t, 5> kLead = {0, 0, 0xC0, 0xE0, 0xF0};
  constexpr std::array<std::uint32_t, 5> kLeadMask = {0, 0x80, 0xE0, 0xF0, 0xF8};
  for (std::size_t start; length > 0; length = start) {
    start = length - 1;
    while (start > 0 && continues(prefix[start])) --start;
    const std::size_t size = length - start;
    const auto lead = std::to_integer<std::uint32_t>(prefix[start]);
    if (size > 4 || (lead & kLeadMask[size]) != kLead[size]) continue;
    std::uint32_t code = lead & ~kLeadMask[size];
    for (std::size_t i = start + 1; i < length; ++i) {
      code = code << 6 | (std::to_integer<std::uint32_t>(prefix[i]) & 0x3F);
    }
    ++code;
    if (code == 0xD800) code = 0xE000;  // surrogates are no characters
    const std::size_t needed = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (code > 0x10FFFF || needed != size) continue;
    for (std::size_t i = length - 1; i > start; --i, code >>= 6) {
      prefix[i] = static_cast<std::byte>(0x80 | (code & 0x3F));
    }
    prefix[start] = static_cast<std::byte>(kLead[size] | code);
    return static_cast<std::uint8_t>(length);
  }
  return kNoPrefix;
}

void store_minimum(String value, bool utf8, std::byte* cell, std::uint8_t* length) {
  const std::size_t size = prefix_length(value, utf8);
  if (size > 0) std::memcpy(cell, value.data(), size);
  *length = static_cast<std::uint8_t>(size);
}

void store_maximum(String value, bool utf8, std::byte* cell, std::uint8_t* length) {
  store_minimum(value, utf8, cell, length);
  if (*length < value.size()) *length = utf8 ? raise_utf8(cell, *length) : raise_bytes(cell, *length);
}

}  // namespace

void vector_statistics(ValueKind kind, const std::byte* values, const std::uint8_t* validity,
                       std::int64_t rows, const VectorStatistics& out) {
  switch (kind) {
    case ValueKind::kInt8:
      return fused_statistics<std::int8_t>(values, validity, rows, out);
    case ValueKind::kInt16:
      return fused_statistics<std::int16_t>(values, validity, rows, out);
    case ValueKind::kInt32:
      return fused_statistics<std::int32_t>(values, validity, rows, out);
    case ValueKind::kInt64:
      return fused_statistics<std::int64_t>(values, validity, rows, out);
    case ValueKind::kUInt8:
      return fused_statistics<std::uint8_t>(values, validity, rows, out);
    case ValueKind::kUInt16:
      return fused_statistics<std::uint16_t>(values, validity, rows, out);
    case ValueKind::kUInt32:
      return fused_statistics<std::uint32_t>(values, validity, rows, out);
    case ValueKind::kUInt64:
      return fused_statistics<std::uint64_t>(values, validity, rows, out);
    case ValueKind::kFloat32:
      return fused_statistics<float>(values, validity, rows, out);
    case ValueKind::kFloat64:
      return fused_statistics<double>(values, validity, rows, out);
    case ValueKind::kInt128:
      return fused_statistics<Int128>(values, validity, rows, out);
    case ValueKind::kBool:
      strided_crcs({values, static_cast<std::size_t>(rows + 7) / 8},
                   static_cast<std::size_t>(kVectorRows) / 8, 0, out.values_crcs);
      return bool_statistics(reinterpret_cast<const std::uint8_t*>(values), validity, rows, out);
  }
}

namespace {

// `string_statistics` of rows that one thread looks at.
std::int64_t some_string_statistics(std::span<const std::int64_t> offsets, const std::byte* data,
                                    std::int64_t data_start, const std::uint8_t* validity, bool utf8,
                                    const StringStatistics& out) {
  const auto rows = static_cast<std::int64_t>(offsets.size()) - 1;
  strided_crcs(std::as_bytes(offsets), static_cast<std::size_t>(kVectorRows) * sizeof(std::int64_t),
               sizeof(std::int64_t), out.offsets_crcs);
  std::int64_t ill_formed = -1;
  const auto string_at = [&](std::int64_t row) {
    const std::int64_t start = offsets[static_cast<std::size_t>(row)];
    const std::int64_t end = offsets[static_cast<std::size_t>(row) + 1];
    return String{data + (start - data_start), static_cast<std::size_t>(end - start)};
  };
  for (std::int64_t first = 0; first < rows; first += kVectorRows) {
    const std::int64_t vector = first / kVectorRows;
    const std::int64_t end = std::min(first + kVectorRows, rows);
    const Bits bits{validity, 0};
    std::int64_t valid = 0;
    String minimum, maximum;
    for (std::int64_t row = first; row < end; ++row) {
      if (!bits[row]) continue;
      const String value = string_at(row);
      if (valid++ == 0) {
        minimum = maximum = value;
      } else if (less(value, minimum)) {
        minimum = value;
      } else if (less(maximum, value)) {
        maximum = value;
      }
    }
    const auto cell = static_cast<std::size_t>(vector) * kPrefixBytes;
    out.minimum_lengths[vector] = out.maximum_lengths[vector] = kNoPrefix;
    if (valid > 0) {
      store_minimum(minimum, utf8, out.minima + cell, out.minimum_lengths + vector);
      store_maximum(maximum, utf8, out.maxima + cell, out.maximum_lengths + vector);
    }
    out.null_counts[vector] = static_cast<std::uint16_t>(end - first - valid);
    const std::int64_t from = offsets[static_cast<std::size_t>(first)] - data_start;
    const std::int64_t to = offsets[static_cast<std::size_t>(end)] - data_start;
    const String bytes{data + from, static_cast<std::size_t>(to - from)};
    out.values_crcs[vector] = crc32c(bytes);
    if (utf8 && ill_formed < 0 && !is_ascii(bytes)) {
      for (std::int64_t row = first; row < end && ill_formed < 0; ++row) {
        if (!is_utf8(string_at(row))) ill_formed = row;
      }
    }
  }
  return ill_formed;
}

}  // namespace

std::int64_t string_statistics(std::span<const std::int64_t> offsets, const std::byte* data,
                               std::int64_t data_start, const std::uint8_t* validity, bool utf8,
                               const StringStatistics& out) {
  const auto rows = static_cast<std::int64_t>(offsets.size()) - 1;
  const std::int64_t parts = worth_parts(rows, kLeastStrings);
  std::vector<std::int64_t> ill_formed(static_cast<std::size_t>(parts), -1);
  share_items(rows, parts, kVectorRows, [&](std::int64_t part, std::int64_t first, std::int64_t count) {
    const std::int64_t vector = first / kVectorRows;
    const auto cell = static_cast<std::size_t>(vector) * kPrefixBytes;
    const StringStatistics own{out.minima + cell,        out.minimum_lengths + vector,
                               out.maxima + cell,        out.maximum_lengths + vector,
                               out.null_counts + vector, out.values_crcs + vector,
                               out.offsets_crcs + vector};
    const std::int64_t found = some_string_statistics(
        offsets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count) + 1), data,
        data_start, validity == nullptr ? nullptr : validity + first / 8, utf8, own);
    if (found >= 0) ill_formed[static_cast<std::size_t>(part)] = first + found;
  });
  for (const std::int64_t row : ill_formed) {
    if (row >= 0) return row;
  }
  return -1;
}

void strided_crcs(std::span<const std::byte> data, std::size_t stride, std::size_t overlap,
                  std::uint32_t* crcs) {
  std::size_t at = 0;
  for (; at + 4 * stride + overlap <= data.size(); at += 4 * stride, crcs += 4) {
    const std::byte* const first = data.data() + at;
    const std::byte* const runs[4] = {first, first + stride, first + 2 * stride, first + 3 * stride};
    crc32c_four(runs, stride + overlap, crcs);
  }
  for (; at + overlap < data.size(); at += stride, ++crcs) {
    *crcs = crc32c(data.subspan(at, std::min(stride + overlap, data.size() - at)));
  }
}

}  // namespace bamquery
