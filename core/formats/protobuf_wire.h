// Protocol buffers on the wire: just what is needed to write and read messages of a known schema.
// Source: the encoding page of the Protocol Buffers documentation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ring {

/// Appends fields to a message. Zero values are written too, so that they are present in a oneof.
class WireWriter {
 public:
  void varint(int field, uint64_t value);
  /// int32, int64: negative numbers take ten bytes.
  void integer(int field, int64_t value) { varint(field, static_cast<uint64_t>(value)); }
  void text(int field, std::string_view bytes);  ///< Also submessages and packed lists.

  const std::string& bytes() const { return bytes_; }

  /// The number alone, as in packed lists and before messages of a stream.
  static void append_varint(std::string& bytes, uint64_t value);

 private:
  std::string bytes_;
};

/// One field as read. `number` holds varints and fixed-width values (as their bits).
struct WireField {
  enum class Type { kNumber, kBytes };
  int field = 0;
  Type type = Type::kNumber;
  uint64_t number = 0;
  std::string_view bytes;
};

/// Reads the fields of a message one after another. Throws Error(kUsage) that names `what` and the
/// byte for data that ends early, groups (which nobody writes) and numbers longer than 64 bits.
class WireReader {
 public:
  WireReader(std::string_view bytes, std::string_view what, int64_t offset = 0)
      : bytes_(bytes), what_(what), offset_(offset) {}

  bool at_end() const { return at_ == bytes_.size(); }
  WireField next();
  uint64_t varint();
  /// A length and that many bytes: an element of a stream of messages.
  std::string_view delimited();
  /// Byte in the file at which the next read begins.
  int64_t position() const { return offset_ + static_cast<int64_t>(at_); }

 private:
  [[noreturn]] void fail(const std::string& message) const;
  std::string_view take(uint64_t count);

  std::string_view bytes_;
  std::string what_;
  int64_t offset_;
  size_t at_ = 0;
};

}  // namespace ring
