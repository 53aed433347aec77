// Packed columns of files as Python has them: in place of ten arguments for each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "driver/native/bindings/buffers.hpp"
#include "driver/native/bindings/shared_file.hpp"
#include "storage/native/packed/selecting/fetch.hpp"
#include "storage/native/packed/selecting/predicate.hpp"

namespace bamquery {

/// A column, and Python's arrays of its parameters and checksums.
class HeldPackedColumn {
 public:
  HeldPackedColumn(const std::string& kind, const pybind11::object& parameters, std::int64_t rows,
                   std::int64_t bytes, std::uint64_t divisor, std::uint64_t origin, std::int64_t base,
                   const ChecksumArray& checksums);

  /// `verified`: with the checksums of its vectors.
  StoredPackedColumn column(bool verified) const;

 private:
  ByteView parameters_;
  ChecksumArray checksums_;
  StoredPackedColumn column_;
};

/// Terms have (intervals, whether negated); bounds have a low and a high key an interval, of 16 bytes each
/// for int128 and of 8 for other kinds.
std::vector<KeyTerm> key_terms(ValueKind kind, std::span<const std::int64_t> terms,
                               std::span<const std::uint64_t> bounds);

}  // namespace bamquery
