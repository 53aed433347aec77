// One vector at a time, from values to payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/native/bitmap.hpp"
#include "storage/native/packed/codes.hpp"
#include "storage/native/packed/packing/distinct_bits.hpp"
#include "storage/native/packed/packing/numbers.hpp"
#include "storage/native/packed/packing/window.hpp"

namespace bamquery {

/// Packs vectors of one column, whose values are T. Keeps what it learned about where outliers pay.
template <typename T>
class VectorPacker {
 public:
  /// `exponents` are tried before all others; `never_raw`: the column's type has no raw form.
  VectorPacker(const PackedScale& scale, std::span<const std::uint8_t> exponents, bool never_raw);
  VectorPacker(const VectorPacker&) = delete;
  VectorPacker& operator=(const VectorPacker&) = delete;

  /// Appends the payload of `rows` values to `payload`, and returns its parameters.
  PackedVector pack(const T* values, Bits validity, std::uint32_t rows, std::vector<std::byte>& payload);

 private:
  /// A way to pack the vector at work.
  struct Choice {
    PackedForm form = PackedForm::kRaw;
    std::uint32_t exponent = 0;
    CodeWindow window;
    std::uint32_t slot = 0;  // of numbers_
  };

  void choose_floating();
  void scatter();
  bool try_exponents(std::span<const std::uint8_t> exponents, std::span<const T> sample);
  const VectorNumbers& consider(PackedForm form, std::uint32_t exponent);
  CodeWindow find_window(const VectorNumbers& numbers);
  bool is_search_due(std::uint32_t bits) const;
  static bool has_short_escapes(const VectorNumbers& numbers);
  std::uint32_t assign_codes(std::uint64_t& first);
  PackedVector store(std::vector<std::byte>& payload);
  PackedVector store_raw(const T* values, std::vector<std::byte>& payload) const;

  const SimdLevel level_;
  const PackedScale scale_;
  const bool never_raw_;
  std::vector<std::uint8_t> exponents_, other_exponents_;
  WindowSearch search_;
  DistinctBits distinct_;
  double gain_ = 0;               // bits a row that searches saved lately
  double usual_bits_ = 0;         // of a row
  std::uint32_t unsearched_ = 0;  // vectors since the last search

  // The vector at work.
  std::uint32_t rows_ = 0;
  bool nulls_ = false;
  Bits validity_;
  std::span<const T> values_;  // those that are not null
  Choice best_;
  std::array<T, kPackedVectorRows + 1> dense_;
  std::array<VectorNumbers, 2> numbers_;  // of the best choice, and room for the next one
  std::array<std::uint64_t, kPackedVectorRows> codes_, spread_;
};

}  // namespace bamquery
