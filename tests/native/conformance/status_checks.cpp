// Commands that cannot be carried out: their statuses, that they are counted, and that the queue works on.
#include <optional>
#include <vector>

#include "driver/native/errors.hpp"
#include "driver/native/queues/cpu_queue_client.hpp"
#include "tests/native/conformance/rings.hpp"

namespace bamquery::conformance {
namespace {

/// A shared pair, with one slot in hand, and how many errors it is to have counted.
struct OnePair {
  OnePair(const Context& all, std::uint32_t slot_bytes)
      : context(all),
        rings(all, all.shape(0, 1, 4, slot_bytes, 3)),
        pair(rings.shared()),
        slot(slot_of_pair(all, pair)) {}

  /// The controller answers so, touches nothing, and goes on.
  void expect_refused(const Request& request, Status expected) {
    fill_guard(rings.memory().landing());
    EXPECT(pair.issue(slot, request).ok());
    expect_status(context, pair, slot, expected);
    expect_counted();
  }
  /// It answers with any error.
  Status expect_error(const Request& request) {
    fill_guard(rings.memory().landing());
    EXPECT(pair.issue(slot, request).ok());
    const Status status = pair.wait(slot, context.soon());
    EXPECT(!status.ok() && !loses_slot(status), status_text(status));
    expect_counted();
    return status;
  }
  void expect_counted() {
    expect_guard(rings.memory().landing(), "the landing buffers");
    ++errors;
    EXPECT(pair.pair().flags().header().errors == errors);
    expect_works(context, pair);
  }

