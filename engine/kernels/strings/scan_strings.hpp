// Where a selection's strings are: in their fragments' bytes, and in this GPU's memory.
#pragma once

#include "engine/kernels/scan_layout.hpp"

namespace bamquery {

/// Bytes [begin, end) of all strings of a column in a fragment.
struct ScanRange {
  uint64_t begin;
  uint64_t end;
};

/// A block of a file.
struct ScanBlock {
  uint64_t number;
  uint32_t nsid;
  uint32_t pad;
};
static_assert(sizeof(ScanBlock) == 16);

/// The strings of a selection's rows.
struct ScanStrings {
  const uint64_t* pairs;      ///< Of each row, where it begins and where it ends; null: `offsets` tell.
  const byte* offsets;        ///< Of whole vectors; one more than a vector has rows.
  const uint32_t* slots;      ///< Where each vector's are in `offsets`, in units of `unit` bytes.
  const uint32_t* positions;  ///< Of the rows, ascending.
  const ScanVector* vectors;
  const ScanPlace* places;  ///< Of the strings' bytes, by piece.
  const uint64_t* sizes;    ///< How many these are, by piece.
  uint32_t rows;
  uint32_t unit;
  uint32_t block_bytes;
  uint32_t vector_count;

  BAMQUERY_CORE uint32_t vector(uint32_t row) const { return positions[row] / kVectorRows; }
  BAMQUERY_CORE uint32_t piece(uint32_t row) const { return vectors[vector(row)].piece; }

  BAMQUERY_CORE const uint64_t* vector_offsets(uint32_t vector) const {
    return reinterpret_cast<const uint64_t*>(offsets + static_cast<uint64_t>(slots[vector]) * unit);
  }

  BAMQUERY_CORE ScanRange range(uint32_t row) const {
    const uint64_t* const at = pairs != nullptr ? pairs + 2 * static_cast<uint64_t>(row)
                                                : vector_offsets(vector(row)) + positions[row] % kVectorRows;
    return {at[0], at[1]};
  }

  /// Where the bytes of a row's string, of `range`, are among `blocks`, which hold all strings that have
  /// bytes; `bases` are sums of the blocks that begin with each row.
  BAMQUERY_CORE const byte* in_blocks(uint32_t row, const ScanRange& range, const uint64_t* bases,
                                      const byte* blocks) const {
    const uint32_t of = piece(row);
    const uint64_t first = block(of, range.begin);
    const uint64_t count = block(of, range.end - 1) - first + 1;
    // The row's last block is the last one that begins with it, unless it only has a part of one before.
    return blocks + (bases[row + 1] - count) * block_bytes + (places[of].offset + range.begin) % block_bytes;
  }

  /// Block of the file that holds a byte of the strings of `piece`.
  BAMQUERY_CORE uint64_t block(uint32_t piece, uint64_t at) const {
    return (places[piece].offset + at) / block_bytes;
  }
};
static_assert(sizeof(ScanStrings) == 72);

/// The last of `count` sums (ascending, the first one at most `value`) that is at most `value`.
BAMQUERY_CORE uint32_t last_at_most(const uint64_t* sums, uint32_t count, uint64_t value) {
  uint32_t low = 0;
  uint32_t high = count;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (sums[middle] <= value) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace bamquery
