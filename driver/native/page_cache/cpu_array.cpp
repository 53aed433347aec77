#include "driver/native/page_cache/cpu_array.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace bamquery {
namespace {

// Calls `call` with a value of the unsigned type of that size.
template <typename Call>
auto with_word(std::uint32_t bytes, Call call) {
  switch (bytes) {
    case 1:
      return call(std::uint8_t{});
    case 2:
      return call(std::uint16_t{});
    case 4:
      return call(std::uint32_t{});
    case 8:
      return call(std::uint64_t{});
    default:
      throw std::invalid_argument("array: elements have 1, 2, 4 or 8 bytes, not " + std::to_string(bytes));
  }
}

// Bytes of the address space that the namespaces make.
std::uint64_t address_space(const CpuPageCache& cache, std::span<const StripeMember> members,
                            std::uint64_t stripe_bytes, bool writable) {
  if (members.empty()) throw std::invalid_argument("array: it takes a namespace");
  std::uint64_t least = ~std::uint64_t{0};
  for (const StripeMember& member : members) {
    const NamespaceShape space = cache.shape_of(member);
    const std::string name = "array: namespace " + std::to_string(member.nsid) +
                             (cache.drives() == 1 ? "" : " of drive " + std::to_string(member.drive));
    const std::uint32_t lba_bytes = cache.queues().lba_bytes(member.drive);
    if (member.nsid > PageId::kMaxNsid || space.block_bytes != lba_bytes) {
      throw std::invalid_argument(name + " does not have blocks of " + std::to_string(lba_bytes) +
                                  " bytes, as its queue pairs do");
    }
    if (writable && !space.writable) throw std::invalid_argument(name + " takes no writes");
    least = std::min(least, space.bytes);
    const auto same = [&](const StripeMember& other) {
      return other.drive == member.drive && other.nsid == member.nsid;
    };
    if (std::ranges::count_if(members, same) > 1) {
      throw std::invalid_argument(name + " is there twice: two places of the array would be one");
    }
  }
  return striped_bytes(least, members.size(), stripe_bytes, cache.view().page_bytes);
}

void require_room(std::size_t bytes, std::size_t elements, std::uint32_t element_bytes) {
  if (bytes != elements * element_bytes) throw std::invalid_argument("array: as many values as elements");
}

}  // namespace

std::uint32_t stripe_shift(std::uint64_t stripe_bytes, std::uint32_t page_bytes) {
  if (stripe_bytes % page_bytes != 0 || !std::has_single_bit(stripe_bytes / page_bytes)) {
    throw std::invalid_argument("array: stripes of " + std::to_string(stripe_bytes) +
                                " bytes: they take a power of two of the cache's pages of " +
                                std::to_string(page_bytes));
  }
  return static_cast<std::uint32_t>(std::countr_zero(stripe_bytes / page_bytes));
}

std::uint64_t striped_bytes(std::uint64_t least, std::size_t members, std::uint64_t stripe_bytes,
                            std::uint32_t page_bytes) {
  if (members == 1) return least;
  (void)stripe_shift(stripe_bytes, page_bytes);
  return least / stripe_bytes * stripe_bytes * members;
}