  const Context& context;
  Rings rings;
  SharedPair pair;
  std::uint32_t slot;
  std::uint32_t errors = 0;
};

void lba_range(Context& context) {
  const Space& space = context.space();
  OnePair one(context, 4 * space.block_bytes);
  for (const std::uint64_t lba :
       {space.blocks, space.blocks + 1, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    one.expect_refused(reading(space, lba, 1), status::kLbaOutOfRange);
  }
  one.expect_refused(reading(space, space.blocks - 1, 2), status::kLbaOutOfRange);
  one.expect_refused(reading(space, space.blocks - 3, 4), status::kLbaOutOfRange);
  if (space.writable) {
    one.expect_refused({Opcode::kWrite, space.nsid, space.blocks, 1}, status::kLbaOutOfRange);
    one.expect_refused({Opcode::kWrite, space.nsid, space.blocks - 1, 2}, status::kLbaOutOfRange);
  }
  // The last block itself is there.
  EXPECT(one.pair.issue(one.slot, reading(space, space.blocks - 1, 1)).ok());
  expect_status(context, one.pair, one.slot);
  context.detail = std::to_string(one.errors) + " commands";
}

void invalid_namespace(Context& context) {
  OnePair one(context, 4096);
  const Request beyond{Opcode::kRead, 0x7ffffff0, 0, 1};
  one.expect_refused(beyond, status::kInvalidNamespace);
  one.expect_error({Opcode::kFlush, 0x7ffffff0, 0, 0});
  one.expect_error({Opcode::kRead, 0, 0, 1});
  // Of numbers that could be namespaces, a drive may say "invalid field" (base specification 2.0, 3.2.1.4).
  std::uint32_t unused = 1;
  for (const Space& space : context.spaces()) unused = std::max(unused, space.nsid + 1);
  while (one.rings.controller().shape_of(unused)) ++unused;
  const Status inactive = one.expect_error({Opcode::kRead, unused, 0, 1});
  EXPECT(!one.rings.controller().shape_of(0x7ffffff0) && !one.rings.controller().shape_of(0));
  context.detail = "an inactive one: " + status_text(inactive);
}

void invalid_opcode(Context& context) {
  OnePair one(context, 4096);
  for (const int opcode : {0x7f, 0x3c}) {
    if (one.pair.pair().view().read_only != 0) throw Skipped("of a pair for reading, the core refuses them");
    one.expect_refused({static_cast<Opcode>(opcode), context.space().nsid, 0, 1}, status::kInvalidOpcode);
  }
}

// What the core never sends, by a view of the pair that is wrong in one place.
void raw_fields(Context& context) {
  const Space& space = context.space();
  const std::uint32_t transfer = context.limits().transfer_bytes;
  OnePair one(context, transfer);
  const auto refused_with = [&](QueuePairView view, const Request& request,
                                std::initializer_list<Status> expected) {
    const SharedPair odd(QueuePair<Scope::kDevice>(view, view.flags), one.rings.controller());
    fill_guard(one.rings.memory().landing());
    EXPECT(odd.issue(one.slot, request).ok());
    const Status status = odd.wait(one.slot, context.soon());
    bool fits = false;
    for (const Status each : expected) fits |= status == each;
    EXPECT(fits, status_text(status));
    one.expect_counted();
    context.detail += (context.detail.empty() ? "" : ", ") + status_text(status);
  };
  QueuePairView view = one.pair.pair().view();
  // A page that does not begin where pages do. A list that is read from there is guards, or cannot be read.
  QueuePairView askew = view;
  askew.landing_bus += 4;
  const std::uint32_t over_a_page = kPrpPageBytes / space.block_bytes + 1;
  if (over_a_page * space.block_bytes <= transfer) {
    refused_with(askew, reading(space, 0, over_a_page),
                 {status::kPrpOffsetInvalid, status::kDataTransferError});
  }
  // More than the controller takes at once. Slot 0, since the others would begin elsewhere.
  if (transfer / space.block_bytes * 2 <= 65536 && one.slot == 0) {
    QueuePairView wide = view;
    wide.slot_bytes *= 2;
    refused_with(wide, reading(space, 0, transfer / space.block_bytes * 2), {status::kInvalidField});
  }
}

void refused_by_core(Context& context) {
  const Space& space = context.space();
  OnePair one(context, 8 * space.block_bytes);
  const QueueHeader& header = one.pair.pair().flags().header();
  const std::uint32_t issued = header.ticket;
  const auto refused = [&](const Request& request, Status expected) {
    EXPECT(one.pair.issue(one.slot, request) == expected);
    expect_status(context, one.pair, one.slot, expected);
  };
  const std::uint32_t most = one.rings.memory().shape().slot_bytes / space.block_bytes;
  refused(reading(space, 0, most + 1), status::kTooLarge);
  refused(reading(space, 0, 65536 * 16), status::kTooLarge);
  refused(reading(space, 0, 0), status::kInvalidField);
  refused({Opcode::kFlush, space.nsid, 0, 1}, status::kInvalidField);
  EXPECT(header.ticket == issued && header.errors == 0, "something was issued");
  expect_works(context, one.pair);
}

void read_only(Context& context) {
  const Space* space = nullptr;
  for (const Space& each : context.spaces()) {
    if (!each.writable && each.block_bytes == context.block_bytes()) space = &each;
  }
  if (space == nullptr) throw Skipped("every namespace takes writes");
  OnePair one(context, 4 * space->block_bytes);
  Random random = context.random();
  Status refused = status::kSuccess;
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t lba = some_lba(*space, random, 4);
    fill_guard(one.rings.memory().landing());
    const Status issued = one.pair.issue(one.slot, {Opcode::kWrite, space->nsid, lba, 4});
    refused = one.pair.wait(one.slot, context.soon());
    EXPECT(!refused.ok() && !loses_slot(refused), status_text(refused));
    if (issued.ok()) one.expect_counted();
    read_and_compare(context, one.pair, one.slot, *space, lba, 4);
  }
  const auto shape = one.rings.controller().shape_of(space->nsid);
  EXPECT(shape && !shape->writable);
  context.detail = status_text(refused);
}

void many_errors(Context& context) {
  const Space& space = context.space();
  const Rings rings(context, context.shape(0, 1, 16, space.block_bytes));
  const std::uint64_t each = context.times(150);
  in_threads(3, [&](std::uint32_t thread) {
    Random random = context.random(thread);
    const SharedPair pair = rings.shared();
    const std::uint32_t slot = slot_of_pair(context, pair);
    for (std::uint64_t i = 0; i < each; ++i) {
      EXPECT(pair.issue(slot, reading(space, space.blocks + random() % 1000, 1)).ok());
      expect_status(context, pair, slot, status::kLbaOutOfRange);
      read_and_compare(context, pair, slot, space, some_lba(space, random, 1), 1);
    }
  });
  EXPECT(rings.shared().pair().flags().header().errors == 3 * each);
  context.detail = std::to_string(3 * each) + " errors among as many reads";
}

/// What a call of a client threw.
template <typename Call>
NvmeError error_of(Call call) {
  std::optional<NvmeError> caught;
  try {
    call();
  } catch (const NvmeError& error) {
    caught = error;
  }
  EXPECT(caught.has_value(), "no error came");
  return *caught;
}

void client_errors(Context& context) {
  const Space& space = context.space();
  const auto session = context.open(context.shape(1, 0, 8, 2 * space.block_bytes));
  CpuQueueClient client(session->memory(), session->controller());
  std::vector<std::byte> bytes(8 * space.block_bytes);
  const auto read = [&](std::uint32_t nsid, std::uint64_t lba, std::size_t size) {
    client.read(nsid, lba, std::span(bytes).first(size), context.soon(), nullptr);
  };
  // The fourth of five commands is the first that goes beyond the end.
  const NvmeError beyond = error_of([&] { read(space.nsid, space.blocks - 5, 8 * space.block_bytes); });
  EXPECT(beyond.nsid() == space.nsid && beyond.lba() == space.blocks - 1, std::to_string(beyond.lba()));
  EXPECT(beyond.status() == status::kLbaOutOfRange && beyond.status().type() == 0 &&
         beyond.status().value() == 0x80);
  EXPECT(std::string(beyond.what()) == "read failed: " + status_text(status::kLbaOutOfRange), beyond.what());
  EXPECT(beyond.path() == session->controller().shape_of(space.nsid)->name, beyond.path());
  const NvmeError nowhere = error_of([&] { read(0x7ffffff0, 3, space.block_bytes); });
  EXPECT(nowhere.nsid() == 0x7ffffff0 && nowhere.lba() == 3 && nowhere.status() == status::kInvalidNamespace);
  EXPECT(nowhere.path().empty());
  const CpuQueueClient::Counts counts = client.settle();
  EXPECT(counts.errors == 2 || counts.errors == 3,
         std::to_string(counts.errors));  // Two were beyond, in flight.
  EXPECT(counts.missed == 0 && counts.quarantined == 0 && counts.broken == 0);
  read(space.nsid, 0, bytes.size());
  expect_pattern(space, 0, bytes);
  context.detail = beyond.what();
}

}  // namespace

std::vector<Check> status_checks() {
  return {{"statuses/lba-range", lba_range},   {"statuses/namespace", invalid_namespace},
          {"statuses/opcode", invalid_opcode}, {"statuses/fields", raw_fields},
          {"statuses/core", refused_by_core},  {"statuses/read-only", read_only},
          {"statuses/counted", many_errors},   {"statuses/client", client_errors}};
}

}  // namespace bamquery::conformance
