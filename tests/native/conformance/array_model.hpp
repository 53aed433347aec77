// What an array in a namespace must be like: the same bytes in plain memory.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "driver/native/page_cache/cpu_array.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/conformance/check.hpp"
#include "tests/native/conformance/content.hpp"

namespace bamquery::conformance {

/// A session with a page cache and no other user.
struct CachedSession {
  CachedSession(const Context& context, std::uint32_t pairs, std::uint32_t slots, std::uint32_t pages,
                std::uint32_t page_bytes)
      : session(context.open(context.shape(0, pairs, 16, page_bytes, slots))), cache(made(pages)) {}
  ~CachedSession() { cache.reset(); }
  CachedSession(const CachedSession&) = delete;
  CachedSession& operator=(const CachedSession&) = delete;

  std::unique_ptr<Session> session;
  std::shared_ptr<CpuPageCache> cache;

 private:
  std::shared_ptr<CpuPageCache> made(std::uint32_t pages) const {
    const CpuPageCache::Source source{&session->memory(), &session->controller()};
    return std::make_shared<CpuPageCache>(std::span(&source, 1), pages, session->memory().shape().slot_bytes);
  }
};

/// A namespace's bytes from one on.
inline ArrayPlace place_in(const Space& space, std::uint64_t offset) {
  return {{{0, space.nsid}}, 0, offset};
}

/// Blocks of the scratch area through a client of its own.
inline std::vector<std::byte> read_scratch(const Context& context, std::size_t bytes) {
  const auto session = context.open(context.shape(1, 0, 32, 16384));
  CpuQueueClient client(session->memory(), session->controller());
  std::vector<std::byte> found(bytes);
  client.read(context.space().nsid, context.scratch(), found, context.soon(), nullptr);
  return found;
}

/// Random bytes there, the same wherever the scratch area is, as a model of it.
inline std::vector<std::byte> write_scratch(const Context& context, std::size_t bytes, Random random) {
  const auto session = context.open(context.shape(1, 0, 32, 16384));
  CpuQueueClient client(session->memory(), session->controller());
  std::vector<std::byte> model(bytes);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = random();
    std::memcpy(model.data() + at, &word, sizeof word);
  }
  client.write(context.space().nsid, context.scratch(), model, context.soon(), nullptr);
  return model;
}

/// An array over the scratch area.
inline CpuArray scratch_array(const Context& context, const CachedSession& cached, std::size_t bytes,
                              std::uint32_t element_bytes) {
  const ArrayPlace place = place_in(context.space(), context.scratch() * context.block_bytes());
  return {cached.cache, place, bytes / element_bytes, element_bytes, true, context.settings().patience_ns};
}

/// Of all that was seen, in order: the same in every run, over any controller (FNV-1a).
class Digest {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte each : bytes) {
      value_ = (value_ ^ std::to_integer<std::uint64_t>(each)) * 0x100000001b3u;
    }
  }
  std::string text() const {
    char text[24];
    std::snprintf(text, sizeof text, "digest %016llx", static_cast<unsigned long long>(value_));
    return text;
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace bamquery::conformance
