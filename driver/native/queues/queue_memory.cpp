#include "driver/native/queues/queue_memory.hpp"

#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace bamquery {
namespace {

constexpr std::size_t kPage = kPrpPageBytes;
constexpr std::uint32_t kMostSlotBytes = 2u << 20;  // Above, a PRP list would fill more than a page.
constexpr std::uint32_t kMostPairs = 65534;         // Queue ids are 1 to 65,534.
constexpr std::size_t kPoolAlign = 128;             // A GPU's cache line.

static_assert(std::is_trivially_copyable_v<QueuePairView> && std::is_trivially_copyable_v<QueuePoolView>);

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

void require(bool holds, const std::string& name, std::uint64_t value, const char* allowed) {
  if (holds) return;
  throw std::invalid_argument("queue memory: " + name + " is " + std::to_string(value) + ", must be " +
                              allowed);
}

const QueueShape& checked(const QueueShape& shape) {
  require(shape.leased_pairs <= kMostPairs && shape.shared_pairs <= kMostPairs && shape.pairs() >= 1 &&
              shape.pairs() <= kMostPairs,
          "the number of queue pairs", std::uint64_t{shape.leased_pairs} + shape.shared_pairs, "1 to 65,534");
  require(std::has_single_bit(shape.depth) && shape.depth >= 2 && shape.depth <= 65536, "depth", shape.depth,
          "a power of two from 2 to 65,536");
  require(shape.slots >= 1 && shape.slots < shape.depth, "slots", shape.slots, "1 to depth - 1");
  require(shape.block_bytes == 512 || shape.block_bytes == 4096, "block_bytes", shape.block_bytes,
          "512 or 4096");
  require(std::has_single_bit(shape.slot_bytes) && shape.slot_bytes >= shape.block_bytes &&
              shape.slot_bytes <= kMostSlotBytes,
          "slot_bytes", shape.slot_bytes, "a power of two from block_bytes to 2 MiB");
  require(shape.doorbell_stride <= 15, "doorbell_stride", shape.doorbell_stride, "0 to 15");
  return shape;
}

// All pages after a slot's first, as a power of two, so that no list lies across a page's end.
std::uint32_t list_bytes(const QueueShape& shape) {
  if (shape.slot_bytes <= 2 * kPrpPageBytes) return 0;
  return shape.slot_bytes / kPrpPageBytes * static_cast<std::uint32_t>(sizeof(std::uint64_t));
}

std::size_t pool_words(const QueueShape& shape) {
  return (std::size_t{shape.leased_pairs} + 31) / 32 + 1;  // The bitmap, and the number of retired pairs.
}

std::size_t flags_stride(const QueueShape& shape) {
  return round_up(QueueFlags::bytes(shape.depth, shape.slots), kPoolAlign);
}

}  // namespace

QueueMemory::QueueMemory(const QueueShape& shape, std::byte* address)
    : shape_(checked(shape)),
      list_bytes_(list_bytes(shape)),
      submission_ring_bytes_(round_up(shape.depth * sizeof(SubmissionEntry), kPage)),
      completion_ring_bytes_(round_up(shape.depth * sizeof(CompletionEntry), kPage)),
      address_(address) {
  const std::size_t pairs = shape.pairs();
  const std::size_t slots = pairs * shape.slots;
  const std::size_t doorbells = (pairs + 1) * 2 * (std::size_t{4} << shape.doorbell_stride);
  submissions_ = round_up(doorbells, kPage);
  completions_ = submissions_ + pairs * submission_ring_bytes_;
  lists_ = completions_ + pairs * completion_ring_bytes_;
  landing_ = lists_ + round_up(slots * list_bytes_, kPage);
  size_ = landing_ + round_up(slots * shape.slot_bytes, kPage);
}

QueueMemory::QueueMemory(const QueueShape& shape) : QueueMemory(shape, nullptr) {
  void* const mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  madvise(mapped, size_, MADV_HUGEPAGE);  // Advice: fewer TLB misses where it is taken.
  address_ = static_cast<std::byte*>(mapped);
  owned_ = true;
  place({});
}

