#include "tests/native/conformance/software_backend.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "driver/native/controller/software_controller.hpp"
#include "driver/native/errors.hpp"
#include "tests/native/conformance/content.hpp"

namespace bamquery::conformance {
namespace {

constexpr std::uint64_t kPatternBytes = 4 << 20;
constexpr std::uint64_t kMoreBlocks = 3;  // The last page is none of whole pages.

std::vector<FaultRule> planted(const std::string& plant) {
  FaultRule rule;
  if (plant == "tear") {
    rule.kind = FaultKind::kTear;
    rule.probability = 0.05;
  } else if (plant == "error") {
    rule.status = status::kUnrecoveredRead;
    rule.opcode = Opcode::kRead;
    rule.probability = 0.001;
  } else if (plant == "lose") {
    rule.kind = FaultKind::kLose;
    rule.probability = 0.005;
  } else if (plant == "late-flush") {
    rule.status = status::kWriteFault;
    rule.opcode = Opcode::kFlush;
  } else {
    if (plant != "" && plant != "byte") throw std::invalid_argument("there is no such plant: " + plant);
    return {};
  }
  return {rule};
}

class SoftwareSession final : public Session {
 public:
  SoftwareSession(const QueueShape& shape, const SoftwareOptions& options,
                  const std::vector<std::shared_ptr<Namespace>>& namespaces)
      : memory_(shape), controller_(memory_, controller_options(options)), faults_(planted(options.plant)) {
    for (const auto& each : namespaces) controller_.add_namespace(each);
    controller_.set_faults(faults_, 1);
    controller_.start();
  }

  QueueMemory& memory() override { return memory_; }
  Controller& controller() override { return controller_; }
  void restart() override { controller_.start(); }

  bool delay(std::uint64_t ns) override {
    std::vector<FaultRule> rules = faults_;
    if (ns != 0) {
      FaultRule late;
      late.kind = FaultKind::kDelay;
      late.delay_ns = ns;
      rules = {late};
    }
    controller_.set_faults(rules, 1);
    return true;
  }

 private:
  static ControllerOptions controller_options(const SoftwareOptions& options) {
    ControllerOptions made;
    made.threads = options.threads;
    return made;
  }

  QueueMemory memory_;
  SoftwareController controller_;
  std::vector<FaultRule> faults_;
};

/// Three namespaces: two that take writes, one that takes none.
class SoftwareBackend final : public Backend {
 public:
  explicit SoftwareBackend(const SoftwareOptions& options) : options_(options) {
    planted(options.plant);
    for (const bool writable : {true, true, false}) add(writable);
  }

  Limits limits() const override {
    Limits limits;
    limits.depth = options_.depth;
    return limits;
  }
  std::vector<Space> spaces() const override { return spaces_; }
  std::unique_ptr<Session> open(const QueueShape& shape) override {
    return std::make_unique<SoftwareSession>(shape, options_, namespaces_);
  }

 private:
  void add(bool writable) {
    Space space;
    space.nsid = static_cast<std::uint32_t>(spaces_.size() + 1);
    space.block_bytes = options_.block_bytes;
    space.patterned = kPatternBytes / space.block_bytes;
    space.blocks = space.patterned + (writable ? kScratchBytes / space.block_bytes : 0) + kMoreBlocks;
    space.writable = writable;
    space.contents = spaces_.size() + 1;
    std::vector<std::byte> bytes(space.blocks * space.block_bytes);
    fill_pattern(space.contents, 0, space.block_bytes, std::span(bytes).first(kPatternBytes));
    // Often met: a third of the blocks.
    for (std::uint64_t lba = 0; options_.plant == "byte" && lba < space.patterned; lba += 3) {
      bytes[lba * space.block_bytes + 77] ^= std::byte{1};
    }
    namespaces_.push_back(made(space, std::move(bytes)));
    spaces_.push_back(space);
  }

  std::shared_ptr<Namespace> made(const Space& space, std::vector<std::byte> bytes) {
    if (options_.backing == "memory") {
      contents_.push_back(std::move(bytes));
      return Namespace::borrowed(contents_.back(), space.block_bytes, space.writable);
    }
    const std::string path = options_.folder + "/namespace" + std::to_string(space.nsid);
    const int file = open_file(path);
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t written = ::write(file, bytes.data() + at, bytes.size() - at);
      if (written <= 0) throw system_error(path, "cannot be written");
      at += static_cast<std::size_t>(written);
    }
    close(file);
    if (options_.backing == "mapped") return Namespace::mapped_file(path, space.block_bytes, space.writable);
    if (options_.backing == "direct") return Namespace::direct_file(path, space.block_bytes, space.writable);
    throw std::invalid_argument("there is no such backing: " + options_.backing);
  }

  static int open_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) throw system_error(path, "cannot be made");
    return file;
  }

  SoftwareOptions options_;
  std::vector<Space> spaces_;
  std::vector<std::vector<std::byte>> contents_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

}  // namespace

std::unique_ptr<Backend> make_software_backend(const SoftwareOptions& options) {
  return std::make_unique<SoftwareBackend>(options);
}

}  // namespace bamquery::conformance
