// Where the rows of a chunk are: in its selection, in files and in staging memory.
#pragma once

#include "driver/core/platform.hpp"

namespace bamquery {

inline constexpr uint32_t kVectorRows = 1024;
inline constexpr uint32_t kVectorWords = kVectorRows / 32;
inline constexpr uint32_t kPartRows = 128;
inline constexpr uint32_t kParts = kVectorRows / kPartRows;  ///< Of a vector: a mask of them has a byte.
inline constexpr uint32_t kAllParts = (1u << kParts) - 1;

/// Bit i: row i of a word of a vector of `rows` rows exists.
BAMQUERY_CORE uint32_t rows_of_word(uint32_t rows, uint32_t word) {
  const uint32_t first = 32 * word;
  if (rows <= first) return 0;
  return rows - first >= 32 ? ~0u : (1u << (rows - first)) - 1;
}

/// A chunk's vectors are numbered from 0 on. Row r of vector v has position 1024 v + r, so that positions
/// leave out what the last vectors of fragments lack. This is where one of them comes from.
struct ScanVector {
  uint32_t piece;   ///< Which of the chunk's fragments.
  uint32_t number;  ///< Of the vector in its fragment.
};

/// Where one buffer of one column is in a fragment's file.
struct ScanPlace {
  uint64_t offset;  ///< Of row 0, in bytes.
  uint64_t map;     ///< Where the GPU sees byte 0 of the file; 0 where it does not.
  uint32_t nsid;    ///< The file's namespace.
  uint32_t pad;
};
static_assert(sizeof(ScanPlace) == 24);

/// What a vector's validity bits say.
enum class Nulls : uint8_t {
  kNone,  ///< No row is null.
  kSome,  ///< The bits tell.
  kAll,   ///< Every row is.
};

/// Rows of one buffer of one column, in ascending order, as bytes of files.
struct ScanItems {
  const uint32_t* positions;  ///< Of the rows.
  const uint32_t* count;      ///< How many rows: known on the GPU only.
  const ScanVector* vectors;
  const ScanPlace* places;  ///< By piece.
  const uint64_t* offsets;  ///< Byte of the file in which each item begins; null: its row tells.
  uint32_t bits;            ///< Of a row in the buffer.
  uint32_t block_bytes;
  /// Power of two: how many items a row is. Without `offsets`, 1 are its own and the one behind it: where a
  /// string begins and ends.
  uint32_t ends;

  BAMQUERY_CORE uint32_t items() const { return *count << ends; }

  /// Which of its row's items one is.
  BAMQUERY_CORE uint32_t within(uint32_t item) const { return item & ((1u << ends) - 1); }

  BAMQUERY_CORE uint32_t piece(uint32_t item) const {
    return vectors[positions[item >> ends] / kVectorRows].piece;
  }

  /// The row's number in its fragment.
  BAMQUERY_CORE uint64_t row(uint32_t item) const {
    const uint32_t position = positions[item >> ends];
    return static_cast<uint64_t>(vectors[position / kVectorRows].number) * kVectorRows +
           position % kVectorRows + within(item);
  }

  /// Byte of the file in which the item begins.
  BAMQUERY_CORE uint64_t offset(uint32_t item) const {
    if (offsets != nullptr) return offsets[item];
    return places[piece(item)].offset + row(item) * bits / 8;
  }

  /// No row lies in two blocks: buffers begin on multiples of 4,096, and widths are powers of two. Where
  /// items have offsets, each is what one block has of 8 bytes.
  BAMQUERY_CORE uint64_t block(uint32_t item) const { return offset(item) / block_bytes; }

  /// Whether the item before is in another block.
  BAMQUERY_CORE bool begins_block(uint32_t item) const {
    return item == 0 || piece(item) != piece(item - 1) || block(item) != block(item - 1);
  }
};

/// Bytes to be moved into the GPU's memory.
struct ScanRequest {
  uint64_t source;  ///< Where the GPU sees them, or where they are in the file of `nsid`.
  uint64_t target;  ///< A multiple of 16.
  uint32_t bytes;
  uint32_t nsid;
};
static_assert(sizeof(ScanRequest) == 24);

/// Blocks that hold `bytes` of a vector of `size` bytes, but for a first one that a vector before counts:
/// narrow vectors share blocks. `read(v)` says whether vector v is read, with `behind` bytes behind it.
template <typename Read>
BAMQUERY_CORE uint32_t new_blocks(const ScanVector* vectors, const ScanPlace* places, const Read& read,
                                  uint32_t vector, uint32_t size, uint32_t behind, uint32_t bytes,
                                  uint32_t block_bytes) {
  const ScanVector from = vectors[vector];
  const uint64_t start = places[from.piece].offset;
  const uint64_t offset = start + static_cast<uint64_t>(from.number) * size;
  const uint64_t first = offset / block_bytes;
  bool shared = false;
  for (uint32_t other = vector; !shared && other-- != 0 && vectors[other].piece == from.piece;) {
    const uint64_t end = start + (static_cast<uint64_t>(vectors[other].number) + 1) * size + behind;
    if ((end - 1) / block_bytes != first) break;
    shared = read(other);
  }
  const uint64_t last = (offset + bytes - 1) / block_bytes;
  return static_cast<uint32_t>(last - first) + (shared ? 0 : 1);
}

/// The same for one part, of `size` bytes, where only parts are read that `masks` has: each vector has one.
BAMQUERY_CORE uint32_t new_part_blocks(const ScanVector* vectors, const ScanPlace* places,
                                       const uint8_t* masks, uint32_t vector, uint32_t part, uint32_t size,
                                       uint32_t bytes, uint32_t block_bytes) {
  const uint32_t piece = vectors[vector].piece;
  const uint64_t start = places[piece].offset;
  const auto end_of = [&](uint32_t v, uint32_t p) {
    return start + (static_cast<uint64_t>(vectors[v].number) * kParts + p + 1) * size;
  };
  const uint64_t offset = end_of(vector, part) - size;
  const uint64_t first = offset / block_bytes;
  uint32_t before = masks[vector] & ((1u << part) - 1);
  uint32_t other = vector;
  if (before == 0 && vector != 0 && vectors[vector - 1].piece == piece) before = masks[--other];
  bool shared = false;
  if (before != 0 && offset % block_bytes != 0) {
    uint32_t last = 0;
    while (before >>= 1) ++last;
    shared = (end_of(other, last) - 1) / block_bytes == first;
  }
  return static_cast<uint32_t>((offset + bytes - 1) / block_bytes - first) + (shared ? 0 : 1);
}

/// What kernels that read did: counted where commands complete.
struct ScanTally {
  unsigned long long commands;
  unsigned long long blocks;
  unsigned long long
      in_flight_ns;              ///< Of all commands, from issue to completion: over time, the queue depth.
  unsigned long long waited_ns;  ///< Of all warps: how long they waited for completions.
  unsigned long long warp_ns;    ///< Of all warps: how long they ran.
};
static_assert(sizeof(ScanTally) == 40);

}  // namespace bamquery
