#include "driver/native/nvme/dma_space.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <string>

#include "driver/native/errors.hpp"

namespace bamquery {
namespace {

constexpr std::size_t kPage = 4096;

// A page that was never written may be the kernel's page of zeros, which is left behind by the first write:
// the device would not see what is written.
void make_pages_own(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    volatile std::byte& first = bytes[at];
    first = first;
  }
}

}  // namespace

DmaMapping& DmaMapping::operator=(DmaMapping&& other) noexcept {
  end();
  space_ = std::exchange(other.space_, nullptr);
  iova_ = std::exchange(other.iova_, 0);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

void DmaMapping::end() noexcept {
  if (space_ != nullptr) std::exchange(space_, nullptr)->unmap(iova_, bytes_);
}

DmaSpace::DmaSpace(NvmeDevice& device) : device_(device), addresses_(device.iova_ranges()) {}

DmaMapping DmaSpace::map(std::span<const QueueRegion> regions) {
  std::byte* const first = regions.front().bytes.data();
  std::size_t bytes = 0;
  for (const QueueRegion& region : regions) bytes += region.bytes.size();
  const std::lock_guard lock(mutex_);
  const std::uint64_t iova = addresses_.allocate(bytes, reinterpret_cast<std::uint64_t>(first));
  if (iova == 0) {
    throw StorageError(device_.name(), device_.name() + ": no addresses are left for " +
                                           std::to_string(bytes) + " bytes more: the IOMMU allows " +
                                           std::to_string(addresses_.free_bytes()) + " bytes in all");
  }
  DmaMapping mapping;
  mapping.space_ = this;
  mapping.iova_ = iova;
  std::size_t mapped = 0;
  try {
    madvise(first, bytes, MADV_DONTFORK);
    make_pages_own({first, bytes});
    for (const QueueRegion& region : regions) {
      if (region.bytes.empty()) continue;
      device_.map_dma(region.bytes, iova + mapped, region.access);
      mapped += region.bytes.size();
    }
  } catch (...) {
    mapping.space_ = nullptr;  // we hold the lock
    if (mapped == 0 || device_.unmap_dma(iova, mapped)) addresses_.release(iova, bytes);
    madvise(first, bytes, MADV_DOFORK);
    throw;
  }
  mapping.bytes_ = {first, bytes};
  return mapping;
}

void DmaSpace::unmap(std::uint64_t iova, std::span<std::byte> bytes) noexcept {
  if (!process_.is_ours()) return;
  const std::lock_guard lock(mutex_);
  if (device_.unmap_dma(iova, bytes.size())) addresses_.release(iova, bytes.size());
  madvise(bytes.data(), bytes.size(), MADV_DOFORK);
}

DmaPages::DmaPages(DmaSpace& space, std::size_t bytes, QueueAccess access) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(mapped), bytes};
  try {
    const QueueRegion region{bytes_, access};
    mapping_ = space.map({&region, 1});
  } catch (...) {
    munmap(mapped, bytes);
    throw;
  }
}

DmaPages::~DmaPages() {
  mapping_.end();
  if (process_.is_ours()) munmap(bytes_.data(), bytes_.size());
}

void DmaPages::clear() { std::memset(bytes_.data(), 0, bytes_.size()); }

}  // namespace bamquery
