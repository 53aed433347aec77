// LIKE without underscores: whether strings have the parts of a pattern, one behind the other.
//
// A warp has 32 strings that lie end to end: it copies their bytes into shared memory together, 32 words at a
// time, and each lane then looks through one string there. Strings that are too long for that are looked
// through where they are.
#include "engine/kernels/keys/key_columns.hpp"
#include "engine/kernels/scan_launch.hpp"

namespace bamquery {

inline constexpr uint32_t kMostParts = 8;
inline constexpr uint32_t kMostPatternBytes = 128;

/// A pattern that is cut at its percent signs. UTF-8 is compared byte by byte: no character's bytes begin
/// within another's.
struct PatternParts {
  uint32_t count;             ///< Of parts, one at least; none is empty.
  uint32_t at_start;          ///< Whether strings begin with the first part.
  uint32_t at_end;            ///< And end with the last one, which is another one.
  uint32_t ends[kMostParts];  ///< Of each part, in `text`.
  byte text[kMostPatternBytes];
};

namespace {

constexpr uint32_t kStagedBytes = 4096;  // of a warp's strings

struct Staged {
  uint64_t words[kStagedBytes / 8 + 1];  // one more, since they begin as far behind a word as in memory
};

__device__ bool begins_with(const byte* at, const byte* part, uint32_t size) {
  for (uint32_t i = 0; i < size; ++i) {
    if (at[i] != part[i]) return false;
  }
  return true;
}

/// Where `part` begins first in [begin, end); null: nowhere.
__device__ const byte* find_part(const byte* begin, const byte* end, const byte* part, uint32_t size) {
  if (static_cast<uint64_t>(end - begin) < size) return nullptr;
  const byte first = part[0];
  const byte* const last = end - size;
  for (const byte* at = begin; at <= last; ++at) {
    if (*at == first && begins_with(at + 1, part + 1, size - 1)) return at;
  }
  return nullptr;
}

__device__ bool has_parts(const PatternParts& pattern, const byte* begin, const byte* end) {
  uint32_t from = 0;
  for (uint32_t i = 0; i < pattern.count; ++i) {
    const byte* const part = pattern.text + from;
    const uint32_t size = pattern.ends[i] - from;
    from = pattern.ends[i];
    const bool is_first = i == 0 && pattern.at_start != 0;
    if (is_first || (i + 1 == pattern.count && pattern.at_end != 0)) {
      if (static_cast<uint64_t>(end - begin) < size) return false;
      const byte* const at = is_first ? begin : end - size;
      if (!begins_with(at, part, size)) return false;
      begin = at + size;
      continue;
    }
    const byte* const found = find_part(begin, end, part, size);
    if (found == nullptr) return false;
    begin = found + size;
  }
  return true;
}

/// Copies [begin, end) of memory into `staged`, and says where they begin there. All lanes of a warp call it.
__device__ const byte* stage(Staged& staged, const byte* begin, const byte* end) {
  const uint64_t address = reinterpret_cast<uint64_t>(begin);
  const uint64_t lead = address % 8;
  byte* const target = reinterpret_cast<byte*>(staged.words) + lead;
  const uint64_t size = static_cast<uint64_t>(end - begin);
  const uint64_t head = min((8 - lead) % 8, size);
  const uint64_t words = (size - head) / 8;
  const uint64_t tail = head + 8 * words;
  const uint32_t lane = threadIdx.x % 32;
  const auto* const from = reinterpret_cast<const uint64_t*>(begin + head);
  auto* const to = reinterpret_cast<uint64_t*>(target + head);
  for (uint64_t i = lane; i < words; i += 32) to[i] = from[i];
  // Words at the ends have bytes of others, or none at all.
  if (lane < head) target[lane] = begin[lane];
  if (lane < size - tail) target[tail + lane] = begin[tail + lane];
  return target;
}

}  // namespace

/// `matches` gets 1 for each string of the only column that matches, else 0; of a null string either.
extern "C" __global__ void __launch_bounds__(kThreads)
    match_parts(const KeyColumns strings, const PatternParts given, uint64_t rows, uint8_t* matches) {
  __shared__ PatternParts pattern;
  __shared__ Staged staged[kWarps];
  if (threadIdx.x == 0) {
    pattern.count = given.count;
    pattern.at_start = given.at_start;
    pattern.at_end = given.at_end;
  }
  if (threadIdx.x < kMostParts) pattern.ends[threadIdx.x] = given.ends[threadIdx.x];
  if (threadIdx.x < kMostPatternBytes) pattern.text[threadIdx.x] = given.text[threadIdx.x];
  __syncthreads();
  const KeyColumn& column = strings.column[0];
  const uint32_t warp = threadIdx.x / 32;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * kThreads;
  for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * kThreads + warp * 32; first < rows;
       first += step) {
    const uint64_t begin = key_offset(column, first);
    const uint64_t end = key_offset(column, min(first + 32, rows));
    const bool fits = end - begin <= kStagedBytes;
    const byte* const base =
        fits ? stage(staged[warp], column.values + begin, column.values + end) : column.values + begin;
    __syncwarp();
    const uint64_t row = first + threadIdx.x % 32;
    if (row < rows) {
      const Span text = key_string(column, row);
      const byte* const at = base + (text.begin - (column.values + begin));
      matches[row] = has_parts(pattern, at, at + text.size) ? 1 : 0;
    }
    __syncwarp();  // All have looked before the next strings come.
  }
}

}  // namespace bamquery
