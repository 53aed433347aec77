// Moves runs of bytes into this GPU's memory: from pinned host memory, or from files by NVMe commands.
#include "engine/kernels/fetch/fetch.hpp"
#include "engine/kernels/scan_copy.hpp"
#include "engine/kernels/scan_launch.hpp"

namespace bamquery {

/// `bytes` from pinned host memory; both ends are multiples of 16.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_upload(const byte* from, byte* to, uint64_t bytes) {
  const auto source = reinterpret_cast<const uint4*>(from);
  const auto target = reinterpret_cast<uint4*>(to);
  const uint64_t vectors = bytes / kLoadBytes;
  const uint64_t me = static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (uint64_t i = me; i < vectors; i += static_cast<uint64_t>(gridDim.x) * kThreads) target[i] = source[i];
  const uint64_t rest = vectors * kLoadBytes + me;
  if (rest < bytes) to[rest] = from[rest];
}

/// Requests whose sources are addresses. `count` of them, or as many as `*counted` says if it is not null;
/// `next` is zero before.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    scan_load_mapped(const ScanRequest* requests, uint32_t count, const uint32_t* counted, uint32_t* next) {
  const uint32_t all = counted != nullptr ? *counted : count;
  while (true) {
    uint32_t mine = 0;
    if (Lanes::leads()) mine = atomicAdd(next, 1);
    mine = Lanes::broadcast(mine);
    if (mine >= all) break;
    const ScanRequest request = requests[mine];
    copy_run(reinterpret_cast<const byte*>(request.source), reinterpret_cast<byte*>(request.target),
             request.bytes);
  }
}

/// All vectors of a buffer whose pages are mapped, to where they are one after the other in `target`; with
/// `nulls`, only those whose bits tell. `file_rows` are of each piece, `next` is zero before, and `tally`
/// gets vectors and distinct blocks of `block_bytes`.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    scan_load_vectors(const ScanVector* vectors, uint32_t count, const ScanPlace* places,
                      const uint32_t* file_rows, const uint8_t* nulls, uint32_t bits, byte* target,
                      uint32_t block_bytes, uint32_t* next, ScanTally* tally) {
  const uint32_t size = kVectorRows * bits / 8;
  const auto wanted = [&](uint32_t vector) {
    return nulls == nullptr || static_cast<Nulls>(nulls[vector]) == Nulls::kSome;
  };
  uint32_t commands = 0;
  uint32_t blocks = 0;
  while (true) {
    uint32_t mine = 0;
    if (Lanes::leads()) mine = atomicAdd(next, 1);
    mine = Lanes::broadcast(mine);
    if (mine >= count) break;
    if (!wanted(mine)) continue;
    const ScanVector from = vectors[mine];
    const ScanPlace place = places[from.piece];
    const uint64_t rows =
        min(file_rows[from.piece] - static_cast<uint64_t>(from.number) * kVectorRows, uint64_t{kVectorRows});
    const uint64_t offset = place.offset + static_cast<uint64_t>(from.number) * size;
    const uint32_t bytes = static_cast<uint32_t>((rows * bits + 7) / 8);
    copy_run(reinterpret_cast<const byte*>(place.map + offset), target + static_cast<uint64_t>(mine) * size,
             bytes);
    commands += 1;
    blocks += new_blocks(vectors, places, wanted, mine, size, 0, bytes, block_bytes);
  }
  if (Lanes::leads() && commands != 0) {
    atomicAdd(&tally->commands, static_cast<unsigned long long>(commands));
    atomicAdd(&tally->blocks, static_cast<unsigned long long>(blocks));
  }
}

