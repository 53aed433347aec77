// Who waits for a pair's commands does the controller's work for that pair, whatever its queue id is.
#include "driver/native/queues/serviced_pair.hpp"

#include <set>

#include "tests/native/rings/ring_controller.hpp"
#include "tests/native/rings/rings_test.hpp"

namespace bamquery {
namespace {

// Its queues have ids from `first` on. It notes for whom it was to work, and does nothing.
class IdleController final : public Controller {
 public:
  explicit IdleController(std::uint32_t first) : first_(first) {}

  std::optional<NamespaceShape> shape_of(std::uint32_t) const override { return std::nullopt; }
  std::uint32_t first_queue() const override { return first_; }
  bool service(std::uint32_t pair, std::uint64_t) override {
    pairs.insert(pair);
    return false;
  }
  void wake() override {}
  bool stop(Deadline) override { return true; }
  void recreate_queues() override {}

  std::set<std::uint32_t> pairs;

 private:
  void change_activity(int) override {}

  std::uint32_t first_;
};

void test_pairs_by_number(std::uint32_t first) {
  QueueMemory memory({.leased_pairs = 3, .shared_pairs = 0, .depth = 4, .slots = 3});
  memory.place({.first_queue = first});
  std::vector<std::byte> storage(memory.pool_bytes() + 128);
  void* at = storage.data();
  std::size_t space = storage.size();
  auto* const pool_at = static_cast<std::byte*>(std::align(128, memory.pool_bytes(), at, space));
  const QueuePoolView pool = memory.make_pool({pool_at, memory.pool_bytes()});
  for (std::uint32_t number = 0; number < 3; ++number) {
    IdleController controller(first);
    const QueuePairView& view = pool.pairs[number];
    const ServicedPair<Scope::kDevice> pair({view, view.flags}, controller);
    std::uint32_t slot = 0;
    CHECK(pair.acquire_slot(Deadline{0}, slot).ok());
    CHECK(pair.issue(slot, {Opcode::kRead, 1, 0, 1}).ok());
    Status status;
    CHECK(!pair.wait_until(slot, Deadline::in(1'000'000), status));
    pair.sweep();
    CHECK(controller.pairs == std::set<std::uint32_t>{number});
  }
}

}  // namespace

void test_serviced_pairs() {
  for (const std::uint32_t first : {1u, 2u, 40u}) test_pairs_by_number(first);
}

}  // namespace bamquery
