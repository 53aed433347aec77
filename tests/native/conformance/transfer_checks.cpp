// Every size of transfer, by one page, two pages and lists of pages; nothing beside it is touched.
#include <vector>

#include "tests/native/conformance/rings.hpp"

namespace bamquery::conformance {
namespace {

// Behind a transfer, so many bytes of its slot are looked at each time; the rest once, at the end.
constexpr std::size_t kLook = 8192;

/// One block to the largest transfer: powers of two, one less, one more, and half as many more.
std::vector<std::uint32_t> block_counts(std::uint32_t most) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t power = 1; power <= most; power *= 2) {
    for (const std::uint32_t count : {power - 1, power, power + 1, power + power / 2 + 1}) {
      if (count > power / 2 && count <= most && (counts.empty() || count > counts.back()))
        counts.push_back(count);
    }
  }
  return counts;
}

void reads_of_each_size(Context& context) {
  const Space& space = context.space();
  const Rings rings(context, context.shape(1, 0, 8, context.limits().transfer_bytes, 3));
  SureLease lease(rings, context);
  Random random = context.random();
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < rings.memory().shape().slots; ++i)
    slots.push_back(slot_of_pair(context, lease.pair()));
  fill_guard(rings.memory().landing());
  const std::size_t slot_bytes = rings.memory().shape().slot_bytes;
  const auto counts = block_counts(static_cast<std::uint32_t>(slot_bytes / space.block_bytes));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint32_t slot = slots[i % slots.size()];
    read_and_compare(context, lease.pair(), slot, space, some_lba(space, random, counts[i]), counts[i]);
    const std::span<std::byte> landing(lease.pair().landing(slot), slot_bytes);
    const std::size_t bytes = std::size_t{counts[i]} * space.block_bytes;
    expect_guard(landing.subspan(bytes, std::min(kLook, slot_bytes - bytes)), "what lies behind a transfer");
    fill_guard(landing.first(bytes));
  }
  expect_guard(rings.memory().landing(), "the landing buffers");
  context.detail = std::to_string(counts.size()) + " sizes from " + std::to_string(space.block_bytes) +
                   " to " + std::to_string(std::uint64_t{counts.back()} * space.block_bytes) + " bytes";
}

void slots_of_each_size(Context& context) {
  const Space& space = context.space();
  Random random = context.random();
  std::uint32_t sizes = 0;
  for (std::uint32_t slot_bytes = space.block_bytes; slot_bytes <= context.limits().transfer_bytes;
       slot_bytes *= 2) {
    // Many of the small ones, whose lists share pages.
    const std::uint32_t slots = std::clamp((1u << 20) / slot_bytes, 2u, 63u);
    const Rings rings(context, context.shape(0, 1, 64, slot_bytes, slots));
    const SharedPair pair = rings.shared();
    const std::uint32_t blocks = slot_bytes / space.block_bytes;
    std::vector<std::uint64_t> lbas(rings.memory().shape().slots);
    for (std::uint64_t& lba : lbas) {
      lba = some_lba(space, random, blocks);
      start_read(pair, slot_of_pair(context, pair), reading(space, lba, blocks), space.block_bytes);
    }
    for (std::uint32_t slot = 0; slot < lbas.size();
         ++slot) {  // All are ours, in the order of their numbers.
      finish_read(context, pair, slot, space, reading(space, lbas[slot], blocks));
    }
    ++sizes;
  }
  context.detail = std::to_string(sizes) + " sizes of slots";
}

void writes_of_each_size(Context& context) {
  const Space& space = context.space();
  const std::uint64_t first = context.scratch();
  const Rings rings(context, context.shape(1, 0, 8, context.limits().transfer_bytes, 3));
  SureLease lease(rings, context);
  const Lease::Pair& pair = lease.pair();
  const std::size_t block = space.block_bytes;
  const std::uint32_t most = static_cast<std::uint32_t>(rings.memory().shape().slot_bytes / block);
  const std::uint32_t slot = slot_of_pair(context, pair);
  std::vector<std::byte> model((most + 2) * block);  // A block before what is written, and one behind.
  const auto write = [&](std::uint32_t at, std::uint32_t blocks, std::uint64_t contents) {
    const std::span<std::byte> bytes(model.data() + at * block, blocks * block);
    fill_pattern(contents, first + at, space.block_bytes, bytes);
    std::memcpy(pair.landing(slot), bytes.data(), bytes.size());
    EXPECT(pair.issue(slot, {Opcode::kWrite, space.nsid, first + at, blocks}).ok());
    expect_status(context, pair, slot);
  };
  const auto compare = [&](std::uint32_t at, std::uint32_t blocks) {
    fill_guard({pair.landing(slot), blocks * block});
    EXPECT(pair.issue(slot, reading(space, first + at, blocks)).ok());
    expect_status(context, pair, slot);
    expect_equal({pair.landing(slot), blocks * block}, std::span(model).subspan(at * block, blocks * block),
                 "what was written");
  };
  write(0, 1, 100);
  write(1, 1, 100);
  write(2, most, 100);
  const auto counts = block_counts(most);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    write(1, counts[i], 101 + i);
    compare(0, 1);
    compare(1, counts[i]);
    compare(1 + counts[i], 1);
  }
  compare(0, most);
  context.detail = std::to_string(counts.size()) + " sizes";
}

}  // namespace

std::vector<Check> transfer_checks() {
  return {{"rings/transfers", reads_of_each_size},
          {"rings/slot-sizes", slots_of_each_size},
          {"rings/writes", writes_of_each_size}};
}

}  // namespace bamquery::conformance
