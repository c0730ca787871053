#include "core/formats/protobuf_wire.h"

#include <fmt/format.h>

#include "core/error.h"

namespace ring {
namespace {

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

uint64_t tag_of(int field, WireType type) { return (static_cast<uint64_t>(field) << 3) | type; }

}  // namespace

void WireWriter::append_varint(std::string& bytes, uint64_t value) {
  while (value >= 0x80) {
    bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<char>(value));
}

void WireWriter::varint(int field, uint64_t value) {
  append_varint(bytes_, tag_of(field, kVarint));
  append_varint(bytes_, value);
}

void WireWriter::text(int field, std::string_view bytes) {
  append_varint(bytes_, tag_of(field, kLengthDelimited));
  append_varint(bytes_, bytes.size());
  bytes_.append(bytes);
}

void WireReader::fail(const std::string& message) const {
  throw_usage(fmt::format("{}: {} at byte {}", what_, message, position()),
              "the file may be cut short, or be no protocol buffer of this kind");
}

std::string_view WireReader::take(uint64_t count) {
  if (count > bytes_.size() - at_) fail("the data ends early");
  const std::string_view taken = bytes_.substr(at_, static_cast<size_t>(count));
  at_ += static_cast<size_t>(count);
  return taken;
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1).front());
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number longer than 64 bits");
}

std::string_view WireReader::delimited() { return take(varint()); }

WireField WireReader::next() {
  const uint64_t tag = varint();
  WireField field;
  if (tag >> 3 == 0 || tag >> 3 > (uint64_t{1} << 29)) fail("a field number out of range");
  field.field = static_cast<int>(tag >> 3);
  const auto fixed = [&](uint64_t width) {
    const std::string_view bytes = take(width);
    for (size_t i = 0; i < bytes.size(); ++i) {
      field.number |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
    }
  };
  switch (tag & 7) {
    case kVarint:
      field.number = varint();
      return field;
    case kFixed64:
      fixed(8);
      return field;
    case kFixed32:
      fixed(4);
      return field;
    case kLengthDelimited:
      field.type = WireField::Type::kBytes;
      field.bytes = delimited();
      return field;
    default:
      fail(fmt::format("wire type {}", tag & 7));
  }
}

}  // namespace ring
