#include "client/cli/jsonl_codec.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

using nlohmann::json;

enum class Encoding { kPlain, kBase64, kHex, kNumber };

// What a field is about.
enum Part { kKey, kValue, kExpiry, kUserFlags, kParts };
constexpr const char* kPartNames[kParts] = {"key", "value", "expiry", "number of flags"};

struct Field {
  std::string_view name;
  Part part;
  Encoding encoding;
};

constexpr Field kFields[] = {
    {"key", kKey, Encoding::kPlain},
    {"value", kValue, Encoding::kPlain},
    {"key_base64", kKey, Encoding::kBase64},
    {"value_base64", kValue, Encoding::kBase64},
    {"key_hex", kKey, Encoding::kHex},
    {"value_hex", kValue, Encoding::kHex},
    {"expiry_unix_us", kExpiry, Encoding::kNumber},
    {"user_flags", kUserFlags, Encoding::kNumber},
};

const Field* FindField(std::string_view name) {
  for (const Field& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::optional<std::string> Decode(Encoding encoding, std::string&& text) {
  switch (encoding) {
    case Encoding::kPlain:
      return std::move(text);
    case Encoding::kHex:
      return BytesOfHex(text);
    case Encoding::kBase64: {
      std::string bytes;
      if (!absl::Base64Unescape(text, &bytes)) return std::nullopt;
      return bytes;
    }
    case Encoding::kNumber:
      break;
  }
  return std::nullopt;
}

// Takes the fields as the parser comes across them: no tree is built, so a line costs no more than
// its own length, however deep or wide it is.
class ItemHandler : public json::json_sax_t {
 public:
  explicit ItemHandler(Item& item) : item_(item) {}

  // Why the line is no item; empty if it is one.
  std::string TakeError() {
    if (error_.empty() && !has_[kKey]) error_ = "no field \"key\"";
    if (error_.empty() && !has_[kValue]) error_ = "no field \"value\"";
    return std::move(error_);
  }

  bool null() override { return NotAString("null"); }
  bool boolean(bool) override { return NotAString("true or false"); }
  bool number_integer(number_integer_t) override { return NotAString("a number"); }
  bool number_unsigned(number_unsigned_t number) override {
    if (field_ == nullptr || field_->encoding != Encoding::kNumber) return NotAString("a number");
    return TakeNumber(*std::exchange(field_, nullptr), number);
  }
  bool number_float(number_float_t, const string_t&) override { return NotAString("a number"); }
  bool binary(binary_t&) override { return NotAString("binary"); }

  bool string(string_t& text) override {
    if (depth_ == 0) return NotAString("a string");
    if (field_ == nullptr) return true;
    const Field& field = *std::exchange(field_, nullptr);
    if (field.encoding == Encoding::kNumber) {  // in quotes where a double would change it
      uint64_t number = 0;
      const char* const end = text.data() + text.size();
      const auto [after, error] = std::from_chars(text.data(), end, number);
      if (error != std::errc() || after != end) return NotANumber(field);
      return TakeNumber(field, number);
    }
    if (!Take(field)) return false;
    std::optional<std::string> bytes = Decode(field.encoding, std::move(text));
    if (!bytes.has_value()) {
      return Fail(absl::StrCat("field ", Quoted(field.name), " is not ",
                               field.encoding == Encoding::kHex ? "hexadecimal" : "base64"));
    }
    (field.part == kKey ? item_.key : item_.value) = *std::move(bytes);
    return true;
  }

  bool start_object(size_t) override {
    if (depth_ > 0 && !NotAString("an object")) return false;
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (!NotAString("an array")) return false;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    field_ = depth_ == 1 ? FindField(name) : nullptr;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position));
  }

 private:
  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  bool Take(const Field& field) {
    if (!std::exchange(has_[field.part], true)) return true;
    return Fail(
        absl::StrCat("a second ", kPartNames[field.part], " in field ", Quoted(field.name)));
  }

  bool TakeNumber(const Field& field, uint64_t number) {
    const bool is_expiry = field.part == kExpiry;
    const uint64_t max =
        is_expiry ? std::numeric_limits<int64_t>::max() : std::numeric_limits<uint32_t>::max();
    if (number > max) return NotANumber(field);
    if (is_expiry) {
      item_.traits.expiry_unix_us = static_cast<int64_t>(number);
    } else {
      item_.traits.user_flags = static_cast<uint32_t>(number);
    }
    return Take(field);
  }

  bool NotANumber(const Field& field) {
    return Fail(absl::StrCat(
        "field ", Quoted(field.name), " is no whole number of ",
        field.part == kExpiry ? "63 bits; write microseconds of Unix time" : "32 bits; write one"));
  }

  // A value that is no string matters only on the top, or in one of our fields.
  bool NotAString(const char* what) {
    if (depth_ == 0) return Fail(absl::StrCat(what, ", not an object {\"key\":...,\"value\":...}"));
    if (field_ == nullptr) return true;
    if (field_->encoding == Encoding::kNumber) return NotANumber(*field_);
    return Fail(absl::StrCat("field ", Quoted(field_->name), " is ", what,
                             ", not a string; put it in quotes"));
  }

  Item& item_;
  size_t depth_ = 0;
  const Field* field_ = nullptr;  // whose value comes next
  bool has_[kParts] = {};
  std::string error_;
};

// Whether JSON's escapes (\u00NN for most control characters) would more than double the text.
bool IsMostlyEscapes(std::string_view bytes) {
  size_t more = 0;
  for (const char byte : bytes) {
    if (byte == '\n' || byte == '\r' || byte == '\t' || byte == '"' || byte == '\\') {
      more += 1;
    } else if (static_cast<uint8_t>(byte) < 0x20 || byte == 0x7f) {
      more += 5;
    }
  }
  return more > bytes.size();
}

}  // namespace

void AppendJsonBytes(std::string_view name, std::string_view bytes, ByteText form,
                     std::string& out) {
  const bool hex = form == ByteText::kHex;
  const bool base64 = !hex && (!IsValidUtf8(bytes) || IsMostlyEscapes(bytes));
  absl::StrAppend(&out, "\"", ToAbsl(name), hex ? "_hex" : base64 ? "_base64" : "", "\":");
  if (hex) {
    absl::StrAppend(&out, "\"", HexOf(bytes), "\"");
  } else if (base64) {
    absl::StrAppend(&out, "\"", absl::Base64Escape(ToAbsl(bytes)), "\"");
  } else {
    AppendJsonString(bytes, out);
  }
}

void AppendJsonTraits(const ItemTraits& traits, std::string& out) {
  if (traits.user_flags != 0) absl::StrAppend(&out, ",\"user_flags\":", traits.user_flags);
  if (traits.expiry_unix_us != 0) {
    absl::StrAppend(
        &out, ",\"expiry_unix_us\":", JsonNumber(static_cast<uint64_t>(traits.expiry_unix_us)));
  }
}

void AppendJsonLine(std::string_view key, std::string_view value, const ItemTraits& traits,
                    std::string& out) {
  out += '{';
  AppendJsonBytes("key", key, ByteText::kText, out);
  out += ',';
  AppendJsonBytes("value", value, ByteText::kText, out);
  AppendJsonTraits(traits, out);
  out += "}\n";
}

absl::Status ParseJsonLine(std::string_view line, Item& item) {
  ItemHandler handler(item);
  json::sax_parse(line.begin(), line.end(), &handler);
  std::string error = handler.TakeError();
  return error.empty() ? absl::OkStatus() : absl::InvalidArgumentError(error);
}

}  // namespace kvd::cli
