// Rows of a packed column out of files in the page cache that this GPU sees: their codes, and what these ask
// for, a sector of 32 bytes each.
#include "engine/kernels/packed/scan_packed.hpp"
#include "engine/kernels/scan_launch.hpp"

namespace bamquery {

namespace {

using Value = BAMQUERY_SCAN_TYPE;

/// A column whose rows are wanted.
struct PackedMapped {
  PackedRows rows;
  Value* to;       ///< A value each; of nulls zero.
  uint8_t* valid;  ///< A byte each: whether it is a value; null: nobody asks.
  ScanTally* tally;
};
static_assert(sizeof(PackedMapped) == 96);

/// The bytes of a row's code, or of its raw value, in its file.
struct RowBytes {
  uint32_t piece;
  uint64_t begin;
  uint64_t last;  ///< Before `begin` where there are none.
};

__device__ inline RowBytes bytes_of(const PackedRows& rows, uint32_t position) {
  const uint32_t vector = position / kVectorRows;
  const PackedVector parameters = rows.packed.parameters[vector];
  const uint32_t bits = parameters.is_raw() ? 8 * static_cast<uint32_t>(sizeof(Value)) : parameters.bits;
  const uint32_t bit = position % kVectorRows * bits;
  const uint64_t begin = rows.payload(position) + bit / 8;
  return {rows.packed.vectors[vector].piece, begin, begin + (bit % 8 + bits + 7) / 8 - 1};
}

}  // namespace

/// The values at the rows' positions, of `count` columns: every thread block works for one of them. Tallies
/// get the sectors that hold what was loaded, which are `block_bytes` long; what is behind a code counts for
/// itself where it is in another one.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_mapped(const PackedMapped* columns, uint32_t count) {
  const auto [rows, to, valid, tally] = columns[blockIdx.x % count];
  const uint32_t step = gridDim.x / count * kThreads;
  uint32_t blocks = 0;
  for (uint32_t i = blockIdx.x / count * kThreads + threadIdx.x; i < rows.count; i += step) {
    const uint32_t position = rows.positions[i];
    const uint32_t row = position % kVectorRows;
    const RowBytes own = bytes_of(rows, position);
    const auto* const payload =
        reinterpret_cast<const byte*>(rows.places[own.piece].map + rows.payload(position));
    const PackedReader<Value> reader(rows.packed, position / kVectorRows, payload);
    Value value{};
    bool found = true;
    bool more = false;
    uint64_t behind = 0;  // where more is, in the payload
    if (reader.is_raw()) {
      more = reader.has_nulls();
      behind = packed_bitmap_start(reader.rows(), sizeof(Value)) + row / 8;
      found = reader.raw_is_valid(row);
      if (found) value = reader.raw_value(row);
    } else {
      const uint64_t code = reader.code(row);
      const uint64_t first = reader.first_special();
      more = code >= first && code - first < reader.escapes();
      found = code < first || more;
      if (code < first) value = reader.value(code);
      if (more) value = reader.escape(static_cast<uint32_t>(code - first));
      behind = packed_code_bytes(reader.bits(), reader.rows()) +
               reader.parameters().escape_bytes() * (code - first);
    }
    to[i] = value;
    if (valid != nullptr) valid[i] = found ? 1 : 0;
    if (own.last >= own.begin) {
      const uint64_t block = own.begin / rows.block_bytes;
      const RowBytes before = i == 0 ? own : bytes_of(rows, rows.positions[i - 1]);
      const bool shared = i != 0 && before.piece == own.piece && before.last / rows.block_bytes == block;
      blocks += static_cast<uint32_t>(own.last / rows.block_bytes - block) + (shared ? 0 : 1);
    }
    const bool elsewhere = own.last < own.begin || (rows.payload(position) + behind) / rows.block_bytes !=
                                                       own.last / rows.block_bytes;
    blocks += more && elsewhere ? 1 : 0;
  }
  const uint32_t all = __reduce_add_sync(~0u, blocks);
  if (Lanes::lane() != 0 || all == 0) return;
  atomicAdd(&tally->commands, static_cast<unsigned long long>(all));
  atomicAdd(&tally->blocks, static_cast<unsigned long long>(all));
}

}  // namespace bamquery
