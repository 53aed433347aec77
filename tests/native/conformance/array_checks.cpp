// Arrays larger than their page cache, byte for byte as a model in memory has them.
#include <atomic>
#include <stdexcept>
#include <vector>

#include "tests/native/conformance/array_model.hpp"

namespace bamquery::conformance {
namespace {

constexpr std::size_t kBytes = 256 << 10;  // 64 pages of 4 KiB, of which the cache has a few.
constexpr std::uint32_t kPages = 7;
constexpr std::uint32_t kPageBytes = 4096;

using Bytes = std::vector<std::byte>;

/// Random gathers, scatters and slices of elements of so many bytes, in one thread.
void random_program(const Context& context, const CpuArray& array, std::uint32_t width, Bytes& model,
                    Digest& digest, Random random, std::uint64_t steps) {
  const std::uint64_t count = array.count();
  std::vector<std::int64_t> indices;
  Bytes values;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::uint64_t kind = random() % 16;
    const std::uint64_t elements = 1 + random() % 100;
    const std::uint64_t first = random() % (count - elements);
    values.resize(elements * width);
    const std::span<std::byte> slice(model.data() + first * width, values.size());
    if (kind < 8) {
      // Half of them near each other, so that pages are found in the cache, too.
      indices.resize(elements);
      for (std::int64_t& index : indices) {
        index = static_cast<std::int64_t>(kind % 2 == 0 ? random() % count : first + random() % elements);
      }
    }
    if (kind < 4) {
      array.gather(indices, values);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        const auto at = static_cast<std::size_t>(indices[i]) * width;
        EXPECT(std::memcmp(values.data() + i * width, model.data() + at, width) == 0,
               "element " + std::to_string(indices[i]));
      }
      digest.add(values);
    } else if (kind < 8) {
      for (std::byte& value : values) value = static_cast<std::byte>(random());
      array.scatter(indices, values);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        std::memcpy(model.data() + static_cast<std::size_t>(indices[i]) * width, values.data() + i * width,
                    width);
      }
    } else if (kind < 11) {
      array.read(first, values);
      expect_equal(values, slice, "a slice");
      digest.add(values);
    } else if (kind < 15) {
      for (std::byte& value : values) value = static_cast<std::byte>(random());
      array.write(first, values);
      std::memcpy(slice.data(), values.data(), values.size());
    } else if (step % 5 == 0) {
      array.flush(context.soon());
    }
  }
}

void model_of(Context& context, std::uint32_t width) {
  Bytes model = write_scratch(context, kBytes, context.random(width));
  Digest digest;
  CacheCounters counters{};
  {
    const CachedSession cached(context, 1, 3, kPages, kPageBytes);
    const CpuArray array = scratch_array(context, cached, kBytes, width);
    random_program(context, array, width, model, digest, context.random(20 + width), context.times(60));
    array.flush(context.soon());
    counters = cached.cache->statistics();
    EXPECT(counters.hits > 0 && counters.misses > kPages && counters.write_backs > 0 &&
           counters.failures == 0);
  }
  const Bytes found = read_scratch(context, kBytes);
  expect_equal(found, model, "what lies in the namespace");
  digest.add(found);
  context.detail = digest.text() + ", " + std::to_string(counters.misses) + " misses, " +
                   std::to_string(counters.write_backs) + " pages written back";
}

// Each thread has elements of its own, in pages that all share.
void threads(Context& context) {
  constexpr std::uint32_t kThreads = 4;
  std::uint64_t write_backs = 0;
  Digest digest;
  for (const std::uint32_t width : {1u, 8u}) {
    Bytes model = write_scratch(context, kBytes, context.random(width));
    {
      const CachedSession cached(context, 2, 3, kPages + kThreads, kPageBytes);
      const CpuArray array = scratch_array(context, cached, kBytes, width);
      const std::uint64_t turns = context.times(6);
      in_threads(kThreads, [&](std::uint32_t thread) {
        Random random = context.random(50 + thread);
        std::vector<std::int64_t> indices(60);
        Bytes values(indices.size() * width);
        for (std::uint64_t turn = 0; turn < turns; ++turn) {
          for (std::int64_t& index : indices) {
            index = static_cast<std::int64_t>(random() % (array.count() / kThreads) * kThreads + thread);
          }
          for (std::byte& value : values) value = static_cast<std::byte>(random());
          array.scatter(indices, values);
          for (std::size_t i = 0; i < indices.size(); ++i) {
            // Bytes of different threads are different objects: nobody else touches these.
            std::memcpy(model.data() + static_cast<std::size_t>(indices[i]) * width,
                        values.data() + i * width, width);
          }
          if (turn % 4 == thread) array.flush(context.soon());
          array.gather(indices, values);
          for (std::size_t i = 0; i < indices.size(); ++i) {
            const auto at = static_cast<std::size_t>(indices[i]) * width;
            EXPECT(std::memcmp(values.data() + i * width, model.data() + at, width) == 0,
                   "element " + std::to_string(indices[i]));
          }
        }
      });
      array.flush(context.soon());
      write_backs += cached.cache->statistics().write_backs;
    }
    const Bytes found = read_scratch(context, kBytes);
    expect_equal(found, model, "what lies in the namespace");
    digest.add(found);
  }
  context.detail = digest.text() + ", " + std::to_string(write_backs) + " pages written back";
}