CpuArray::CpuArray(std::shared_ptr<CpuPageCache> cache, ArrayPlace place, std::uint64_t count,
                   std::uint32_t element_bytes, bool writable, std::uint64_t timeout_ns)
    : cache_(std::move(cache)), members_(std::move(place.members)), element_bytes_(element_bytes) {
  with_word(element_bytes, [](auto) {});
  if (place.offset % element_bytes != 0) {
    throw std::invalid_argument("array: byte " + std::to_string(place.offset) +
                                " is no multiple of the elements' " + std::to_string(element_bytes) +
                                " bytes");
  }
  const std::uint64_t bytes = address_space(*cache_, members_, place.stripe_bytes, writable);
  if (place.offset > bytes || count > (bytes - place.offset) / element_bytes) {
    throw std::invalid_argument("array: " + std::to_string(count) + " elements from byte " +
                                std::to_string(place.offset) + " on do not lie within the " +
                                (members_.size() == 1 ? "namespace's " : "namespaces' ") +
                                std::to_string(bytes) + " bytes");
  }
  const PageCacheView& pages = cache_->view();
  view_.cache = pages;
  view_.extent = {place.offset / pages.block_bytes,
                  place.offset % pages.block_bytes,
                  count * element_bytes,
                  (bytes + pages.block_bytes - 1) / pages.block_bytes,
                  members_[0].nsid,
                  members_[0].drive};
  if (members_.size() > 1) {
    view_.extent.stripes = members_.data();
    view_.extent.members = static_cast<std::uint32_t>(members_.size());
    view_.extent.stripe_shift = stripe_shift(place.stripe_bytes, pages.page_bytes);
  } else {
    // Its last page may be a block's whose data is not whole.
    const NamespaceShape space = cache_->shape_of(members_[0]);
    view_.extent.namespace_blocks = space.blocks * (space.block_bytes / pages.block_bytes);
  }
  view_.count = count;
  view_.timeout_ns = timeout_ns;
  view_.writable = writable ? 1 : 0;
}

void CpuArray::gather(std::span<const std::int64_t> indices, std::span<std::byte> out) const {
  require_room(out.size(), indices.size(), element_bytes_);
  with_word(element_bytes_,
            [&]<typename Word>(Word) { gather_words(indices, reinterpret_cast<Word*>(out.data())); });
}

void CpuArray::scatter(std::span<const std::int64_t> indices, std::span<const std::byte> values) const {
  require_room(values.size(), indices.size(), element_bytes_);
  with_word(element_bytes_, [&]<typename Word>(Word) {
    scatter_words(indices, reinterpret_cast<const Word*>(values.data()));
  });
}

template <typename Word>
void CpuArray::gather_words(std::span<const std::int64_t> indices, Word* out) const {
  ErrorRecord errors{};
  ArrayView view = view_;
  view.errors = &errors;
  const CpuPageCache::Queues queue = cache_->queues();
  Array<Word, const CpuPageCache::Queues> array(view, queue);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Word value;
    const Status status = array.read(static_cast<std::uint64_t>(indices[i]), value);
    if (!status.ok()) fail(errors, status);
    std::memcpy(out + i, &value, sizeof value);  // Of any alignment.
  }
}

template <typename Word>
void CpuArray::scatter_words(std::span<const std::int64_t> indices, const Word* values) const {
  ErrorRecord errors{};
  ArrayView view = view_;
  view.errors = &errors;
  const CpuPageCache::Queues queue = cache_->queues();
  Array<Word, const CpuPageCache::Queues> array(view, queue);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    Word value;
    std::memcpy(&value, values + i, sizeof value);
    const Status status = array.write(static_cast<std::uint64_t>(indices[i]), value);
    if (!status.ok()) fail(errors, status);
  }
}

// Calls move_element(place in the page, element's number from `first` on), under one guard a page.
template <Access kAccess, typename Move>
void CpuArray::move(std::uint64_t first, std::uint64_t count, Move move_element) const {
  if (first > view_.count || count > view_.count - first) throw std::out_of_range("array: no such elements");
  if (kAccess == Access::kWrite && view_.writable == 0) fail({}, status::kReadOnly);
  ErrorRecord errors{};
  PageCache cache(view_.cache, &errors);
  const CpuPageCache::Queues queue = cache_->queues();
  const Lanes alone = Lanes::warp();
  const Deadline deadline = Deadline::in(view_.timeout_ns);
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t at = (first + done) * element_bytes_;
    PagePin pin =
        cache.acquire_one(alone, view_.extent.page(view_.cache, at), kAccess, queue, view_.timeout_ns);
    for (Backoff wait; pin.status == status::kAllPagesPinned && !deadline.passed(); wait.pause()) {
      // We hold nothing, so others come to an end.
      pin = cache.acquire_one(alone, view_.extent.page(view_.cache, at), kAccess, queue, view_.timeout_ns);
    }
    if (!pin.status.ok()) fail(errors, pin.status);
    const std::uint32_t place = view_.extent.place(view_.cache, at);
    const std::uint64_t here =
        std::min<std::uint64_t>((view_.cache.page_bytes - place) / element_bytes_, count - done);
    byte* const page = cache.page(pin.slot) + place;
    for (std::uint64_t i = 0; i < here; ++i) move_element(page + i * element_bytes_, done + i);
    cache.release(alone, pin, kAccess);
    done += here;
  }
}

