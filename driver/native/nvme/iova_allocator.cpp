#include "driver/native/nvme/iova_allocator.hpp"

#include <algorithm>

namespace bamquery {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLargePage = 2u << 20;
constexpr IovaRange kInterruptWindow{0xfee00000, 0xfeefffff};
// What rounding up could wrap is left alone.
constexpr std::uint64_t kHighest = ~std::uint64_t{0} - (1u << 30);

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// With its guard.
std::uint64_t run_bytes(std::uint64_t bytes) { return round_up(bytes, kPage) + kPage; }

}  // namespace

IovaAllocator::IovaAllocator(const std::vector<IovaRange>& ranges) {
  for (const IovaRange& range : ranges) {
    if (range.first > range.last || range.first > kHighest) continue;
    const std::uint64_t first = std::max(range.first, kPage), last = std::min(range.last, kHighest);
    add(first, std::min(last, kInterruptWindow.first - 1) + 1);
    add(std::max(first, kInterruptWindow.last + 1), last + 1);
  }
}

void IovaAllocator::add(std::uint64_t first, std::uint64_t end) {
  first = round_up(first, kPage);
  end = end / kPage * kPage;
  if (first < end) free_[first] = end;
}

std::uint64_t IovaAllocator::allocate(std::uint64_t bytes, std::uint64_t like) {
  if (bytes == 0 || bytes > kHighest) return 0;
  const std::uint64_t wanted = run_bytes(bytes);
  const std::uint64_t period = bytes >= kLargePage ? kLargePage : kPage;
  for (const auto& [first, end] : free_) {
    const std::uint64_t at = first + (like - first) % period / kPage * kPage;
    if (at > end || end - at < wanted) continue;
    const std::uint64_t run_first = first, run_end = end;
    free_.erase(run_first);
    add(run_first, at);
    add(at + wanted, run_end);
    return at;
  }
  return 0;
}

void IovaAllocator::release(std::uint64_t iova, std::uint64_t bytes) {
  std::uint64_t first = iova, end = iova + run_bytes(bytes);
  const auto next = free_.lower_bound(first);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->second == first) {
      first = before->first;
      free_.erase(before);
    }
  }
  if (next != free_.end() && next->first == end) {
    end = next->second;
    free_.erase(next);
  }
  free_[first] = end;
}

std::uint64_t IovaAllocator::free_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [first, end] : free_) bytes += end - first;
  return bytes;
}

}  // namespace bamquery
