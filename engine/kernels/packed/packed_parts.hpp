// Which parts of packed vectors are read, where zone maps leave only some.
#pragma once

#include "engine/kernels/packed/scan_packed.hpp"
#include "engine/kernels/scan_zones.hpp"

namespace bamquery {

static_assert(kPackedParts == kParts);

/// Which parts of a possible vector are read of those that its byte of masks has, and with them what is
/// behind the codes; kAllParts: the whole payload, which the vector's own checksum is of.
BAMQUERY_CORE uint32_t packed_parts_read(const PackedVector& vector, uint32_t rows, uint32_t mask) {
  const uint32_t there = (1u << (rows + kPartRows - 1) / kPartRows) - 1;
  const uint32_t wanted = mask & there;
  return packed_has_parts(vector) && wanted != there ? wanted : kAllParts;
}

/// Bit p: part p can hold a row that passes. Nulls are in any part of a vector that has some.
template <typename T>
BAMQUERY_CORE uint32_t packed_may_pass(const PackedReader<T>& reader, const PackedPartBounds& bounds,
                                       const ScanPredicate<uint64_t>& predicate) {
  if (predicate.wants_nulls != 0 || !packed_has_parts(reader.parameters())) return kAllParts;
  const PackedSteps steps(reader.parameters(), reader.ordered_codes());
  uint32_t found = 0;
  for (uint32_t part = 0; part < kParts; ++part) {
    const uint8_t low = bounds.low[part];
    const uint8_t high = bounds.high[part];
    if (low > high) continue;
    uint64_t from = 0;
    uint64_t to = ~uint64_t{0};
    if (!steps.has_no_start(low)) from = order_key(reader.value(steps.first_code(low)));
    if (!steps.has_no_end(high)) to = order_key(reader.value(steps.last_code(high)));
    found |= static_cast<uint32_t>(ScanZone::holds(predicate, from, to)) << part;
  }
  return found;
}

/// The bytes of one vector that are read, as runs of units of kPackedUnit bytes: its parts, then what is
/// behind the codes.
struct PackedPick {
  uint32_t parts;  ///< See `packed_parts_read`.
  uint32_t bits;   ///< Units of a part.
  uint32_t codes;  ///< Units of all codes.
  uint32_t units;  ///< Of the payload.

  /// `payload`: its bytes; of none, nothing is read.
  BAMQUERY_CORE PackedPick(const PackedVector& vector, uint32_t rows, uint32_t mask, uint32_t payload)
      : parts(payload == 0 ? kAllParts : packed_parts_read(vector, rows, mask)),
        bits(vector.bits),
        codes((rows + kPartRows - 1) / kPartRows * vector.bits),
        units(payload / kPackedUnit) {}
  BAMQUERY_CORE PackedPick() : parts(kAllParts), bits(0), codes(0), units(0) {}

  BAMQUERY_CORE bool is_whole() const { return parts == kAllParts; }

  /// Calls `run(begin, end)` for each run, ascending.
  template <typename Run>
  BAMQUERY_CORE void for_each_run(const Run& run) const {
    if (is_whole()) {
      if (units != 0) run(0u, units);
      return;
    }
    for (uint32_t part = 0; part < kParts; ++part) {
      if ((parts >> part & 1) != 0) run(part * bits, (part + 1) * bits);
    }
    if (parts != 0 && codes != units) run(codes, units);
  }

  /// How many units there are.
  BAMQUERY_CORE uint32_t count() const {
    uint32_t found = 0;
    for_each_run([&](uint32_t begin, uint32_t end) { found += end - begin; });
    return found;
  }

  /// Unit number `index` of them in the payload.
  BAMQUERY_CORE uint32_t unit(uint32_t index) const {
    if (is_whole()) return index;
    uint32_t before = index / bits;
    for (uint32_t part = 0; part < kParts; ++part) {
      if ((parts >> part & 1) == 0) continue;
      if (before == 0) return part * bits + index % bits;
      --before;
    }
    return codes + (index - bit_count(parts) * bits);
  }
};

/// The payloads of a chunk's vectors in files, of which only some parts are read.
struct PackedPartFiles {
  PackedFiles files;
  const uint8_t* masks;  ///< Of each vector: which parts rows may be in that pass.

  BAMQUERY_CORE PackedPick pick(uint32_t vector) const {
    return {files.parameters[vector], files.rows[vector], masks[vector], files.bytes(vector)};
  }

  /// How many of its parts are wanted, without bytes or not.
  BAMQUERY_CORE uint32_t parts(uint32_t vector) const {
    const uint32_t there = (1u << (files.rows[vector] + kPartRows - 1) / kPartRows) - 1;
    return bit_count(pick(vector).parts & there);
  }

  /// Blocks that hold what is read of a vector, but for a first one that a vector before counts.
  BAMQUERY_CORE uint32_t new_blocks(uint32_t vector) const {
    const uint64_t start = files.offset(vector);
    uint64_t last = ~uint64_t{0};  // block that is counted
    for (uint32_t other = vector;
         other-- != 0 && files.vectors[other].piece == files.vectors[vector].piece;) {
      const uint64_t from = files.offset(other);
      bool any = false;
      pick(other).for_each_run([&](uint32_t, uint32_t end) {
        last = (from + uint64_t{kPackedUnit} * end - 1) / files.block_bytes;
        any = true;
      });
      if (any || start - from > kMostPayload) break;  // payloads ascend
    }
    uint32_t blocks = 0;
    pick(vector).for_each_run([&](uint32_t begin, uint32_t end) {
      const uint64_t first = (start + uint64_t{kPackedUnit} * begin) / files.block_bytes;
      const uint64_t end_block = (start + uint64_t{kPackedUnit} * end - 1) / files.block_bytes;
      blocks += static_cast<uint32_t>(end_block - first) + (first == last ? 0 : 1);
      last = end_block;
    });
    return blocks;
  }
};
static_assert(sizeof(PackedPartFiles) == sizeof(PackedFiles) + 8);

}  // namespace bamquery
