#include "storage/native/packed/payload.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace bamquery {

PackedKind packed_kind(ValueKind kind) {
  switch (kind) {
    case ValueKind::kBool:
      return {PackedType::kNeverRaw, 1};
    case ValueKind::kInt128:
      return {PackedType::kNeverRaw, 16};
    case ValueKind::kFloat32:
      return {PackedType::kFloating, 4};
    case ValueKind::kFloat64:
      return {PackedType::kFloating, 8};
    default:
      return {PackedType::kWholeNumber,
              with_packed_type(kind, [](auto value) { return static_cast<std::uint32_t>(sizeof value); })};
  }
}

const char* packed_fault_text(PackedFault fault) {
  switch (fault) {
    case PackedFault::kNone:
      break;
    case PackedFault::kForm:
      return "its form is none of this type";
    case PackedFault::kExponent:
      return "its exponent is impossible";
    case PackedFault::kBits:
      return "its codes are too wide";
    case PackedFault::kEscapes:
      return "it has more escapes than codes";
    case PackedFault::kPayload:
      return "its values lie outside of the column's data";
  }
  return "";
}

void throw_packed_fault(std::int64_t vector, PackedFault fault) {
  throw std::invalid_argument("packed vector " + std::to_string(vector) +
                              " cannot be: " + packed_fault_text(fault));
}

Payload::Payload(std::span<const std::byte> data, std::int64_t start, const PackedVector& vector,
                 std::int64_t rows, const PackedKind& kind, std::int64_t number) {
  const auto at = static_cast<std::uint64_t>(start);
  if (rows < 0 || rows > kPackedVectorRows || at > data.size()) {
    throw_packed_fault(number, PackedFault::kPayload);
  }
  const auto count = static_cast<std::uint32_t>(rows);
  const std::size_t available = data.size() - at;
  const PackedFault fault = packed_fault(vector, kind.type, count, kind.width, available);
  if (fault != PackedFault::kNone) throw_packed_fault(number, fault);
  escapes_ = vector.is_raw() ? 0 : packed_code_bytes(vector.bits, count);
  escape_bytes_ = vector.escape_bytes();
  const std::size_t bytes = packed_bytes(vector, count, kind.width);
  bytes_ = data.data() + at;
  if (bytes + kCodeSlack > available) {
    if (bytes > 0) std::memcpy(copy_.data(), bytes_, bytes);
    std::memset(copy_.data() + bytes, 0, kCodeSlack);
    bytes_ = copy_.data();
  }
}

}  // namespace bamquery
