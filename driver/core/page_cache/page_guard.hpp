// The only way to a page's bytes.
#pragma once

#include "driver/core/array/element.hpp"
#include "driver/core/page_cache/page_cache.hpp"

namespace bamquery {

/// Keeps a page where it is as long as the guard lives: it is loaded, and neither evicted nor, under a
/// WriteGuard, written back.
///
/// Each lane of a group (`Lanes::warp()` or `Lone{}`) has its own guard, for its own page (`many`) or for one
/// that all share (`one`). The group's lanes make the guards together, and end them together: a lane that
/// leaves early may leave the others behind, a lane that goes on must not.
template <Access kAccess>
class PageGuard {
 public:
  template <typename Group, typename Queue>
  BAMQUERY_CORE static PageGuard one(PageCache& cache, Group group, const PageId& page, Queue& queue,
                                     uint64_t timeout_ns) {
    return {cache, Group::kTogether, cache.acquire_one(group, page, kAccess, queue, timeout_ns)};
  }

  template <typename Group, typename Queue>
  BAMQUERY_CORE static PageGuard many(PageCache& cache, Group group, const PageId& page, Queue& queue,
                                      uint64_t timeout_ns) {
    return {cache, Group::kTogether, cache.acquire_many(group, page, kAccess, queue, timeout_ns)};
  }

  PageGuard(const PageGuard&) = delete;
  PageGuard& operator=(const PageGuard&) = delete;
  PageGuard& operator=(PageGuard&&) = delete;
  BAMQUERY_CORE PageGuard(PageGuard&& other)
      : cache_(other.cache_),
        together_(other.together_),
        pin_(other.pin_),
        page_(other.page_),
        bytes_(other.bytes_) {
    other.cache_ = nullptr;
  }
  BAMQUERY_CORE ~PageGuard() { release(); }

  /// Ends the guard early.
  BAMQUERY_CORE void release() {
    if (cache_ != nullptr && together_) cache_->release(Lanes::warp(), pin_, kAccess);
    if (cache_ != nullptr && !together_) cache_->release(Lone{}, pin_, kAccess);
    cache_ = nullptr;
    bytes_ = 0;
  }

  /// Success where the lane has its page (or wanted none).
  BAMQUERY_CORE Status status() const { return pin_.status; }

  /// Bytes of the page that its namespace has; 0 where the lane has no page.
  BAMQUERY_CORE uint32_t bytes() const { return bytes_; }

  /// The page as it lies, for bulk reads; bytes() of it, aligned to 512.
  BAMQUERY_CORE const byte* data() const { return page_; }

  /// The page as it lies, for bulk writes.
  BAMQUERY_CORE byte* data()
    requires(kAccess == Access::kWrite)
  {
    return page_;
  }

  /// Values of the type that the page holds.
  template <typename T>
  BAMQUERY_CORE uint32_t size() const {
    return bytes_ / static_cast<uint32_t>(sizeof(T));
  }

  /// kOutOfBounds, and T{}, beyond the page.
  template <typename T>
  BAMQUERY_CORE Status load(uint32_t index, T& value) const {
    value = T{};
    if (index >= size<T>()) return status::kOutOfBounds;
    value = load_element<T>(page_ + index * sizeof(T));
    return status::kSuccess;
  }

  /// kOutOfBounds beyond the page.
  template <typename T>
  BAMQUERY_CORE Status store(uint32_t index, T value)
    requires(kAccess == Access::kWrite)
  {
    if (index >= size<T>()) return status::kOutOfBounds;
    store_element(page_ + index * sizeof(T), value);
    return status::kSuccess;
  }

 private:
  BAMQUERY_CORE PageGuard(PageCache& cache, bool together, const PagePin& pin)
      : cache_(&cache), together_(together), pin_(pin) {
    if (pin.status.ok() && pin.slot != kNoPageSlot) {
      page_ = cache.page(pin.slot);
      bytes_ = cache.bytes(pin.slot);
    }
  }

  PageCache* cache_;
  bool together_;
  PagePin pin_;
  byte* page_ = nullptr;
  uint32_t bytes_ = 0;
};

using ReadGuard = PageGuard<Access::kRead>;
using WriteGuard = PageGuard<Access::kWrite>;

}  // namespace bamquery
