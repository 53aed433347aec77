#include <random>
#include <vector>

#include "driver/native/nvme/iova_allocator.hpp"
#include "tests/native/nvme/nvme_test.hpp"

namespace bamquery::test {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLargePage = 2 << 20;

void test_first_page_and_guards() {
  IovaAllocator addresses({{0, 16 * kPage - 1}});
  CHECK(addresses.free_bytes() == 15 * kPage);
  const std::uint64_t first = addresses.allocate(1, 0), second = addresses.allocate(2 * kPage, 0);
  CHECK(first == kPage && second == first + 2 * kPage);
  CHECK(addresses.allocate(kPage, 0) == second + 3 * kPage);
  CHECK(addresses.allocate(16 * kPage, 0) == 0 && addresses.allocate(0, 0) == 0);
  CHECK(addresses.allocate(~0ull, 0) == 0);
  addresses.release(first, 1);
  CHECK(addresses.allocate(kPage, 0) == first);
}

void test_holes() {
  // As a virtual VT-d has them: 39 bits without the window of interrupts.
  const std::vector<IovaRange> ranges = {{0, 0xfedfffff}, {0xfef00000, (1ull << 39) - 1}};
  IovaAllocator addresses(ranges);
  const std::uint64_t big = addresses.allocate(0xfe000000, 0);
  CHECK(big != 0 && big + 0xfe000000 <= 0xfee00000);
  const std::uint64_t next = addresses.allocate(0x10000000, 0);
  CHECK(next >= 0xfef00000 && next + 0x10000000 <= 1ull << 39);
  // Where the kernel says nothing of the window, it is left alone as well.
  IovaAllocator unsaid({{0xfed00000, 0xff0fffff}});
  for (std::uint64_t at = unsaid.allocate(kPage, 0); at != 0; at = unsaid.allocate(kPage, 0)) {
    CHECK(at + kPage <= 0xfee00000 || at >= 0xfef00000);
  }
  CHECK(IovaAllocator({}).allocate(kPage, 0) == 0);
  IovaAllocator all({{0, ~0ull}});
  CHECK(all.allocate(1ull << 40, 0) != 0);
}

void test_large_pages() {
  IovaAllocator addresses({{0, (1ull << 39) - 1}});
  for (const std::uint64_t like : {0x7f0000345000ull, 0x7f0000200000ull, 0x1000ull}) {
    const std::uint64_t at = addresses.allocate(8 * kLargePage, like);
    CHECK(at % kLargePage == like % kLargePage);
  }
}

// Nothing overlaps, nothing is lost: against a list of what is out.
void test_random() {
  std::mt19937 random(7);
  const std::vector<IovaRange> ranges = {{0x1000, 0x4ffff}, {0x60000, 0x9ffff}, {0x100000, 0xfffffff}};
  IovaAllocator addresses(ranges);
  const std::uint64_t all = addresses.free_bytes();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  for (int i = 0; i < 20000; ++i) {
    if (!out.empty() && random() % 2 == 0) {
      const std::size_t which = random() % out.size();
      addresses.release(out[which].first, out[which].second);
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    const std::uint64_t bytes =
        random() % 50 == 0 ? kLargePage + random() % kLargePage : 1 + random() % 40000;
    const std::uint64_t at = addresses.allocate(bytes, random());
    if (at == 0) continue;
    bool inside = false;
    for (const IovaRange& range : ranges) inside |= at >= range.first && at + bytes - 1 <= range.last;
    CHECK(inside && at % kPage == 0);
    for (const auto& [other, size] : out) CHECK(at + bytes + kPage <= other + kPage || other + size <= at);
    out.emplace_back(at, bytes);
  }
  for (const auto& [at, bytes] : out) addresses.release(at, bytes);
  CHECK(addresses.free_bytes() == all);
}

}  // namespace

void test_addresses() {
  test_first_page_and_guards();
  test_holes();
  test_large_pages();
  test_random();
}

}  // namespace bamquery::test
