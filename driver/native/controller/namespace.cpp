#include "driver/native/controller/namespace.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <stdexcept>
#include <utility>

#include "driver/native/errors.hpp"
#include "driver/native/files/direct_io.hpp"

namespace bamquery {

Namespace::Namespace(Backing backing, std::uint32_t block_bytes, bool writable, std::string path)
    : path_(std::move(path)) {
  if (block_bytes != 512 && block_bytes != 4096) {
    throw std::invalid_argument("a namespace has blocks of 512 or 4096 bytes, not " +
                                std::to_string(block_bytes));
  }
  view_.backing = backing;
  view_.block_shift = static_cast<std::uint32_t>(std::countr_zero(block_bytes));
  view_.writable = writable;
  view_.owner = this;
}

Namespace::~Namespace() {
  if (owns_memory_ && view_.data != nullptr) munmap(view_.data, view_.data_bytes);
  if (file_ >= 0) close(file_);
}

void Namespace::set_size(std::uint64_t bytes) {
  const std::uint64_t block = std::uint64_t{1} << view_.block_shift;
  view_.data_bytes = bytes;
  view_.blocks = bytes / block + (bytes % block != 0 ? 1 : 0);
}

void Namespace::open_file(int flags) {
  // NONBLOCK: a pipe must be refused, not waited for.
  file_ = open(path_.c_str(), (view_.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | flags);
  if (file_ < 0) {
    if (errno == EINVAL && (flags & O_DIRECT) != 0) {
      throw StorageError(path_, "its file system has no direct reads: map the file instead");
    }
    throw system_error(path_, "cannot be opened");
  }
  struct stat found;
  if (fstat(file_, &found) != 0) throw system_error(path_, "cannot be examined");
  if (!S_ISREG(found.st_mode) && !S_ISBLK(found.st_mode)) {
    throw StorageError(path_, "is neither a file nor a block device");
  }
  const off_t end = lseek(file_, 0, SEEK_END);
  if (end < 0) throw system_error(path_, "has no size");
  set_size(static_cast<std::uint64_t>(end));
}

std::shared_ptr<Namespace> Namespace::memory(std::uint64_t bytes, std::uint32_t block_bytes) {
  const std::shared_ptr<Namespace> made(new Namespace(Backing::kMemory, block_bytes, true, ""));
  made->set_size(bytes);
  if (bytes == 0) return made;
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  // Random blocks miss the TLB less; where there are no huge pages, small ones do.
  madvise(address, bytes, MADV_HUGEPAGE);
  made->view_.data = static_cast<std::byte*>(address);
  made->owns_memory_ = true;
  return made;
}

std::shared_ptr<Namespace> Namespace::borrowed(std::span<std::byte> memory, std::uint32_t block_bytes,
                                               bool writable) {
  const std::shared_ptr<Namespace> made(new Namespace(Backing::kMemory, block_bytes, writable, ""));
  made->set_size(memory.size());
  made->view_.data = memory.data();
  return made;
}

std::shared_ptr<Namespace> Namespace::mapped_file(const std::string& path, std::uint32_t block_bytes,
                                                  bool writable) {
  const std::shared_ptr<Namespace> made(new Namespace(Backing::kMapped, block_bytes, writable, path));
  made->open_file(0);
  if (made->view_.data_bytes == 0) return made;
  void* const address = mmap(nullptr, made->view_.data_bytes, PROT_READ | (writable ? PROT_WRITE : 0),
                             MAP_SHARED, made->file_, 0);
  if (address == MAP_FAILED) throw system_error(path, "cannot be mapped");
  made->view_.data = static_cast<std::byte*>(address);
  made->owns_memory_ = true;
  return made;
}

std::shared_ptr<Namespace> Namespace::direct_file(const std::string& path, std::uint32_t block_bytes,
                                                  bool writable) {
  const std::shared_ptr<Namespace> made(new Namespace(Backing::kDirect, block_bytes, writable, path));
  made->open_file(O_DIRECT);
  const std::int64_t smallest = direct_block_size(made->file_, path);
  if (smallest > block_bytes) {
    throw StorageError(path, "its device reads no less than " + std::to_string(smallest) +
                                 " bytes directly: the namespace needs blocks of 4096 bytes, or a map");
  }
  return made;
}

}  // namespace bamquery
