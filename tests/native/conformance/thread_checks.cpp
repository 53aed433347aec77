// Many threads over few pairs and slots: leased pairs, shared ones.
#include <atomic>
#include <vector>

#include "tests/native/conformance/rings.hpp"

namespace bamquery::conformance {
namespace {

/// Random reads with several slots in flight, waited for in any order.
template <Scope kScope>
std::uint64_t read_randomly(const Context& context, const ServicedPair<kScope>& pair, Random& random,
                            std::uint32_t most_slots, std::uint64_t commands) {
  const Space& space = context.space();
  const std::uint32_t most_blocks = pair.pair().view().slot_bytes / space.block_bytes;
  struct Flight {
    std::uint32_t slot;
    Request request;
  };
  std::vector<Flight> flights;
  std::uint64_t bytes = 0;
  while (commands > 0 || !flights.empty()) {
    std::uint32_t slot = 0;
    // Who holds a slot waits for no other: those with more lanes than slots would wait for each other.
    const Deadline until = flights.empty() ? context.soon() : Deadline{0};
    if (commands > 0 && flights.size() < most_slots && pair.acquire_slot(until, slot).ok()) {
      const auto blocks = static_cast<std::uint32_t>(1 + random() % most_blocks);
      flights.push_back({slot, reading(space, some_lba(space, random, blocks), blocks)});
      start_read(pair, slot, flights.back().request, space.block_bytes);
      --commands;
      continue;
    }
    EXPECT(!flights.empty(), "no slot came free");
    std::swap(flights[random() % flights.size()], flights.back());
    finish_read(context, pair, flights.back().slot, space, flights.back().request);
    bytes += std::uint64_t{flights.back().request.blocks} * space.block_bytes;
    pair.release_slot(flights.back().slot);
    flights.pop_back();
  }
  return bytes;
}

void leased_threads(Context& context) {
  std::uint64_t commands = 0;
  for (const std::uint32_t threads : {1u, 2u, 5u, 16u}) {
    const Rings rings(context, context.shape(std::min(threads, 3u), 0, 32, 16384));
    const std::uint64_t each = context.times(600) / threads + 1;
    in_threads(threads, [&](std::uint32_t thread) {
      Random random = context.random(thread);
      for (int lease_number = 0; lease_number < 3; ++lease_number) {
        SureLease lease(rings, context);
        read_randomly(context, lease.pair(), random, 8, each / 3 + 1);
        EXPECT(lease.end(context.soon()).ok());
      }
    });
    commands += threads * 3 * (each / 3 + 1);
  }
  context.detail = std::to_string(commands) + " reads by up to 16 threads";
}

void shared_threads(Context& context) {
  std::uint64_t commands = 0;
  for (const std::uint32_t pairs : {1u, 2u}) {
    for (const std::uint32_t threads : {2u, 4u, 16u}) {
      // Fewer slots than threads, and more.
      const Rings rings(context, context.shape(0, pairs, 16, 8192, threads == 4 ? 15 : 3));
      const std::uint64_t each = context.times(500) / threads + 1;
      in_threads(threads, [&](std::uint32_t thread) {
        Random random = context.random(100 + thread);
        read_randomly(context, rings.shared(thread), random, 3, each);
      });
      commands += threads * each;
      for (std::uint32_t pair = 0; pair < pairs; ++pair) {
        const SharedPair shared = rings.shared(pair);
        const QueueHeader& header = shared.pair().flags().header();
        EXPECT(header.head == header.ticket && header.tail == header.ticket);
        EXPECT(header.errors == 0 && header.missed == 0 && header.late == 0 && header.broken == 0);
        // Every slot came back.
        std::uint32_t slot = 0;
        for (std::uint32_t i = 0; i < shared.pair().view().slots; ++i) {
          EXPECT(shared.acquire_slot(Deadline{0}, slot).ok());
        }
      }
    }
  }
  context.detail = std::to_string(commands) + " reads by up to 16 threads";
}

}  // namespace

std::vector<Check> thread_checks() {
  return {{"rings/leased-threads", leased_threads}, {"rings/shared-threads", shared_threads}};
}

}  // namespace bamquery::conformance
