// Parts of packed vectors: what moves them to where they are in whole payloads, and their checksums.
#include "engine/kernels/packed/packed_parts.hpp"
#include "engine/kernels/scan_copy.hpp"
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_vector_crc.hpp"

namespace bamquery {

namespace {

constexpr uint32_t kLoads = 8;  // in flight for each lane

/// What a lane knows of its vector, and tells those lanes that load some of it.
struct Share {
  PackedPick pick;
  uint64_t source = 0;
  uint64_t target = 0;
  uint32_t end = 0;  ///< Units of this lane's vector, and of those of the lanes before it.
};
static_assert(kLoadBytes == kPackedUnit);

// Sums over the lanes before, and its own.
__device__ inline uint32_t sum_up_to(uint32_t units) {
  const uint32_t lane = Lanes::lane();
#pragma unroll
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint32_t before = __shfl_up_sync(~0u, units, step);
    if (lane >= step) units += before;
  }
  return units;
}

// Where unit number `at` of all lanes' is, and where it goes. All lanes call.
__device__ inline void find_unit(const Share& mine, uint32_t at, const uint4*& source, uint4*& target) {
  uint32_t owner = 0;
#pragma unroll
  for (uint32_t step = 16; step != 0; step /= 2) {
    if (__shfl_sync(~0u, mine.end, owner + step - 1) <= at) owner += step;
  }
  const uint32_t before = __shfl_sync(~0u, mine.end, (owner + 31) % 32);
  PackedPick pick;
  pick.parts = __shfl_sync(~0u, mine.pick.parts, owner);
  pick.bits = __shfl_sync(~0u, mine.pick.bits, owner);
  pick.codes = __shfl_sync(~0u, mine.pick.codes, owner);
  const uint64_t from = __shfl_sync(~0u, mine.source, owner);
  const uint64_t to = __shfl_sync(~0u, mine.target, owner);
  const uint64_t skipped = uint64_t{kPackedUnit} * pick.unit(at - (owner != 0 ? before : 0));
  source = reinterpret_cast<const uint4*>(from + skipped);
  target = reinterpret_cast<uint4*>(to + skipped);
}

}  // namespace

/// As scan_packed_load, but only the wanted parts of each vector, and what is behind its codes; `tally` gets
/// parts. That is little: a warp takes 32 vectors at once.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_load_parts(const PackedPartFiles parts, const uint32_t* slots, uint32_t vectors, byte* target,
                           uint32_t* next, ScanTally* tally) {
  const uint32_t lane = Lanes::lane();
  uint32_t commands = 0;
  uint32_t blocks = 0;
  while (true) {
    uint32_t first = 0;
    if (Lanes::leads()) first = atomicAdd(next, 32);
    first = Lanes::broadcast(first);
    if (first >= vectors) break;
    const uint32_t vector = first + lane;
    Share mine;
    if (vector < vectors) {
      mine.pick = parts.pick(vector);
      mine.source = parts.files.places[parts.files.vectors[vector].piece].map + parts.files.offset(vector);
      mine.target = reinterpret_cast<uint64_t>(target) + uint64_t{slots[vector]} * kPackedUnit;
      commands += parts.parts(vector);
      blocks += parts.new_blocks(vector);
    }
    __syncwarp();
    mine.end = sum_up_to(mine.pick.count());
    const uint32_t all = __shfl_sync(~0u, mine.end, 31);
    for (uint32_t begin = 0; begin < all; begin += 32 * kLoads) {
      uint4 held[kLoads];
      uint4* to[kLoads];
#pragma unroll
      for (uint32_t i = 0; i < kLoads; ++i) {
        const uint32_t at = begin + i * 32 + lane;
        const uint4* from = nullptr;
        find_unit(mine, min(at, all - 1), from, to[i]);
        if (at < all) held[i] = *from;
      }
#pragma unroll
      for (uint32_t i = 0; i < kLoads; ++i) {
        if (begin + i * 32 + lane < all) *to[i] = held[i];
      }
    }
  }
  __syncwarp();
  commands = __reduce_add_sync(~0u, commands);
  blocks = __reduce_add_sync(~0u, blocks);
  if (Lanes::leads() && commands != 0) {
    atomicAdd(&tally->commands, static_cast<unsigned long long>(commands));
    atomicAdd(&tally->blocks, static_cast<unsigned long long>(blocks));
  }
}

/// As scan_packed_crc, of what scan_packed_load_parts brings: whole payloads by `checksums`, one a vector;
/// others part by part. Of vector numbers[v], `part_checksums` has those of its parts and then that of what
/// is behind its codes.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_crc_parts(const PackedPartFiles parts, const uint32_t* slots, uint32_t vectors,
                          const byte* memory, const uint32_t* checksums, const uint32_t* part_checksums,
                          const uint32_t* numbers, uint32_t* bad) {
  __shared__ CrcTables tables;
  make_crc_tables(tables);
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    const PackedPick pick = parts.pick(vector);
    const byte* const from = memory + static_cast<uint64_t>(slots[vector]) * kPackedUnit;
    const uint32_t* const own = part_checksums + uint64_t{kParts + 1} * numbers[vector];
    bool wrong = false;
    if (pick.is_whole()) {
      wrong = vector_crc(tables, from, uint64_t{kPackedUnit} * pick.units) != checksums[vector];
    } else {
      pick.for_each_run([&](uint32_t begin, uint32_t end) {
        const uint32_t crc =
            vector_crc(tables, from + uint64_t{kPackedUnit} * begin, uint64_t{kPackedUnit} * (end - begin));
        wrong |= crc != own[begin == pick.codes ? kParts : begin / pick.bits];
      });
    }
    if (Lanes::leads() && wrong) atomicMax(bad, vectors - vector);
  }
}

}  // namespace bamquery
