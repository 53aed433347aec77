// Payloads of packed vectors, which differ in size: where they go, what moves them, and their checksums.
#include "engine/kernels/packed/scan_packed.hpp"
#include "engine/kernels/scan_copy.hpp"
#include "engine/kernels/scan_launch.hpp"
#include "engine/kernels/scan_vector_crc.hpp"

namespace bamquery {

/// sizes[v] = units of payload that are read of vector v: their prefix sums are the slots.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_sizes(const PackedFiles files, uint32_t vectors, uint32_t* sizes) {
  const uint32_t step = gridDim.x * kThreads;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < vectors; vector += step) {
    sizes[vector] = files.bytes(vector) / kPackedUnit;
  }
}

/// Payloads whose pages are mapped, to their `slots` in `target`; `next` is zero before, and `tally` gets
/// vectors and distinct blocks.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    scan_packed_load(const PackedFiles files, const uint32_t* slots, uint32_t vectors, byte* target,
                     uint32_t* next, ScanTally* tally) {
  uint32_t commands = 0;
  uint32_t blocks = 0;
  while (true) {
    uint32_t mine = 0;
    if (Lanes::leads()) mine = atomicAdd(next, 1);
    mine = Lanes::broadcast(mine);
    if (mine >= vectors) break;
    const uint32_t bytes = files.bytes(mine);
    if (bytes == 0) continue;
    const uint64_t source = files.places[files.vectors[mine].piece].map + files.offset(mine);
    copy_run(reinterpret_cast<const byte*>(source), target + static_cast<uint64_t>(slots[mine]) * kPackedUnit,
             bytes);
    commands += 1;
    blocks += files.new_blocks(mine);
  }
  if (Lanes::leads() && commands != 0) {
    atomicAdd(&tally->commands, static_cast<unsigned long long>(commands));
    atomicAdd(&tally->blocks, static_cast<unsigned long long>(blocks));
  }
}

/// Requests for the vectors that are used, numbered by the prefix sums `numbers` of these: their payloads go
/// to their `slots` in `target`. `tally`, if it is not null, gets vectors and distinct blocks. 256 threads.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_requests(const PackedFiles files, const uint32_t* numbers, const uint32_t* slots,
                         uint32_t vectors, uint64_t target, ScanRequest* requests, ScanTally* tally) {
  const uint32_t step = gridDim.x * kThreads;
  uint32_t commands = 0;
  uint32_t blocks = 0;
  for (uint32_t vector = blockIdx.x * kThreads + threadIdx.x; vector < vectors; vector += step) {
    if (files.used[vector] == 0) continue;
    const ScanPlace place = files.places[files.vectors[vector].piece];
    ScanRequest request{};
    request.source = place.map + files.offset(vector);
    request.target = target + static_cast<uint64_t>(slots[vector]) * kPackedUnit;
    request.bytes = files.bytes(vector);
    request.nsid = place.nsid;
    requests[numbers[vector]] = request;
    if (tally == nullptr || request.bytes == 0) continue;
    commands += 1;
    blocks += files.new_blocks(vector);
  }
  if (tally == nullptr) return;
  __syncwarp();
  commands = __reduce_add_sync(~0u, commands);
  blocks = __reduce_add_sync(~0u, blocks);
  if (Lanes::leads() && commands != 0) {
    atomicAdd(&tally->commands, static_cast<unsigned long long>(commands));
    atomicAdd(&tally->blocks, static_cast<unsigned long long>(blocks));
  }
}

/// Compares payloads that are at their `slots` of `memory` with their checksums. `bad` (zero before) gets how
/// many vectors there are from the first on whose checksum differs. 256 threads, a warp a vector.
extern "C" __global__ void __launch_bounds__(kThreads)
    scan_packed_crc(const PackedFiles files, const uint32_t* slots, uint32_t vectors, const byte* memory,
                    const uint32_t* checksums, uint32_t* bad) {
  __shared__ CrcTables tables;
  make_crc_tables(tables);
  const uint32_t step = gridDim.x * kWarps;
  for (uint32_t vector = blockIdx.x * kWarps + threadIdx.x / 32; vector < vectors; vector += step) {
    if (files.used != nullptr && files.used[vector] == 0) continue;
    const byte* const from = memory + static_cast<uint64_t>(slots[vector]) * kPackedUnit;
    const uint32_t crc = vector_crc(tables, from, files.bytes(vector));
    if (Lanes::leads() && crc != checksums[vector]) atomicMax(bad, vectors - vector);
  }
}

}  // namespace bamquery
