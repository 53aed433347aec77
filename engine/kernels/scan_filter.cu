// Compares a streamed column and says which rows pass: one warp a vector.
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_layout.hpp"
#include "engine/kernels/scan_predicate.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kLoadBytes = 16;

template <typename T>
struct Values {
  T value[kLoadBytes / sizeof(T)];
};

template <typename T, uint32_t kCount>
struct Keys {
  OrderKey<T> key[kCount];
};

// Which of a vector's rows pass, as a word for each 32; rows behind the last may, and any of parts that are
// not `here`. All lanes call.
template <typename T>
__device__ inline void compare(const uint4* values, uint32_t vector, uint32_t rows, uint32_t here,
                               const ScanPredicateOf<T>& predicate, uint32_t* words) {
  constexpr uint32_t kValues = kLoadBytes / sizeof(T);       // of one load
  constexpr uint32_t kSharers = 32 / kValues;                // lanes whose bits make one word
  constexpr uint32_t kLoads = kVectorRows / (32 * kValues);  // of a lane for a vector
  const uint32_t lane = Lanes::lane();
  const uint4* const from = values + static_cast<uint64_t>(vector) * kLoads * 32;
  // All of a vector's narrow values at once, half of its wide ones.
  constexpr uint32_t kBatch = kLoads < 8 ? kLoads : 8;
#pragma unroll 1
  for (uint32_t first = 0; first < kLoads; first += kBatch) {
    Keys<T, kBatch * kValues> keys;
    if (predicate.terms != 0) {
      uint4 loaded[kBatch];
#pragma unroll
      for (uint32_t i = 0; i < kBatch; ++i) {
        const uint32_t at = (first + i) * 32 + lane;
        const bool there = at * kValues < rows && (here >> at * kValues / kPartRows & 1) != 0;
        loaded[i] = there ? from[at] : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (uint32_t i = 0; i < kBatch; ++i) {
        const auto held = bits_of<Values<T>>(loaded[i]);
#pragma unroll
        for (uint32_t k = 0; k < kValues; ++k) keys.key[i * kValues + k] = order_key(held.value[k]);
      }
    }
    const uint32_t passing = predicate.passing(keys.key);
#pragma unroll
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t bits = passing >> i * kValues & ((1u << kValues) - 1);
      uint32_t word = bits << (lane % kSharers * kValues);
#pragma unroll
      for (uint32_t distance = 1; distance < kSharers; distance *= 2) {
        word |= __shfl_xor_sync(~0u, word, distance);
      }
      if (lane % kSharers == 0) words[(first + i) * kValues + lane / kSharers] = word;
    }
  }
}

// Bits are compared once for all.
template <typename T>
__device__ inline void compare_bits(const uint4* values, uint32_t vector, uint32_t rows,
                                    const ScanPredicateOf<T>& predicate, uint32_t* words) {
  const uint32_t lane = Lanes::lane();
  const uint32_t both[2] = {0, 1};
  const uint32_t passing = predicate.passing(both);
  const auto* const from = reinterpret_cast<const uint32_t*>(values) + uint64_t{vector} * kVectorWords;
  const uint32_t bits = predicate.terms != 0 && 32 * lane < rows ? from[lane] : 0;
  words[lane] = ((passing & 2) != 0 ? bits : 0) | ((passing & 1) != 0 ? ~bits : 0);
}

template <typename T>
__device__ inline void filter(const uint4* values, const uint32_t* validity, const uint8_t* nulls,
                              const uint16_t* vector_rows, uint32_t rows_at_most, uint32_t vectors,
                              const uint8_t* parts, const ScanPredicateOf<T>& predicate, uint32_t* mask,
                              uint32_t* counts) {
  __shared__ uint32_t shared[kWarps][kVectorWords];
  const uint32_t lane = Lanes::lane();
  uint32_t* const words = shared[threadIdx.x / 32];
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    const uint32_t left = rows_at_most - vector * kVectorRows;
    const uint32_t rows = vector_rows != nullptr ? vector_rows[vector] : min(left, kVectorRows);
    const uint32_t here = parts != nullptr ? parts[vector] : kAllParts;
    if constexpr (kIsBits<T>) {
      compare_bits<T>(values, vector, rows, predicate, words);
    } else {
      compare<T>(values, vector, rows, here, predicate, words);
    }
    __syncwarp();
    Nulls state = validity != nullptr ? Nulls::kSome : Nulls::kNone;
    if (nulls != nullptr) state = static_cast<Nulls>(nulls[vector]);
    uint32_t valid = state == Nulls::kNone ? ~0u : 0;
    if (state == Nulls::kSome) valid = validity[static_cast<uint64_t>(vector) * kVectorWords + lane];
    const uint32_t wanted = predicate.wants_nulls != 0 ? ~valid : valid & words[lane];
    const bool there = (here >> 32 * lane / kPartRows & 1) != 0;
    const uint32_t passed = there ? wanted & rows_of_word(rows, lane) : 0;
    mask[static_cast<uint64_t>(vector) * kVectorWords + lane] = passed;
    const uint32_t count = __reduce_add_sync(~0u, __popc(passed));
    if (lane == 0) counts[vector] = count;
    __syncwarp();  // All have read the words that are written next.
  }
}

}  // namespace

/// `values` and `validity` have 1,024 rows for each vector. `nulls` (null: the bits tell, if there
/// are any) has a state for each, `vector_rows` (null: all but the last of `rows_at_most` rows are full) its
/// rows, and `parts` (null: all are there) a byte of those that are: rows of others do not pass. `mask` gets
/// a bit a row, and `counts` the number of those that pass in each vector. 256 threads. BAMQUERY_SCAN_TYPE is
/// the values' type.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_filter(const uint4* values, const uint32_t* validity, const uint8_t* nulls,
                const uint16_t* vector_rows, uint32_t rows_at_most, uint32_t vectors, const uint8_t* parts,
                const ScanPredicateOf<BAMQUERY_SCAN_TYPE> predicate, uint32_t* mask, uint32_t* counts) {
  filter<BAMQUERY_SCAN_TYPE>(values, validity, nulls, vector_rows, rows_at_most, vectors, parts, predicate,
                             mask, counts);
}

}  // namespace bamquery
