// Rings at every depth, through their wraps; command identifiers through theirs; doorbells counted.
#include <cstdio>
#include <vector>

#include "tests/native/conformance/rings.hpp"

namespace bamquery::conformance {
namespace {

/// Keeps every slot busy, so that the ring is as full as it gets, until so many commands are over.
template <Scope kScope>
void fill_ring(const Context& context, const ServicedPair<kScope>& pair, Random& random,
               std::uint64_t commands) {
  const Space& space = context.space();
  const QueuePairView& view = pair.pair().view();
  std::vector<std::uint32_t> slots;
  std::vector<Request> requests;
  for (std::uint32_t i = 0; i < view.slots; ++i) slots.push_back(slot_of_pair(context, pair));
  std::uint32_t none = 0;
  EXPECT(pair.acquire_slot(Deadline{0}, none) == status::kNoSlot);
  const QueueHeader& header = pair.pair().flags().header();
  const std::uint32_t before = header.ticket;
  requests.resize(slots.size());
  for (std::uint64_t i = 0; i < commands + slots.size(); ++i) {
    const std::size_t at = i % slots.size();
    if (i >= slots.size() && i - slots.size() < commands) {
      finish_read(context, pair, slots[at], space, requests[at]);
    }
    if (i >= commands) continue;
    requests[at] = reading(space, some_lba(space, random, 1), 1);
    start_read(pair, slots[at], requests[at], space.block_bytes);
  }
  for (const std::uint32_t slot : slots) pair.release_slot(slot);
  EXPECT(header.ticket - before == commands && header.tail == header.ticket && header.head == header.ticket);
  EXPECT(header.errors == 0 && header.missed == 0 && header.broken == 0);
}

void depths(Context& context) {
  Random random = context.random();
  std::uint64_t total = 0;
  const std::uint32_t deepest = context.limits().depth;
  for (std::uint32_t depth = 2; depth <= deepest; depth *= 2) {
    // Counters begin two rounds before they wrap: two and a half go through the wraps of phase and counters.
    const bool deep = depth > 2048;
    if (deep && depth < deepest && context.settings().effort < 4) continue;
    const auto commands = deep ? depth + depth / 8 : 2 * depth + depth / 2 + 8;
    const Rings rings(context, context.shape(1, 1, depth, context.block_bytes()));
    {
      SureLease lease(rings, context);
      fill_ring(context, lease.pair(), random, commands);
      EXPECT(lease.end(context.soon()).ok());
    }
    if (!deep) fill_ring(context, rings.shared(), random, commands);
    total += commands * (deep ? 1u : 2u);
    // One slot only: a ring that is never more than one entry full.
    if (depth > 64) continue;
    const Rings narrow(context, context.shape(0, 1, depth, context.block_bytes(), 1));
    fill_ring(context, narrow.shared(), random, 2 * depth + 3);
  }
  context.detail = "depths 2 to " + std::to_string(deepest) + ", " + std::to_string(total) + " commands";
}

void tags(Context& context) {
  Random random = context.random();
  std::uint64_t wraps = 0;
  for (const std::uint32_t depth : {64u, 1024u}) {
    const Rings rings(context, context.shape(0, 1, depth, context.block_bytes(), 2));
    const SharedPair pair = rings.shared();
    const std::uint32_t real = rings.memory().shape().depth;
    const std::uint32_t slots[] = {slot_of_pair(context, pair), slot_of_pair(context, pair)};
    const auto tag = [&](std::uint32_t slot) { return CommandWord{pair.pair().flags().command(slot)}.tag(); };
    std::uint32_t last[] = {tag(slots[0]), tag(slots[1])};
    for (std::uint64_t i = 0; i < 65536 / real + 10; ++i) {
      Request requests[2];
      for (const std::uint32_t at : {0u, 1u}) {
        requests[at] = reading(context.space(), some_lba(context.space(), random, 1), 1);
        start_read(pair, slots[at], requests[at], context.block_bytes());
      }
      for (const std::uint32_t at : {1u, 0u}) {
        finish_read(context, pair, slots[at], context.space(), requests[at]);
        const std::uint32_t seen = tag(slots[at]);
        EXPECT(seen == ((last[at] + real) & 0xffff));
        wraps += seen < last[at] ? 1 : 0;
        last[at] = seen;
      }
    }
  }
  EXPECT(wraps >= 4);
  context.detail = std::to_string(wraps) + " wraps";
}

/// Doorbells of the tail that `commands` reads take, `batch` of them told of together.
double doorbells_per_command(const Context& context, const SharedPair& pair, std::uint32_t batch,
                             std::uint64_t commands) {
  Random random = context.random(batch);
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < batch; ++i) slots.push_back(slot_of_pair(context, pair));
  const QueueHeader& header = pair.pair().flags().header();
  const std::uint32_t before = header.doorbells;
  std::vector<Request> requests(batch);
  std::uint64_t done = 0;
  for (; done < commands; done += batch) {
    for (std::uint32_t i = 0; i < batch; ++i) {
      requests[i] = reading(context.space(), some_lba(context.space(), random, 1), 1);
      fill_guard({pair.landing(slots[i]), context.block_bytes()});
      EXPECT(pair.issue(Silent{}, true, slots[i], requests[i]).ok());
    }
    pair.ring_doorbell();
    for (std::uint32_t i = 0; i < batch; ++i) {
      finish_read(context, pair, slots[i], context.space(), requests[i]);
    }
  }
  for (const std::uint32_t slot : slots) pair.release_slot(slot);
  const std::uint32_t rung = header.doorbells - before;
  EXPECT(rung == done / batch, std::to_string(rung) + " doorbells");
  return rung / static_cast<double>(done);
}

void doorbells(Context& context) {
  const Rings rings(context, context.shape(0, 1, 64, context.block_bytes()));
  const SharedPair pair = rings.shared();
  const std::uint64_t commands = context.times(1000);
  const double single = doorbells_per_command(context, pair, 1, commands / 4);
  const double warp = doorbells_per_command(context, pair, 32, commands);
  const double ring = doorbells_per_command(context, pair, rings.memory().shape().slots, commands);
  EXPECT(warp <= 0.1 && ring <= 0.1);
  char text[128];
  std::snprintf(text, sizeof text,
                "per command %.3f one by one, %.3f in batches of 32, %.3f of %u at depth %u", single, warp,
                ring, rings.memory().shape().slots, rings.memory().shape().depth);
  context.detail = text;
}

}  // namespace

std::vector<Check> ring_checks() {
  return {{"rings/depths", depths}, {"rings/tags", tags}, {"rings/doorbells", doorbells}};
}

}  // namespace bamquery::conformance
