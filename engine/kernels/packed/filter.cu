// Compares a packed column by its codes and says which rows pass: one warp a vector, and no value is written.
//
// Codes in use below the first escape order like their values. So each interval of a condition's keys is one
// of codes, exactly, found by looking at values; escapes are compared once each.
#include "engine/kernels/packed/packed_parts.hpp"
#include "engine/kernels/scan_launch.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kBatch = 8;  // words that a lane has in flight: more would take registers
constexpr uint32_t kBatchParts = (1u << kBatch * 32 / kPartRows) - 1;

/// What a predicate says of the codes of one vector.
struct CodePredicate {
  uint64_t begin[kScanIntervals];  ///< First code of each interval, and the one behind the last.
  uint64_t end[kScanIntervals];
  uint32_t special[kVectorWords];  ///< A bit for each code from the first escape on: whether it passes.
};
static_assert(kPackedMaxEscapes < kVectorRows);

/// What is known of a vector before its codes are read.
struct Outlook {
  uint32_t terms;  ///< Those that some values pass and others do not.
  bool none;       ///< No code below the first escape passes.
  bool some_pass;
  bool some_fail;
};

// How many codes below `end` have a key below `bound`; with `included`, at most that.
template <typename T>
__device__ inline uint64_t codes_before(const PackedReader<T>& reader, uint64_t end, OrderKey<T> bound,
                                        bool included) {
  uint64_t low = 0;
  uint64_t high = end;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const OrderKey<T> key = order_key(reader.value(middle));
    if (included ? key <= bound : !(key >= bound)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Which codes of the vector pass. All lanes call.
template <typename T>
__device__ inline Outlook look_at(const PackedReader<T>& reader, const ScanPredicateOf<T>& predicate,
                                  CodePredicate& codes) {
  const uint32_t lane = Lanes::lane();
  const uint64_t ordered = reader.ordered_codes();
  Outlook found{0, predicate.wants_nulls != 0, false, false};
  uint32_t intervals = 0;
  for (uint32_t t = 0; t < predicate.terms; ++t) intervals += predicate.term[t].count;
  for (uint32_t side = lane; side < 2 * intervals; side += 32) {
    const auto interval = predicate.interval[side / 2];
    const bool ends = side % 2 != 0;
    const auto bound = static_cast<OrderKey<T>>(ends ? interval.high : interval.low);
    (ends ? codes.end : codes.begin)[side / 2] = codes_before<T>(reader, ordered, bound, ends);
  }
  const uint32_t escapes = reader.escapes();
  const uint32_t special = escapes + (reader.has_nulls() ? 1 : 0);
  for (uint32_t at = lane; at < (special + 31) / 32 * 32; at += 32) {
    bool passes = predicate.wants_nulls != 0;
    if (at < escapes) {
      const OrderKey<T> key[1] = {order_key(reader.escape(at))};
      passes = !passes && (predicate.passing(key) & 1) != 0;
    } else {
      passes = passes && at < special;
    }
    const uint32_t word = __ballot_sync(~0u, passes);
    if (lane == 0) codes.special[at / 32] = word;
    const uint32_t there = special - at + lane >= 32 ? ~0u : (1u << (special - at + lane)) - 1;
    found.some_pass |= (word & there) != 0;
    found.some_fail |= (~word & there) != 0;
  }
  __syncwarp();
  bool all = !found.none;
  for (uint32_t t = 0; t < predicate.terms; ++t) {
    const ScanTerm term = predicate.term[t];
    bool within = false;   // some code is
    bool covered = false;  // all are
    for (uint32_t i = term.first; i < static_cast<uint32_t>(term.first) + term.count; ++i) {
      within |= codes.begin[i] < codes.end[i];
      covered |= codes.begin[i] == 0 && codes.end[i] == ordered;
    }
    found.none |= term.negated != 0 ? covered : !within;
    const bool passes = term.negated != 0 ? !within : covered;
    if (!passes) found.terms |= 1u << t;
    all &= passes;
  }
  if (ordered != 0) {
    found.some_pass |= !found.none;
    found.some_fail |= !all;
  }
  return found;
}

// As ScanPredicate::passing, of codes: none of the terms covers all of them.
template <typename Code>
__device__ inline uint32_t passing(const ScanTerm* term, uint32_t terms, const CodePredicate& codes,
                                   const Code (&code)[kBatch]) {
  uint32_t all = ~0u;
  for (uint32_t rest = terms; rest != 0; rest &= rest - 1) {
    const ScanTerm one = term[lowest_bit(rest)];
    uint32_t within = 0;
    for (uint32_t i = one.first; i < static_cast<uint32_t>(one.first) + one.count; ++i) {
      const auto begin = static_cast<Code>(codes.begin[i]);
      const auto length =
          static_cast<Code>(codes.begin[i] < codes.end[i] ? codes.end[i] - codes.begin[i] : 0);
#pragma unroll
      for (uint32_t n = 0; n < kBatch; ++n) {
        within |= static_cast<uint32_t>(static_cast<Code>(code[n] - begin) < length) << n;
      }
    }
    all &= one.negated != 0 ? ~within : within;
  }
  return all;
}

// The word of each lane: which of its 32 rows pass; of parts that are not `here`, any. All lanes call.
template <typename Code, typename T>
__device__ inline uint32_t compare(const PackedReader<T>& reader, uint32_t here,
                                   const ScanPredicateOf<T>& predicate, const Outlook& outlook,
                                   const CodePredicate& codes) {
  const uint32_t lane = Lanes::lane();
  const uint32_t rows = reader.rows();
  const uint64_t first = reader.first_special();
  const bool special = reader.escapes() != 0 || reader.has_nulls();
  uint32_t mine = 0;
#pragma unroll 1
  for (uint32_t word = 0; word < kVectorWords && 32 * word < rows; word += kBatch) {
    if ((here >> 32 * word / kPartRows & kBatchParts) == 0) continue;
    Code code[kBatch];
#pragma unroll
    for (uint32_t n = 0; n < kBatch; ++n) {
      const uint32_t row = 32 * (word + n) + lane;
      const bool there = row < rows && (here >> row / kPartRows & 1) != 0;
      if constexpr (sizeof(Code) == 4) {
        code[n] = there ? reader.short_code(row) : 0;
      } else {
        code[n] = there ? reader.code(row) : 0;
      }
    }
    uint32_t found = outlook.none ? 0 : passing<Code>(predicate.term, outlook.terms, codes, code);
    if (special) {
#pragma unroll
      for (uint32_t n = 0; n < kBatch; ++n) {
        if (code[n] < static_cast<Code>(first)) continue;
        const auto at = static_cast<uint32_t>(code[n] - first);
        const uint32_t passes = codes.special[at / 32] >> at % 32 & 1;
        found = (found & ~(1u << n)) | passes << n;
      }
    }
    __syncwarp();
#pragma unroll
    for (uint32_t n = 0; n < kBatch; ++n) {
      const uint32_t passed = __ballot_sync(~0u, (found >> n & 1) != 0);
      if (lane == word + n) mine = passed;
    }
  }
  return mine;
}

// The same for a vector that is raw.
template <typename T>
__device__ inline uint32_t compare_raw(const PackedReader<T>& reader, const ScanPredicateOf<T>& predicate) {
  const uint32_t lane = Lanes::lane();
  const uint32_t rows = reader.rows();
  uint32_t mine = 0;
#pragma unroll 1
  for (uint32_t word = 0; word < kVectorWords && 32 * word < rows; word += kBatch) {
    OrderKey<T> keys[kBatch];
    uint32_t valid = ~0u;
#pragma unroll
    for (uint32_t n = 0; n < kBatch; ++n) {
      const uint32_t row = 32 * (word + n) + lane;
      keys[n] = order_key(row < rows ? reader.raw_value(row) : T{});
      if (row < rows && !reader.raw_is_valid(row)) valid &= ~(1u << n);
    }
    const uint32_t found = predicate.wants_nulls != 0 ? ~valid : valid & predicate.passing(keys);
#pragma unroll
    for (uint32_t n = 0; n < kBatch; ++n) {
      const uint32_t passed = __ballot_sync(~0u, (found >> n & 1) != 0);
      if (lane == word + n) mine = passed;
    }
  }
  return mine;
}

template <typename T>
__device__ inline void filter(const ScanPacked& packed, const uint8_t* parts, uint32_t vectors,
                              const ScanPredicateOf<T>& predicate, uint32_t* mask, uint32_t* counts) {
  __shared__ CodePredicate shared[kWarps];
  CodePredicate& codes = shared[threadIdx.x / 32];
  const uint32_t lane = Lanes::lane();
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    const PackedReader<T> reader(packed, vector);
    const uint32_t here =
        parts != nullptr ? packed_parts_read(reader.parameters(), reader.rows(), parts[vector]) : kAllParts;
    uint32_t words = 0;
    if (reader.is_raw()) {
      words = compare_raw<T>(reader, predicate);
    } else {
      const Outlook outlook = look_at<T>(reader, predicate, codes);
      if (!outlook.some_pass || !outlook.some_fail) {
        words = outlook.some_pass ? ~0u : 0;
      } else if (reader.bits() <= 32) {
        words = compare<uint32_t, T>(reader, here, predicate, outlook, codes);
      } else {
        words = compare<uint64_t, T>(reader, here, predicate, outlook, codes);
      }
    }
    const bool there = (here >> 32 * lane / kPartRows & 1) != 0;
    const uint32_t passed = there ? words & rows_of_word(reader.rows(), lane) : 0;
    mask[static_cast<uint64_t>(vector) * kVectorWords + lane] = passed;
    const uint32_t count = __reduce_add_sync(~0u, __popc(passed));
    if (lane == 0) counts[vector] = count;
    __syncwarp();  // All have read the codes' predicate that is written next.
  }
}

}  // namespace

/// As scan_filter, of `vectors` vectors of a packed column. `parts` (null: all are there) has a byte for
/// each, see `packed_parts_read`: rows of parts that were not read do not pass.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_filter(const ScanPacked packed, const uint8_t* parts, uint32_t vectors,
                       const ScanPredicateOf<BAMQUERY_SCAN_TYPE> predicate, uint32_t* mask,
                       uint32_t* counts) {
  filter<BAMQUERY_SCAN_TYPE>(packed, parts, vectors, predicate, mask, counts);
}

}  // namespace bamquery