/// As scan_load_vectors, but only the parts that each vector's byte of `masks` has, of rows of 32 or 64 bits;
/// `tally` gets parts. A part is little: a warp asks for those of several vectors at once.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_load_parts(const ScanVector* vectors, const uint8_t* masks, uint32_t count, const ScanPlace* places,
                    const uint32_t* file_rows, uint32_t bits, byte* target, uint32_t block_bytes,
                    uint32_t* next, ScanTally* tally) {
  constexpr uint32_t kTaken = 32 / kParts;  // vectors: each of their parts has a lane that knows it
  constexpr uint32_t kLoads = 16;           // in flight for each lane
  const uint32_t size = kPartRows * bits / 8;
  const uint32_t loads = size / kLoadBytes;  // of a part: 32 or 64
  const uint32_t shift = lowest_bit(loads);
  const uint32_t lane = Lanes::lane();
  uint32_t commands = 0;
  uint32_t blocks = 0;
  while (true) {
    uint32_t mine = 0;
    if (Lanes::leads()) mine = atomicAdd(next, kTaken);
    mine = Lanes::broadcast(mine);
    if (mine >= count) break;
    const uint32_t vector = mine + lane / kParts;
    const uint32_t part = lane % kParts;
    uint64_t source = 0;
    uint32_t bytes = 0;
    if (vector < count && (masks[vector] >> part & 1) != 0) {
      const ScanVector from = vectors[vector];
      const ScanPlace place = places[from.piece];
      const uint64_t row = static_cast<uint64_t>(from.number) * kVectorRows + part * kPartRows;
      const uint64_t rows = file_rows[from.piece];
      if (row < rows) {
        source = place.map + place.offset + row * bits / 8;
        bytes = static_cast<uint32_t>(min(rows - row, uint64_t{kPartRows}) * bits / 8);
        blocks += new_part_blocks(vectors, places, masks, vector, part, size, bytes, block_bytes);
      }
    }
    const uint32_t wanted = __ballot_sync(~0u, bytes != 0);
    commands += __popc(wanted);
    // Lane n learns of the n-th that is wanted, and tells the others.
    uint32_t rest = wanted;
    for (uint32_t i = 0; i < lane; ++i) rest &= rest - 1;
    const uint32_t owner = rest != 0 ? lowest_bit(rest) : 0;
    source = __shfl_sync(~0u, source, owner);
    bytes = __shfl_sync(~0u, bytes, owner);
    const uint32_t all = __popc(wanted) << shift;
    for (uint32_t first = 0; first < all; first += 32 * kLoads) {
      uint4 held[kLoads];
#pragma unroll
      for (uint32_t i = 0; i < kLoads; ++i) {
        const uint32_t at = first + i * 32 + lane;
        const auto* const from = reinterpret_cast<const uint4*>(__shfl_sync(~0u, source, at >> shift));
        const uint32_t there = __shfl_sync(~0u, bytes, at >> shift);
        const uint32_t load = at & (loads - 1);
        if (at < all && load * kLoadBytes < there) held[i] = from[load];
      }
#pragma unroll
      for (uint32_t i = 0; i < kLoads; ++i) {
        const uint32_t at = first + i * 32 + lane;
        const uint64_t place = static_cast<uint64_t>(mine) * kParts + __shfl_sync(~0u, owner, at >> shift);
        const uint32_t there = __shfl_sync(~0u, bytes, at >> shift);
        const uint32_t load = at & (loads - 1);
        if (at < all && load * kLoadBytes < there) {
          reinterpret_cast<uint4*>(target + place * size)[load] = held[i];
        }
      }
    }
  }
  __syncwarp();
  blocks = __reduce_add_sync(~0u, blocks);
  if (Lanes::leads() && commands != 0) {
    atomicAdd(&tally->commands, static_cast<unsigned long long>(commands));
    atomicAdd(&tally->blocks, static_cast<unsigned long long>(blocks));
  }
}

/// Requests whose sources are places in files; each fits a slot, blocks that it only touches included. What
/// is counted are blocks of `block_bytes`.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_load_rings(const QueuePoolView pool, const ScanRequest* requests, uint32_t count,
                    const uint32_t* counted, uint32_t* next, uint32_t lba_bytes, uint32_t block_bytes,
                    uint32_t lanes, uint32_t nap_ns, uint64_t deadline_ns, ScanTally* tally,
                    ScanControl* control, ErrorRecord* errors) {
  extern __shared__ __align__(16) byte flags[];
  with_leased_pair(pool, flags, lanes, nap_ns, deadline_ns, errors, control, [&](ScanWarp& warp) {
    if (warp.width() == 0) return;
    const uint32_t all = counted != nullptr ? *counted : count;
    while (!warp.stopped()) {
      const uint32_t first = warp.take(next);
      if (first >= all) break;
      ScanRequest request{};
      if (warp.rank() < min(warp.width(), all - first)) request = requests[first + warp.rank()];
      const bool wanted = request.bytes != 0;
      const uint64_t begin = request.source / block_bytes;
      const uint64_t end = (request.source + request.bytes + block_bytes - 1) / block_bytes;
      const uint32_t blocks = wanted ? static_cast<uint32_t>(end - begin) : 0;
      const uint32_t lbas = block_bytes / lba_bytes;
      if (!warp.read(wanted, request.nsid, begin * lbas, blocks * lbas, blocks)) break;
      Lanes::sync();  // What each lane acquired with its command's word is to be seen by all.
      const uint32_t skip = static_cast<uint32_t>(request.source % block_bytes);
      for (uint32_t rank = 0; rank < min(warp.width(), all - first); ++rank) {
        const uint32_t from = warp.lane_of(rank);
        const uint32_t bytes = Lanes::broadcast(request.bytes, from);
        const uint64_t target = Lanes::broadcast(request.target, from);
        const uint32_t skipped = Lanes::broadcast(skip, from);
        copy_run(warp.landing(rank) + skipped, reinterpret_cast<byte*>(target), bytes);
      }
      Lanes::sync();  // All lanes have read the landing buffers that are written to next.
    }
    warp.report(tally);
  });
}

}  // namespace bamquery
