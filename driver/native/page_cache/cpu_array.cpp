#include "driver/native/page_cache/cpu_array.hpp"

#include <algorithm>
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

void require_room(std::size_t bytes, std::size_t elements, std::uint32_t element_bytes) {
  if (bytes != elements * element_bytes) throw std::invalid_argument("array: as many values as elements");
}

}  // namespace

CpuArray::CpuArray(std::shared_ptr<CpuPageCache> cache, std::uint32_t nsid, std::uint64_t offset,
                   std::uint64_t count, std::uint32_t element_bytes, bool writable, std::uint64_t timeout_ns)
    : cache_(std::move(cache)), element_bytes_(element_bytes) {
  with_word(element_bytes, [](auto) {});
  const auto found = cache_->controller().shape_of(nsid);
  if (!found) throw std::invalid_argument("array: there is no namespace " + std::to_string(nsid));
  const NamespaceShape& space = *found;
  const std::uint32_t block_bytes = cache_->view().block_bytes;
  if (nsid > PageId::kMaxNsid || space.block_bytes != block_bytes) {
    throw std::invalid_argument("array: namespace " + std::to_string(nsid) + " does not have blocks of " +
                                std::to_string(block_bytes) + " bytes, as the cache does");
  }
  if (offset % element_bytes != 0) {
    throw std::invalid_argument("array: byte " + std::to_string(offset) +
                                " is no multiple of the elements' " + std::to_string(element_bytes) +
                                " bytes");
  }
  if (offset > space.bytes || count > (space.bytes - offset) / element_bytes) {
    throw std::invalid_argument("array: " + std::to_string(count) + " elements from byte " +
                                std::to_string(offset) + " on do not lie within the namespace's " +
                                std::to_string(space.bytes) + " bytes");
  }
  if (writable && !space.writable) throw std::invalid_argument("array: the namespace takes no writes");
  view_.cache = cache_->view();
  view_.extent = {offset / block_bytes, offset % block_bytes, count * element_bytes, space.blocks, nsid, 0};
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
  const CpuPageCache::Pair queue = cache_->pair();
  Array<Word, const CpuPageCache::Pair> array(view, queue);
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
  const CpuPageCache::Pair queue = cache_->pair();
  Array<Word, const CpuPageCache::Pair> array(view, queue);
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
  const CpuPageCache::Pair queue = cache_->pair();
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
  const Status status = cache_->flush(view_.writable != 0 ? view_.extent.nsid : 0, deadline, errors);
  if (!status.ok()) fail(errors, status);
}

void CpuArray::fail(const ErrorRecord& errors, Status status) const {
  if (status == status::kOutOfBounds) throw std::out_of_range("array: no such element");
  ErrorRecord known = errors;
  if (known.count == 0) known.nsid = view_.extent.nsid;
  throw_failure(cache_->controller(), known, status);
}

namespace {

thread_local ErrorRecord last_error{};

std::uint32_t last_status() { return last_error.count == 0 ? 0 : last_error.status; }
std::uint32_t last_nsid() { return last_error.nsid; }
std::uint64_t last_lba() { return last_error.lba; }

// Reads or writes one element of the CpuArray at `address`.
template <typename Word, bool kWrites>
Word access_element(std::uint64_t address, std::int64_t index, Word value) {
  const auto& owner = *reinterpret_cast<const CpuArray*>(address);
  last_error = {};
  ArrayView view = owner.view();
  view.errors = &last_error;
  const CpuPageCache::Pair queue = owner.cache().pair();
  Array<Word, const CpuPageCache::Pair> array(view, queue);
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
    return ArrayFunctions{
        reinterpret_cast<std::uint64_t>(&read_element<Word>),
        reinterpret_cast<std::uint64_t>(&write_element<Word>), reinterpret_cast<std::uint64_t>(&last_status),
        reinterpret_cast<std::uint64_t>(&last_nsid), reinterpret_cast<std::uint64_t>(&last_lba)};
  });
}

}  // namespace bamquery
