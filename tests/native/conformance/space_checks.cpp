// Namespaces: what the controller says of them, and several at a time.
#include <vector>

#include "driver/native/page_cache/cpu_array.hpp"
#include "tests/native/conformance/array_model.hpp"
#include "tests/native/conformance/rings.hpp"

namespace bamquery::conformance {
namespace {

void shapes(Context& context) {
  const auto session = context.open(context.shape(1, 0, 2, 4096));
  for (const Space& space : context.spaces()) {
    if (space.block_bytes != context.block_bytes()) continue;  // It need not know those of other sizes.
    const auto shape = session->controller().shape_of(space.nsid);
    EXPECT(shape.has_value());
    EXPECT(shape->nsid == space.nsid && shape->block_bytes == space.block_bytes &&
           shape->blocks == space.blocks);
    EXPECT(shape->bytes <= space.blocks * space.block_bytes &&
           shape->bytes > (space.blocks - 1) * space.block_bytes);
    EXPECT(shape->writable == space.writable);
  }
  context.detail = std::to_string(context.spaces().size()) + " namespaces";
}

/// Those whose blocks are as large as the first one's.
std::vector<Space> alike(const Context& context) {
  std::vector<Space> found;
  for (const Space& space : context.spaces()) {
    if (space.block_bytes == context.block_bytes()) found.push_back(space);
  }
  if (found.size() < 2) throw Skipped("it has one namespace of such blocks");
  return found;
}

void reads_of_several(Context& context) {
  const std::vector<Space> spaces = alike(context);
  const Rings rings(context, context.shape(0, 2, 32, 8192));
  const std::uint64_t each = context.times(200);
  in_threads(4, [&](std::uint32_t thread) {
    Random random = context.random(thread);
    const SharedPair pair = rings.shared(thread);
    const std::uint32_t slot = slot_of_pair(context, pair);
    for (std::uint64_t i = 0; i < each; ++i) {
      const Space& space = spaces[random() % spaces.size()];
      const auto blocks = static_cast<std::uint32_t>(1 + random() % (8192 / space.block_bytes));
      read_and_compare(context, pair, slot, space, some_lba(space, random, blocks), blocks);
    }
  });
  context.detail = std::to_string(spaces.size()) + " namespaces, " + std::to_string(4 * each) + " reads";
}

std::vector<Space> writable(const Context& context) {
  std::vector<Space> found;
  for (const Space& space : alike(context)) {
    if (space.writable) found.push_back(space);
  }
  if (found.size() < 2) throw Skipped("it has one namespace that takes writes");
  return found;
}

// The same blocks of each are written with different words; neither clients nor the page cache mix them up.
void writes_of_several(Context& context) {
  const std::vector<Space> spaces = writable(context);
  std::uint64_t lba = 0;
  for (const Space& space : spaces) lba = std::max(lba, space.patterned);
  const std::uint64_t count = 64;
  const std::uint32_t block = context.block_bytes();
  {
    const auto session = context.open(context.shape(1, 0, 8, 4096));
    CpuQueueClient client(session->memory(), session->controller());
    for (std::size_t i = 0; i < spaces.size(); ++i) {
      EXPECT(lba + count <= spaces[i].blocks, "a namespace has too few blocks to write to");
      std::vector<std::byte> bytes(count * block);
      fill_pattern(60 + i, lba, block, bytes);
      client.write(spaces[i].nsid, lba, bytes, context.soon(), nullptr);
    }
  }
  const CachedSession cached(context, 1, 3, 5, 4096);
  std::vector<CpuArray> arrays;
  for (const Space& space : spaces) {
    arrays.emplace_back(cached.cache, place_in(space, lba * block), count * block / 8, 8, true,
                        context.settings().patience_ns);
  }
  Random random = context.random();
  const std::uint64_t words = block / 8;
  for (std::uint64_t i = 0; i < context.times(300); ++i) {
    const std::size_t which = random() % arrays.size();
    const auto index = static_cast<std::int64_t>(random() % (count * words));
    std::uint64_t value = 0;
    arrays[which].gather(std::span(&index, 1), std::as_writable_bytes(std::span(&value, 1)));
    const auto place = static_cast<std::uint64_t>(index);
    EXPECT(value == pattern(60 + which, lba + place / words, place % words), "word " + std::to_string(index));
    arrays[which].scatter(std::span(&index, 1), std::as_bytes(std::span(&value, 1)));  // Dirty, and the same.
  }
  arrays[0].flush(context.soon());
  context.detail = std::to_string(spaces.size()) + " namespaces";
}

// Namespaces as one address space: every byte is where the stripes say.
void stripes(Context& context) {
  const std::vector<Space> spaces = writable(context);
  const std::uint32_t block = context.block_bytes();
  const std::size_t stripe = 16384;
  std::uint64_t first = 0;  // Of each namespace: a byte with which a stripe begins.
  for (const Space& space : spaces) first = std::max(first, space.patterned * block);
  first = (first + stripe - 1) / stripe * stripe;
  Random random = context.random();
  std::vector<std::uint64_t> model(40 * stripe / 8);
  for (std::uint64_t& word : model) word = random();
  {
    const CachedSession cached(context, 1, 3, 5, 4096);
    ArrayPlace place;
    for (const Space& space : spaces) place.members.push_back({0, space.nsid});
    place.stripe_bytes = stripe;
    place.offset = first * spaces.size();
    const CpuArray array(cached.cache, place, model.size(), 8, true, context.settings().patience_ns);
    array.write(0, std::as_bytes(std::span(model)));
    std::vector<std::uint64_t> values(200);
    std::vector<std::int64_t> indices(values.size());
    for (std::int64_t& index : indices) index = static_cast<std::int64_t>(random() % model.size());
    array.gather(indices, std::as_writable_bytes(std::span(values)));
    for (std::size_t i = 0; i < indices.size(); ++i)
      EXPECT(values[i] == model[static_cast<std::size_t>(indices[i])]);
    array.flush(context.soon());
  }
  const auto session = context.open(context.shape(1, 0, 8, 16384));
  CpuQueueClient client(session->memory(), session->controller());
  std::vector<std::byte> found(stripe);
  for (std::size_t number = 0; number * stripe < model.size() * 8; ++number) {
    const std::uint64_t lba = (first + number / spaces.size() * stripe) / block;
    client.read(spaces[number % spaces.size()].nsid, lba, found, context.soon(), nullptr);
    expect_equal(found, std::as_bytes(std::span(model)).subspan(number * stripe, stripe), "a stripe");
  }
  context.detail = std::to_string(spaces.size()) + " namespaces";
}

}  // namespace

std::vector<Check> space_checks() {
  return {{"namespaces/shapes", shapes},
          {"namespaces/reads", reads_of_several},
          {"namespaces/writes", writes_of_several},
          {"namespaces/stripes", stripes}};
}

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto& some : {space_checks(), transfer_checks(), ring_checks(), thread_checks(), status_checks(),
                           client_checks(), cache_checks(), array_checks(), stop_checks()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace bamquery::conformance
