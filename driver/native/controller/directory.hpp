// What a controller's threads look up for every command, changed while they run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "driver/native/controller/drive_profile.hpp"
#include "driver/native/controller/faults.hpp"
#include "driver/native/controller/namespace.hpp"

namespace bamquery {

/// Never changed once published.
struct Directory {
  std::vector<NamespaceView> views;                ///< By nsid - 1.
  std::vector<std::shared_ptr<Namespace>> owners;  ///< The same.
  std::shared_ptr<FaultPlan> faults;
  std::shared_ptr<DrivePacer> pacer;

  const NamespaceView& find(std::uint32_t nsid) const {
    static constexpr NamespaceView kMissing{};
    const std::uint32_t place = nsid - 1;  // 0 becomes the largest
    return place < views.size() ? views[place] : kMissing;
  }
  /// Commands may have to wait, or go wrong.
  bool shaped() const { return faults != nullptr || pacer != nullptr; }
};

/// Publishes directories to readers that never wait: each says when it looks, and a directory that was
/// replaced lives until every reader has looked away since.
class DirectoryBoard {
 public:
  /// One thread at a time uses a reader. It outlives no board.
  class Reader {
   public:
    explicit Reader(DirectoryBoard& board) : board_(board) { board.admit(*this); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { board_.dismiss(*this); }

    const Directory& enter() {
      // Sequentially consistent, both: either who replaces the directory sees that we look, or we see the
      // new.
      round_.store(round_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
      return *board_.current_.load(std::memory_order_seq_cst);
    }
    void leave() {
      // Release: our use of the directory is over before it is freed.
      round_.store(round_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

   private:
    friend class DirectoryBoard;
    DirectoryBoard& board_;
    alignas(64) std::atomic<std::uint64_t> round_{0};  ///< Odd: it looks.
  };

  DirectoryBoard() : owned_(std::make_unique<Directory>()), current_(owned_.get()) {}

  /// Calls change(Directory&) on a copy and publishes it.
  template <typename Change>
  void update(Change change) {
    const std::lock_guard lock(mutex_);
    auto next = std::make_unique<Directory>(*owned_);
    change(*next);
    std::swap(owned_, next);
    current_.store(owned_.get(), std::memory_order_seq_cst);  // see Reader::enter
    Retired retired{std::move(next), {}};
    for (Reader* reader : readers_) {
      const std::uint64_t round = reader->round_.load(std::memory_order_seq_cst);
      if (round % 2 != 0) retired.looking.push_back({reader, round});
    }
    retired_.push_back(std::move(retired));
    reclaim();
  }

  /// Frees what nobody looks at; true if nothing is left that was replaced.
  bool try_reclaim() {
    const std::lock_guard lock(mutex_);
    reclaim();
    return retired_.empty();
  }

  /// Calls look(const Directory&) while nothing changes.
  template <typename Look>
  auto read(Look look) const {
    const std::lock_guard lock(mutex_);
    return look(std::as_const(*owned_));
  }

 private:
  struct Retired {
    std::unique_ptr<const Directory> directory;
    std::vector<std::pair<Reader*, std::uint64_t>> looking;
  };

  void admit(Reader& reader) {
    const std::lock_guard lock(mutex_);
    readers_.push_back(&reader);
  }
  void dismiss(Reader& reader) {
    const std::lock_guard lock(mutex_);
    std::erase(readers_, &reader);
    for (Retired& retired : retired_) {
      std::erase_if(retired.looking, [&](const auto& look) { return look.first == &reader; });
    }
  }
  void reclaim() {
    for (Retired& retired : retired_) {
      // Acquire: pairs with Reader::leave.
      std::erase_if(retired.looking, [](const auto& look) {
        return look.first->round_.load(std::memory_order_acquire) != look.second;
      });
    }
    std::erase_if(retired_, [](const Retired& retired) { return retired.looking.empty(); });
  }

  mutable std::mutex mutex_;
  std::unique_ptr<Directory> owned_;
  std::vector<Retired> retired_;
  std::vector<Reader*> readers_;
  std::atomic<const Directory*> current_;
};

}  // namespace bamquery