// All write to the same elements, values whose bytes are alike: one of two halves would show.
void torn(Context& context, std::uint32_t width) {
  constexpr std::uint32_t kElements = 5;
  const std::size_t bytes = 64 << 10;
  const CachedSession cached(context, 1, 3, 4, kPageBytes);
  const CpuArray array = scratch_array(context, cached, bytes, width);
  const auto is_whole = [&](const std::byte* value) {
    for (std::uint32_t i = 1; i < width; ++i) {
      if (value[i] != value[0]) return false;
    }
    return true;
  };
  // One at each end of pages, the others far from them: more pages than the cache has.
  const std::uint64_t per_page = kPageBytes / width;
  std::vector<std::int64_t> indices;
  for (std::uint64_t i = 0; i < kElements; ++i) {
    indices.push_back(static_cast<std::int64_t>((3 * i + 1) * per_page - 1));
    indices.push_back(static_cast<std::int64_t>((3 * i + 1) * per_page));
  }
  array.scatter(indices, Bytes(indices.size() * width));
  const std::uint64_t turns = context.times(12);
  const auto access = [&](std::uint32_t thread, std::span<const std::int64_t> at, std::uint64_t times) {
    Random random = context.random(80 + thread);
    Bytes values(at.size() * width);
    for (std::uint64_t turn = 0; turn < times; ++turn) {
      if (thread % 2 == 0) {
        for (std::size_t i = 0; i < at.size(); ++i) {
          std::memset(values.data() + i * width, static_cast<int>(random() % 256), width);
        }
        array.scatter(at, values);
      } else {
        array.gather(at, values);
        for (std::size_t i = 0; i < at.size(); ++i) {
          EXPECT(is_whole(values.data() + i * width), "element " + std::to_string(at[i]) + " is torn");
        }
      }
    }
  };
  in_threads(4, [&](std::uint32_t thread) { access(thread, indices, turns); });
  // One element alone, with nothing but accesses to it.
  const std::vector<std::int64_t> same(200, indices[0]);
  in_threads(2, [&](std::uint32_t thread) { access(thread, same, 20 * turns); });
  array.flush(context.soon());
}

void none_is_torn(Context& context) {
  for (const std::uint32_t width : {2u, 4u, 8u}) torn(context, width);
}

// An array over the pattern, read only.
void pattern_words(Context& context) {
  const Space& space = context.space();
  const CachedSession cached(context, 2, 7, 16, kPageBytes);
  const std::uint64_t words = space.block_bytes / 8;
  const std::uint64_t count = std::min<std::uint64_t>(space.patterned, 4096) * words;
  const CpuArray array(cached.cache, place_in(space, 0), count, 8, false, context.settings().patience_ns);
  in_threads(3, [&](std::uint32_t thread) {
    Random random = context.random(thread);
    std::vector<std::int64_t> indices(context.times(300));
    for (std::int64_t& index : indices) index = static_cast<std::int64_t>(random() % count);
    std::vector<std::uint64_t> values(indices.size());
    array.gather(indices, std::as_writable_bytes(std::span(values)));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto index = static_cast<std::uint64_t>(indices[i]);
      EXPECT(values[i] == pattern(space.contents, index / words, index % words),
             "word " + std::to_string(index));
    }
  });
  bool refused = false;
  try {
    const std::int64_t beyond = static_cast<std::int64_t>(count);
    std::uint64_t value = 0;
    array.gather(std::span(&beyond, 1), std::as_writable_bytes(std::span(&value, 1)));
  } catch (const std::out_of_range&) {
    refused = true;
  }
  EXPECT(refused, "there is no such element");
}

// The last page of a namespace has fewer blocks than the others.
void last_page(Context& context) {
  const Space& space = context.space();
  context.scratch();  // What it writes to begins before.
  const std::uint64_t bytes = space.blocks * space.block_bytes;
  std::uint32_t page_bytes = std::min(65536u, context.limits().transfer_bytes);
  while (page_bytes > space.block_bytes && bytes % page_bytes == 0) page_bytes /= 2;
  if (bytes % page_bytes == 0) throw Skipped("its size is a multiple of the largest page");
  const std::uint64_t first = bytes - bytes % page_bytes - page_bytes;
  Random random = context.random();
  std::vector<std::uint64_t> model((bytes - first) / 8);
  for (std::uint64_t& word : model) word = random();
  for (const bool writes : {true, false}) {
    const CachedSession cached(context, 1, 3, 2, page_bytes);
    const CpuArray array(cached.cache, place_in(space, first), model.size(), 8, writes,
                         context.settings().patience_ns);
    std::vector<std::uint64_t> found(model.size());
    if (writes) {
      array.write(0, std::as_bytes(std::span(model)));
      array.flush(context.soon());
    }
    array.read(0, std::as_writable_bytes(std::span(found)));
    EXPECT(found == model);
  }
  context.detail =
      "pages of " + std::to_string(page_bytes) + " bytes, the last of " + std::to_string(bytes % page_bytes);
}

}  // namespace

std::vector<Check> array_checks() {
  std::vector<Check> checks;
  for (const std::uint32_t width : {1u, 2u, 4u, 8u}) {
    checks.push_back(
        {"array/model-" + std::to_string(width), [width](Context& context) { model_of(context, width); }});
  }
  checks.push_back({"array/threads", threads});
  checks.push_back({"array/torn", none_is_torn});
  checks.push_back({"array/pattern", pattern_words});
  checks.push_back({"array/last-page", last_page});
  return checks;
}

}  // namespace bamquery::conformance