QueueMemory::QueueMemory(const QueueShape& shape, std::span<std::byte> memory, const QueuePlace& place)
    : QueueMemory(shape, memory.data()) {
  if (memory.size() < size_ || reinterpret_cast<std::uintptr_t>(memory.data()) % kPage != 0) {
    throw std::invalid_argument("queue memory: it takes " + std::to_string(size_) +
                                " bytes from a page's start on, and there are " +
                                std::to_string(memory.size()));
  }
  this->place(place);
}

QueueMemory::~QueueMemory() {
  if (owned_ && process_.is_ours()) munmap(address_, size_);
}

std::size_t QueueMemory::bytes(const QueueShape& shape) { return QueueMemory(shape, nullptr).size_; }

void QueueMemory::place(const QueuePlace& place) {
  require(place.bus % kPage == 0, "the bus address", place.bus, "a multiple of 4,096");
  require(place.bus <= ~std::uint64_t{0} - size_, "the bus address", place.bus,
          "so that the memory ends below 2^64");
  require(place.first_queue >= 1 && place.first_queue + shape_.pairs() - 1 <= kMostPairs, "the first queue",
          place.first_queue, "1 to 65,534, as the last");
  if (place.registers && place.doorbells == nullptr)
    throw std::invalid_argument("queue memory: registers are a drive's, and none are named");
  place_ = place;
  bus_ = place.bus != 0 ? place.bus : reinterpret_cast<std::uint64_t>(address_);
  write_lists();
}

void QueueMemory::write_lists() {
  const std::size_t slots = std::size_t{shape_.pairs()} * shape_.slots;
  for (std::size_t slot = 0; list_bytes_ != 0 && slot < slots; ++slot) {
    auto* const list = reinterpret_cast<std::uint64_t*>(address_ + lists_ + slot * list_bytes_);
    for (std::size_t page = 1; page < shape_.slot_bytes / kPage; ++page) {
      list[page - 1] = bus_ + landing_ + slot * shape_.slot_bytes + page * kPage;
    }
  }
}

std::uint32_t* QueueMemory::doorbell(std::uint32_t offset) const {
  return reinterpret_cast<std::uint32_t*>((place_.doorbells != nullptr ? place_.doorbells : address_) +
                                          offset);
}

// In the memory pair 0 has the first doorbells after the admin queue's, whatever its number.
std::uint32_t QueueMemory::doorbell_number(std::uint32_t pair) const {
  return place_.doorbells != nullptr ? queue_id(pair) : pair + 1;
}

std::uint32_t* QueueMemory::tail_doorbell(std::uint32_t pair) const {
  return doorbell(tail_doorbell_offset(doorbell_number(pair), shape_.doorbell_stride));
}

std::uint32_t* QueueMemory::head_doorbell(std::uint32_t pair) const {
  return doorbell(head_doorbell_offset(doorbell_number(pair), shape_.doorbell_stride));
}

std::span<std::byte> QueueMemory::drive_doorbells() const {
  if (place_.doorbells == nullptr) return {};
  const std::uint32_t last = head_doorbell_offset(queue_id(shape_.pairs() - 1), shape_.doorbell_stride);
  return {place_.doorbells, last + sizeof(std::uint32_t)};
}

std::array<QueueRegion, 4> QueueMemory::regions(bool writes) const {
  const auto between = [this](std::size_t begin, std::size_t end) {
    return std::span(address_ + begin, end - begin);
  };
  return {{{between(0, completions_), QueueAccess::kReads},
           {between(completions_, lists_), QueueAccess::kWrites},
           {between(lists_, landing_), QueueAccess::kReads},
           {between(landing_, size_), writes ? QueueAccess::kReadsAndWrites : QueueAccess::kWrites}}};
}

SubmissionEntry* QueueMemory::submissions(std::uint32_t pair) const {
  return reinterpret_cast<SubmissionEntry*>(address_ + submissions_ + pair * submission_ring_bytes_);
}

CompletionEntry* QueueMemory::completions(std::uint32_t pair) const {
  return reinterpret_cast<CompletionEntry*>(address_ + completions_ + pair * completion_ring_bytes_);
}

std::byte* QueueMemory::landing_at(std::uint64_t bus, std::uint64_t bytes) const {
  const std::uint64_t begin = bus_ + landing_;
  const std::uint64_t length = std::uint64_t{shape_.pairs()} * shape_.slots * shape_.slot_bytes;
  // Differences, since a sum of what a command says may wrap.
  if (bus < begin || bus - begin > length || bytes > length - (bus - begin)) return nullptr;
  return address_ + landing_ + (bus - begin);
}

