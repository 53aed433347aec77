#include <cstring>

#include "driver/native/aligned_buffer.hpp"
#include "driver/native/bench/block.hpp"

namespace bamquery {

BenchClients::Work mapped_work(const BlockJob& job, const BenchBacking& backing, WrittenBlocks& written) {
  return [job, &backing, &written](std::uint32_t client, const std::atomic<bool>& stop, ClientTally& tally) {
    const AlignedBuffer memory = allocate_aligned(job.block_bytes);
    const std::span<std::byte> buffer(memory.get(), job.block_bytes);
    // Relaxed: `stop` only says to hurry.
    for (std::uint64_t count = 0; !stop.load(std::memory_order_relaxed); ++count) {
      const std::uint64_t block = job.pattern.block(client, count);
      std::byte* const place = backing.bytes().data() + job.offset(block);
      const bool writes = job.writes(client, count);
      if (writes) job.prepare(buffer, block);
      const std::uint64_t start = now_ns();
      if (writes) {
        std::memcpy(place, buffer.data(), buffer.size());
        written.mark(block);
      } else {
        std::memcpy(buffer.data(), place, buffer.size());
      }
      tally.add(job.block_bytes, now_ns() - start);
      if (!writes) job.compare(buffer, block, tally);
    }
  };
}

}  // namespace bamquery
