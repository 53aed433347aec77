#include "storage/native/packed/packing/pack.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "driver/native/crc32c.hpp"
#include "storage/native/packed/packing/vector_packer.hpp"
#include "storage/native/packed/packing/vector_values.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kMeasured = 16;

}  // namespace
PackedVectors pack_vectors(const PackOptions& options, const std::byte* values, const std::uint8_t* validity,
                           std::int64_t rows) {
  const auto count = static_cast<std::size_t>((rows + kVectorRows - 1) / kVectorRows);
  const PackedKind kind = packed_kind(options.kind);
  PackedVectors packed;
  packed.vectors.reserve(count);
  packed.crcs.reserve(count);
  with_packed_type(options.kind, [&]<typename T>(T) {
    const auto packer = std::make_unique<VectorPacker<T>>(options.scale, options.exponents,
                                                          kind.type == PackedType::kNeverRaw);
    VectorRoom<T> room;
    for (std::int64_t first = 0; first < rows; first += kVectorRows) {
      const auto of_vector = static_cast<std::uint32_t>(std::min(kVectorRows, rows - first));
      const T* from = vector_values(options.kind, values, first, of_vector, room);
      if (from == nullptr) {
        throw std::invalid_argument("vector " + std::to_string(first / kVectorRows) +
                                    " has a value that needs more than 64 bits");
      }
      const std::size_t start = packed.payload.size();
      PackedVector vector = packer->pack(from, Bits{validity, first}, of_vector, packed.payload);
      if (start / 16 > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("a packed column has at most 64 GiB");
      }
      vector.offset = static_cast<std::uint32_t>(start / 16);
      if (packed.vectors.size() + 1 == kMeasured) {  // one allocation instead of many that double
        packed.payload.reserve(packed.payload.size() / kMeasured * (count + count / 8));
      }
      packed.vectors.push_back(vector);
      packed.crcs.push_back(crc32c({packed.payload.data() + start, packed.payload.size() - start}));
    }
  });
  return packed;
}

}  // namespace bamquery
