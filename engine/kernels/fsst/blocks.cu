// Rows of compressed strings out of single blocks: where the codes of their ends are, and what these say.
//
// A string begins where the one before ends: a row takes two codes, each of which lies within 8 bytes, and so
// in one block or in two. What the row before has asked for is not asked for again.
#include "engine/kernels/fsst/coded_strings.hpp"
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_marked.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kItems = 4;  // of a row: two of each code

// The bytes of a file that hold the code of an end.
struct CodePlace {
  uint64_t begin;
  uint64_t crossing;  // see next_block
};
__device__ inline CodePlace place_code(const CodedStrings& coded, uint32_t vector, uint32_t row) {
  const StringVector& parameters = coded.parameters[vector];
  const uint64_t payload =
      coded.strings.places[coded.strings.vectors[vector].piece].offset + parameters.offset;
  const uint32_t bit = row * parameters.bits;
  const uint64_t begin = payload + bit / 8;
  if (parameters.bits == 0) return {begin, begin};
  const uint64_t last = begin + (bit % 8 + parameters.bits + 7) / 8 - 1;
  return {begin, next_block(begin, last, coded.strings.block_bytes)};
}

// Whether the code before row i's is one at all, and whether row i - 1 has it.
__device__ inline bool begins_part(const CodedStrings& coded, uint32_t i) {
  return coded.strings.positions[i] % kPartRows == 0;
}
__device__ inline bool follows(const CodedStrings& coded, uint32_t i) {
  return i != 0 && coded.strings.positions[i - 1] + 1 == coded.strings.positions[i];
}

}  // namespace

/// Of each row four bytes of the file, ascending by blocks: where what holds the code before its own begins
/// and goes on in another block, and the same of its own. Marks rows that have any. A warp takes 1,024.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_fsst_items(const CodedStrings coded, uint64_t* offsets, uint32_t* mask, uint32_t* counts) {
  mark_rows(coded.strings.rows, mask, counts, [&](uint32_t i) {
    const uint32_t vector = coded.strings.vector(i);
    const uint32_t row = coded.strings.positions[i] % kVectorRows;
    const CodePlace own = place_code(coded, vector, row);
    CodePlace before{own.begin, own.begin};
    if (!begins_part(coded, i) && !follows(coded, i)) before = place_code(coded, vector, row - 1);
    uint64_t* const items = offsets + kItems * static_cast<uint64_t>(i);
    items[0] = before.begin;
    items[1] = before.crossing;
    items[2] = own.begin;
    items[3] = own.crossing;
    return coded.parameters[vector].bits != 0;
  });
}

/// Where the codes of each row's string are in their column, by the `words` that were read at the rows'
/// `offsets`. `valid` (null: nobody asks) gets a byte a row: whether it is a string. `bad` (zero before) gets
/// how many vectors there are from the first on with a row whose end cannot be.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_fsst_pairs(const CodedStrings coded, const uint64_t* offsets, const uint64_t* words,
                    ScanRange* pairs, uint8_t* valid, uint32_t* bad) {
  const auto code_of = [&](uint32_t vector, uint32_t row, uint64_t item) -> uint64_t {
    const uint32_t bits = coded.parameters[vector].bits;
    if (bits == 0) return 0;
    const uint64_t word =
        join_words(words[item], words[item + 1], offsets[item], offsets[item + 1], coded.strings.block_bytes);
    return packed_code_of_word(word, bits, row);
  };
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < coded.strings.rows; i += step) {
    const uint32_t vector = coded.strings.vector(i);
    const uint32_t row = coded.strings.positions[i] % kVectorRows;
    const uint64_t items = kItems * static_cast<uint64_t>(i);
    uint64_t before = 0;
    if (!begins_part(coded, i)) before = code_of(vector, row - 1, follows(coded, i) ? items - 2 : items);
    const StringRow found = string_row(coded.parameters[vector], coded.vector_rows[vector], row, before,
                                       code_of(vector, row, items + 2));
    const uint64_t first = coded.first_byte(vector);
    pairs[i] = {first + found.begin, first + found.end};
    if (valid != nullptr) valid[i] = found.is_null ? 0 : 1;
    if (!found.is_possible) atomicMax(bad, coded.strings.vector_count - vector);
  }
}

}  // namespace bamquery