const std::uint64_t* QueueMemory::prp_list_at(std::uint64_t bus, std::uint64_t entries) const {
  const std::uint64_t begin = bus_ + lists_;
  const std::uint64_t length = landing_ - lists_;
  if (bus % sizeof(std::uint64_t) != 0 || bus < begin || bus - begin >= length) return nullptr;
  const std::uint64_t to_page_end = (kPage - bus % kPage) / sizeof(std::uint64_t);
  if (entries > to_page_end) return nullptr;
  return reinterpret_cast<const std::uint64_t*>(address_ + lists_ + (bus - begin));
}

std::size_t QueueMemory::pool_bytes() const {
  return round_up(shape_.pairs() * sizeof(QueuePairView), kPoolAlign) +
         round_up(pool_words(shape_) * sizeof(std::uint32_t), kPoolAlign) +
         shape_.pairs() * flags_stride(shape_);
}

QueuePoolView QueueMemory::make_pool(std::span<std::byte> staging, std::byte* rings, std::byte* pool,
                                     std::byte* doorbells) const {
  if (staging.size() < pool_bytes()) {
    throw std::invalid_argument("queue memory: a pool needs " + std::to_string(pool_bytes()) +
                                " bytes, not " + std::to_string(staging.size()));
  }
  const std::size_t words_at = round_up(shape_.pairs() * sizeof(QueuePairView), kPoolAlign);
  const std::size_t flags_at = words_at + round_up(pool_words(shape_) * sizeof(std::uint32_t), kPoolAlign);
  std::memset(staging.data(), 0, pool_bytes());

  // An address of this memory as the running side has it.
  const auto there = [&](auto* here) {
    return reinterpret_cast<decltype(here)>(rings + (reinterpret_cast<std::byte*>(here) - address_));
  };
  const auto doorbell_there = [&](std::uint32_t* here) {
    if (place_.doorbells == nullptr) return there(here);
    if (doorbells == nullptr) return here;
    return reinterpret_cast<std::uint32_t*>(doorbells +
                                            (reinterpret_cast<std::byte*>(here) - place_.doorbells));
  };
  for (std::uint32_t pair = 0; pair < shape_.pairs(); ++pair) {
    const std::size_t first_slot = std::size_t{pair} * shape_.slots;
    std::byte* const lists = address_ + lists_ + first_slot * list_bytes_;
    std::byte* const landing = address_ + landing_ + first_slot * shape_.slot_bytes;
    QueuePairView view{};
    view.submissions = there(submissions(pair));
    view.completions = there(completions(pair));
    view.tail_doorbell = doorbell_there(tail_doorbell(pair));
    view.head_doorbell = doorbell_there(head_doorbell(pair));
    view.landing = there(landing);
    view.landing_bus = bus(landing);
    view.prp_lists_bus = bus(lists);
    view.flags = pool + flags_at + pair * flags_stride(shape_);
    view.depth = shape_.depth;
    view.slots = shape_.slots;
    view.slot_bytes = shape_.slot_bytes;
    view.prp_list_bytes = list_bytes_;
    view.block_bytes = shape_.block_bytes;
    view.id = queue_id(pair);
    view.read_only = place_.read_only ? 1 : 0;
    view.registers = place_.registers ? 1 : 0;
    std::memcpy(staging.data() + pair * sizeof view, &view, sizeof view);
    QueueFlags(staging.data() + flags_at + pair * flags_stride(shape_), view.depth, view.slots).initialise();
  }
  auto* const words = reinterpret_cast<std::uint32_t*>(staging.data() + words_at);
  for (std::uint32_t pair = 0; pair < shape_.leased_pairs; ++pair) words[pair / 32] |= 1u << pair % 32;

  QueuePoolView view{};
  view.pairs = reinterpret_cast<const QueuePairView*>(pool);
  view.free_pairs = reinterpret_cast<std::uint32_t*>(pool + words_at);
  view.retired_pairs = view.free_pairs + pool_words(shape_) - 1;
  view.leased_count = shape_.leased_pairs;
  view.shared_count = shape_.shared_pairs;
  view.flags_bytes = QueueFlags::bytes(shape_.depth, shape_.slots);
  return view;
}

void QueueMemory::reset_rings() { std::memset(address_, 0, lists_); }

}  // namespace bamquery
