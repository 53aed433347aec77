// Rows of a packed column out of single blocks: where their codes are, what they say, and what else is
// wanted.
//
// A code lies within 8 bytes, and so in one block or in two: a row is two items. What is behind the codes, an
// escape or a bit of a raw vector's bitmap, is asked for once they are known.
#include "engine/kernels/packed/scan_packed.hpp"
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_marked.hpp"

namespace bamquery {

namespace {

using Value = BAMQUERY_SCAN_TYPE;

}  // namespace

/// Of each row two bytes of the file: where what holds its code or its raw value begins, and where that goes
/// on in another block, else the same. Marks rows that have any. A warp takes 1,024.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_items(const PackedRows rows, uint64_t* offsets, uint32_t* mask, uint32_t* counts) {
  mark_rows(rows.count, mask, counts, [&](uint32_t i) {
    const uint32_t position = rows.positions[i];
    const PackedReader<Value> reader(rows.packed, position / kVectorRows);
    const uint32_t bits = reader.is_raw() ? 8 * static_cast<uint32_t>(sizeof(Value)) : reader.bits();
    const uint32_t bit = position % kVectorRows * bits;
    const uint64_t begin = rows.payload(position) + bit / 8;
    const uint64_t last = begin + (bit % 8 + bits + 7) / 8 - 1;
    offsets[2 * static_cast<uint64_t>(i)] = begin;
    offsets[2 * static_cast<uint64_t>(i) + 1] = bits == 0 ? begin : next_block(begin, last, rows.block_bytes);
    return bits != 0;
  });
}

/// The values that `words` say, what was read at each row's two `offsets`; of nulls zero. `valid` (null:
/// nobody asks) gets a byte each. Marks rows of which more must be read, and says in `more` from which byte
/// on.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_words(const PackedRows rows, const uint64_t* offsets, const uint64_t* words, Value* to,
                      uint8_t* valid, uint64_t* more, uint32_t* mask, uint32_t* counts) {
  mark_rows(rows.count, mask, counts, [&](uint32_t i) {
    const uint32_t position = rows.positions[i];
    const uint32_t row = position % kVectorRows;
    const PackedReader<Value> reader(rows.packed, position / kVectorRows);
    uint64_t word = 0;
    if (reader.bits() != 0) {
      const uint64_t at = 2 * static_cast<uint64_t>(i);
      word = join_words(words[at], words[at + 1], offsets[at], offsets[at + 1], rows.block_bytes);
    }
    bool marked = false;
    bool found = true;
    Value value{};
    if (reader.is_raw()) {
      value = PackedReader<Value>::raw_of(word);
      marked = reader.has_nulls();
      more[i] = rows.payload(position) + packed_bitmap_start(reader.rows(), sizeof(Value)) + row / 8;
    } else {
      const uint64_t code = packed_code_of_word(word, reader.bits(), row);
      const uint64_t first = reader.first_special();
      marked = code >= first && code - first < reader.escapes();
      found = code < first;
      if (found) value = reader.value(code);
      more[i] = rows.payload(position) + packed_code_bytes(reader.bits(), reader.rows()) +
                (marked ? reader.parameters().escape_bytes() * (code - first) : 0);
    }
    to[i] = value;
    if (valid != nullptr) valid[i] = found ? 1 : 0;
    return marked;
  });
}

/// The rows that were marked, `picked` of them, by the words of which more had to be read.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_more(const PackedRows rows, const uint32_t* picked, const uint32_t* count,
                     const uint64_t* words, Value* to, uint8_t* valid) {
  const uint32_t end = *count;
  for (uint32_t n = blockIdx.x * kThreads + threadIdx.x; n < end; n += gridDim.x * kThreads) {
    const uint32_t i = picked[n];
    const uint32_t position = rows.positions[i];
    const PackedReader<Value> reader(rows.packed, position / kVectorRows);
    bool found = true;
    if (reader.is_raw()) {
      found = (words[i] >> position % 8 & 1) != 0;
      if (!found) to[i] = Value{};
    } else {
      to[i] = reader.escape_of(words[i]);
    }
    if (valid != nullptr) valid[i] = found ? 1 : 0;
  }
}

}  // namespace bamquery
