// Values of one type in an extent, read through the page cache.
#pragma once

#include "driver/core/array/array_extent.hpp"
#include "driver/core/array/element.hpp"
#include "driver/core/error_record.hpp"
#include "driver/core/page_cache/page_cache.hpp"

namespace bamquery {

/// What an array needs beside a queue pair. Errors go to `errors`, and the first is what the host raises.
struct ArrayView {
  PageCacheView cache;
  ArrayExtent extent;
  ErrorRecord* errors;
  uint64_t count;       ///< Of elements.
  uint64_t timeout_ns;  ///< For one access.
  uint32_t writable;
  uint32_t reserved;
};

/// Access to an ArrayView's elements, 1, 2, 4 or 8 bytes at multiples of their size.
///
/// Any thread may call, from divergent code and after others have left: it acts alone. A warp whose lanes are
/// all there may call as one (`Lanes::warp()`): one of them then reads a page for all that want it, and
/// misses go out together. An element is never torn; elements are in no order with each other. Nothing is
/// held from one call to the next.
///
/// An access that fails is recorded and says its status; a value that could not be read is T{}.
template <typename T, typename Queue>
class Array {
 public:
  BAMQUERY_CORE Array(const ArrayView& view, Queue& queue)
      : view_(view), queue_(queue), cache_(view.cache, view.errors) {}

  BAMQUERY_CORE uint64_t size() const { return view_.count; }

  BAMQUERY_CORE Status read(uint64_t index, T& value) {
    return access(Lone{}, true, Access::kRead, index, value);
  }

  BAMQUERY_CORE Status write(uint64_t index, T value) {
    return access(Lone{}, true, Access::kWrite, index, value);
  }

  /// The same for a group; lanes that do not want an element take part.
  template <typename Group>
  BAMQUERY_CORE Status read(Group group, bool wanted, uint64_t index, T& value) {
    return access(group, wanted, Access::kRead, index, value);
  }
  template <typename Group>
  BAMQUERY_CORE Status write(Group group, bool wanted, uint64_t index, T value) {
    return access(group, wanted, Access::kWrite, index, value);
  }

  /// out[i] = (*this)[indices[i]] for the i that fall to this group: it is number `part` of `parts`. Returns
  /// the first failure that this lane saw.
  template <typename Group>
  BAMQUERY_CORE Status gather(Group group, uint64_t part, uint64_t parts, const uint64_t* indices, T* out,
                              uint64_t count) {
    Status result = status::kSuccess;
    for (uint64_t first = part * group.count(); first < count; first += parts * group.count()) {
      const uint64_t at = first + group.rank();
      const bool wanted = at < count;
      T value{};
      const Status status = read(group, wanted, wanted ? indices[at] : 0, value);
      if (wanted) out[at] = value;
      if (result.ok()) result = status;
    }
    return result;
  }

  /// An element that can be read and assigned, as `array[i]`.
  class Element {
   public:
    BAMQUERY_CORE Element(Array& array, uint64_t index) : array_(array), index_(index) {}
    BAMQUERY_CORE operator T() const {  // NOLINT: stands for the value
      T value;
      (void)array_.read(index_, value);  // Recorded.
      return value;
    }
    BAMQUERY_CORE const Element& operator=(T value) const {
      (void)array_.write(index_, value);  // Recorded.
      return *this;
    }

   private:
    Array& array_;
    uint64_t index_;
  };
  BAMQUERY_CORE Element operator[](uint64_t index) { return {*this, index}; }

 private:
  template <typename Group>
  BAMQUERY_CORE Status access(Group group, bool wanted, Access access, uint64_t index, T& value) {
    Status status = status::kSuccess;
    if (access == Access::kRead) value = T{};
    if (wanted) status = check(access, index);
    bool pending = wanted && status.ok();
    const uint64_t at = index * sizeof(T);
    Deadline deadline{0};
    for (Backoff wait; group.any(pending);) {
      const PageId page = pending ? view_.extent.page(view_.cache, at) : PageId::none();
      const PagePin pin = cache_.acquire_many(group, page, access, queue_, view_.timeout_ns);
      if (pending) {
        status = pin.status;
        if (status.ok()) {
          byte* const place = cache_.page(pin.slot) + view_.extent.place(view_.cache, at);
          if (access == Access::kRead) {
            value = load_element<T>(place);
          } else {
            store_element(place, value);
          }
        }
      }
      cache_.release(group, pin, access);
      // Where the group's other pages, or other groups, had all of the cache: they are released by now, or
      // soon. We hold nothing, so we can wait.
      if (deadline.at_ns == 0 && group.any(!status.ok())) deadline = Deadline::in(view_.timeout_ns);
      const bool again = pending && status == status::kAllPagesPinned && !deadline.passed();
      if (pending && !again && !status.ok()) record(access, at, status);
      pending = again;
      if (pending) wait.pause();
    }
    return status;
  }

  BAMQUERY_CORE Status check(Access access, uint64_t index) {
    Status status = status::kSuccess;
    if (index >= view_.count) status = status::kOutOfBounds;
    if (access == Access::kWrite && view_.writable == 0) status = status::kReadOnly;
    if (!status.ok()) record(access, 0, status);
    return status;
  }

  BAMQUERY_CORE void record(Access access, uint64_t at, Status status) {
    const PageId page = view_.extent.page(view_.cache, at);
    const Opcode opcode = access == Access::kRead ? Opcode::kRead : Opcode::kWrite;
    record_error(view_.errors, page_request(opcode, page, view_.cache, queue_), status);
  }

  const ArrayView& view_;
  Queue& queue_;
  PageCache cache_;
};

}  // namespace bamquery
