// Page guards: whole pages of each size, all pages pinned, many threads that want the same.
#include <vector>

#include "driver/core/page_cache/page_guard.hpp"
#include "driver/native/status_text.hpp"
#include "tests/native/conformance/array_model.hpp"

namespace bamquery::conformance {
namespace {

/// Reads pages by guards, in one thread's name.
struct PageReader {
  PageReader(const Context& all, const CachedSession& cached)
      : context(all),
        queues(cached.cache->queues()),
        cache(cached.cache->view(), &errors),
        page_bytes(cached.cache->view().page_bytes) {}

  ReadGuard read(std::uint64_t page) {
    const Space& space = context.space();
    const std::uint64_t blocks = page_bytes / space.block_bytes;
    const auto left = static_cast<std::uint32_t>(std::min(blocks, space.blocks - page * blocks));
    return ReadGuard::one(cache, Lone{}, {space.nsid, left, page}, queues, context.settings().patience_ns);
  }
  void expect_page(std::uint64_t page) {
    const ReadGuard guard = read(page);
    EXPECT(guard.status().ok(), status_text(guard.status()));
    EXPECT(guard.bytes() == page_bytes);
    expect_pattern(context.space(), page * (page_bytes / context.block_bytes()),
                   {guard.data(), guard.bytes()});
  }

  const Context& context;
  ErrorRecord errors{};
  const CpuPageCache::Queues queues;
  PageCache cache;
  const std::uint32_t page_bytes;
};

void page_sizes(Context& context) {
  const Space& space = context.space();
  Random random = context.random();
  std::uint64_t pages = 0;
  for (std::uint32_t page_bytes = space.block_bytes; page_bytes <= context.limits().transfer_bytes;
       page_bytes *= 2) {
    const CachedSession cached(context, 1, 3, 3, page_bytes);
    PageReader reader(context, cached);
    const std::uint64_t there = space.patterned * space.block_bytes / page_bytes;
    if (there == 0) break;
    const std::uint64_t reads = page_bytes > 65536 ? 2 : 8;
    for (std::uint64_t i = 0; i < reads; ++i) reader.expect_page(random() % there);
    pages += reads;
    const CacheCounters counters = cached.cache->statistics();
    EXPECT(counters.hits + counters.misses == reads && counters.failures == 0);
  }
  context.detail = std::to_string(pages) + " pages of " + std::to_string(space.block_bytes) + " to " +
                   std::to_string(context.limits().transfer_bytes) + " bytes";
}

void all_pinned(Context& context) {
  const CachedSession cached(context, 1, 3, 4, 4096);
  PageReader reader(context, cached);
  {
    std::vector<ReadGuard> guards;
    for (std::uint64_t page = 0; page < 4; ++page) {
      guards.push_back(reader.read(page));
      EXPECT(guards.back().status().ok());
    }
    EXPECT(reader.read(9).status() == status::kAllPagesPinned);
    reader.expect_page(2);  // Those that are there still are.
    guards.pop_back();
    reader.expect_page(9);
  }
  for (std::uint64_t page = 0; page < 12; ++page) reader.expect_page(page);
}

// Beyond the namespace's end: an error that says where, to all who want the page, and each time.
void failed_pages(Context& context) {
  const Space& space = context.space();
  const CachedSession cached(context, 1, 3, 4, 4096);
  const std::uint32_t blocks = std::max(4096u / space.block_bytes, 1u);
  const std::uint64_t page = space.blocks / blocks + 1;
  in_threads(4, [&](std::uint32_t) {
    PageReader reader(context, cached);
    for (int turn = 0; turn < 10; ++turn) {
      const ReadGuard guard = ReadGuard::one(reader.cache, Lone{}, {space.nsid, blocks, page}, reader.queues,
                                             context.settings().patience_ns);
      EXPECT(guard.status() == status::kLbaOutOfRange || guard.status() == status::kAllPagesPinned,
             status_text(guard.status()));
    }
    if (reader.errors.count > 0) {
      EXPECT(reader.errors.lba == page * blocks && reader.errors.nsid == space.nsid);
      EXPECT(Status{reader.errors.status} == status::kLbaOutOfRange);
    }
  });
  PageReader reader(context, cached);
  for (std::uint64_t good = 0; good < 8; ++good) reader.expect_page(good);
}

void same_pages(Context& context) {
  const CachedSession cached(context, 2, 3, 8, 4096);
  const std::uint64_t turns = context.times(100);
  const std::uint64_t there =
      std::min<std::uint64_t>(20, context.space().patterned * context.block_bytes() / 4096);
  in_threads(6, [&](std::uint32_t) {
    Random random = context.random();  // Everybody wants the same at about the same time.
    PageReader reader(context, cached);
    for (std::uint64_t turn = 0; turn < turns; ++turn) reader.expect_page(random() % there);
  });
  const CacheCounters counters = cached.cache->statistics();
  EXPECT(counters.hits + counters.misses + counters.coalesced == 6 * turns && counters.failures == 0);
  context.detail = std::to_string(counters.hits) + " hits, " + std::to_string(counters.misses) + " misses, " +
                   std::to_string(counters.coalesced) + " waited for others' reads";
}

}  // namespace

std::vector<Check> cache_checks() {
  return {{"cache/pages", page_sizes},
          {"cache/pinned", all_pinned},
          {"cache/failures", failed_pages},
          {"cache/same-pages", same_pages}};
}

}  // namespace bamquery::conformance
