// What a software controller's commands read and write: memory, or a file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace bamquery {

class Namespace;

enum class Backing : std::uint8_t {
  kNone,    ///< No namespace has this number.
  kMemory,  ///< Memory of this process.
  kMapped,  ///< A file, through the page cache.
  kDirect,  ///< A file, past the page cache (O_DIRECT).
};

/// All that a command needs to know of its namespace, in one cache line.
struct alignas(64) NamespaceView {
  std::byte* data = nullptr;     ///< Of memory and mapped files.
  std::uint64_t data_bytes = 0;  ///< What the memory or file has; the last block may have less than a block.
  std::uint64_t blocks = 0;
  std::uint32_t block_shift = 9;
  Backing backing = Backing::kNone;
  bool writable = false;
  Namespace* owner = nullptr;
};

class Namespace : public std::enable_shared_from_this<Namespace> {
 public:
  /// Memory of its own, zeroed. LBAs have 512 or 4096 bytes.
  static std::shared_ptr<Namespace> memory(std::uint64_t bytes, std::uint32_t block_bytes);
  /// Memory that outlives the namespace.
  static std::shared_ptr<Namespace> borrowed(std::span<std::byte> memory, std::uint32_t block_bytes,
                                             bool writable);
  /// A file as long as it is now, by copies from and to the page cache. StorageError if it cannot be opened.
  static std::shared_ptr<Namespace> mapped_file(const std::string& path, std::uint32_t block_bytes,
                                                bool writable);
  /// A file past the page cache. StorageError also where its file system or device cannot read such blocks
  /// so.
  static std::shared_ptr<Namespace> direct_file(const std::string& path, std::uint32_t block_bytes,
                                                bool writable);

  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;
  ~Namespace();

  const NamespaceView& view() const noexcept { return view_; }
  const std::string& path() const noexcept { return path_; }
  int file() const noexcept { return file_; }
  std::span<std::byte> bytes() const noexcept { return {view_.data, view_.data_bytes}; }

  // Operations that an executor has of this namespace. Release and acquire: who finds none may close the
  // file.
  void begin_operation() { operations_.fetch_add(1, std::memory_order_relaxed); }
  void end_operation() { operations_.fetch_sub(1, std::memory_order_release); }
  std::uint64_t operations() const { return operations_.load(std::memory_order_acquire); }

 private:
  Namespace(Backing backing, std::uint32_t block_bytes, bool writable, std::string path);
  void open_file(int flags);
  void set_size(std::uint64_t bytes);

  NamespaceView view_;
  std::string path_;
  int file_ = -1;
  bool owns_memory_ = false;
  std::atomic<std::uint64_t> operations_{0};
};

}  // namespace bamquery