void CpuArray::read(std::uint64_t first, std::span<std::byte> out) const {
  require_room(out.size(), out.size() / element_bytes_, element_bytes_);
  with_word(element_bytes_, [&]<typename Word>(Word) {
    move<Access::kRead>(first, out.size() / sizeof(Word), [&](const std::byte* place, std::uint64_t i) {
      const Word value = load_element<Word>(place);
      std::memcpy(out.data() + i * sizeof(Word), &value, sizeof value);
    });
  });
}

void CpuArray::write(std::uint64_t first, std::span<const std::byte> values) const {
  require_room(values.size(), values.size() / element_bytes_, element_bytes_);
  with_word(element_bytes_, [&]<typename Word>(Word) {
    move<Access::kWrite>(first, values.size() / sizeof(Word), [&](std::byte* place, std::uint64_t i) {
      Word value;
      std::memcpy(&value, values.data() + i * sizeof(Word), sizeof value);
      store_element(place, value);
    });
  });
}

void CpuArray::flush(Deadline deadline) const {
  ErrorRecord errors{};
  const auto written = view_.writable != 0 ? std::span(members_) : std::span<const StripeMember>();
  const Status status = cache_->flush(written, deadline, errors);
  if (!status.ok()) fail(errors, status);
}

void CpuArray::fail(const ErrorRecord& errors, Status status) const {
  if (status == status::kOutOfBounds) throw std::out_of_range("array: no such element");
  ErrorRecord known = errors;
  if (known.count == 0) {
    known.nsid = view_.extent.nsid;
    known.drive = static_cast<std::uint8_t>(view_.extent.drive);
  }
  cache_->throw_failure(known, status);
}

namespace {

thread_local ErrorRecord last_error{};
thread_local bool last_of_many = false;  // Drives.

std::uint32_t last_status() { return last_error.count == 0 ? 0 : last_error.status; }
std::uint32_t last_nsid() { return last_error.nsid; }
std::uint64_t last_lba() { return last_error.lba; }
std::int32_t last_drive() { return last_of_many ? last_error.drive : -1; }

// Reads or writes one element of the CpuArray at `address`.
template <typename Word, bool kWrites>
Word access_element(std::uint64_t address, std::int64_t index, Word value) {
  const auto& owner = *reinterpret_cast<const CpuArray*>(address);
  last_error = {};
  last_of_many = owner.cache().drives() > 1;
  ArrayView view = owner.view();
  view.errors = &last_error;
  const CpuPageCache::Queues queue = owner.cache().queues();
  Array<Word, const CpuPageCache::Queues> array(view, queue);
  const std::uint64_t place = static_cast<std::uint64_t>(index) + (index < 0 ? view.count : 0);
  (void)(kWrites ? array.write(place, value) : array.read(place, value));  // In last_error.
  return value;
}

// 64 bits whatever the element's size: compilers do not agree on who widens smaller arguments.
template <typename Word>
std::uint64_t read_element(std::uint64_t address, std::int64_t index) {
  return access_element<Word, false>(address, index, Word{});
}

template <typename Word>
void write_element(std::uint64_t address, std::int64_t index, std::uint64_t bits) {
  access_element<Word, true>(address, index, static_cast<Word>(bits));
}

}  // namespace

ArrayFunctions array_functions(std::uint32_t element_bytes) {
  return with_word(element_bytes, []<typename Word>(Word) {
    return ArrayFunctions{reinterpret_cast<std::uint64_t>(&read_element<Word>),
                          reinterpret_cast<std::uint64_t>(&write_element<Word>),
                          reinterpret_cast<std::uint64_t>(&last_status),
                          reinterpret_cast<std::uint64_t>(&last_nsid),
                          reinterpret_cast<std::uint64_t>(&last_lba),
                          reinterpret_cast<std::uint64_t>(&last_drive)};
  });
}

}  // namespace bamquery
