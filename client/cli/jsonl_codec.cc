#include "client/cli/jsonl_codec.h"

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

enum class Encoding { kPlain, kBase64, kHex };

struct Field {
  std::string_view name;
  bool is_key;
  Encoding encoding;
};

constexpr Field kFields[] = {
    {"key", true, Encoding::kPlain},         {"value", false, Encoding::kPlain},
    {"key_base64", true, Encoding::kBase64}, {"value_base64", false, Encoding::kBase64},
    {"key_hex", true, Encoding::kHex},       {"value_hex", false, Encoding::kHex},
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
    if (error_.empty() && !has_key_) error_ = "no field \"key\"";
    if (error_.empty() && !has_value_) error_ = "no field \"value\"";
    return std::move(error_);
  }

  bool null() override { return NotAString("null"); }
  bool boolean(bool) override { return NotAString("true or false"); }
  bool number_integer(number_integer_t) override { return NotAString("a number"); }
  bool number_unsigned(number_unsigned_t) override { return NotAString("a number"); }
  bool number_float(number_float_t, const string_t&) override { return NotAString("a number"); }
  bool binary(binary_t&) override { return NotAString("binary"); }

  bool string(string_t& text) override {
    if (depth_ == 0) return NotAString("a string");
    if (field_ == nullptr) return true;
    const Field& field = *std::exchange(field_, nullptr);
    bool& has = field.is_key ? has_key_ : has_value_;
    if (std::exchange(has, true)) {
      return Fail(absl::StrCat("a second ", field.is_key ? "key" : "value", " in field ",
                               Quoted(field.name)));
    }
    std::optional<std::string> bytes = Decode(field.encoding, std::move(text));
    if (!bytes.has_value()) {
      return Fail(absl::StrCat("field ", Quoted(field.name), " is not ",
                               field.encoding == Encoding::kHex ? "hexadecimal" : "base64"));
    }
    (field.is_key ? item_.key : item_.value) = *std::move(bytes);
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

  // A value that is no string matters only on the top, or in one of our fields.
  bool NotAString(const char* what) {
    if (depth_ == 0) return Fail(absl::StrCat(what, ", not an object {\"key\":...,\"value\":...}"));
    if (field_ == nullptr) return true;
    return Fail(absl::StrCat("field ", Quoted(field_->name), " is ", what,
                             ", not a string; put it in quotes"));
  }

  Item& item_;
  size_t depth_ = 0;
  const Field* field_ = nullptr;  // whose value comes next
  bool has_key_ = false;
  bool has_value_ = false;
  std::string error_;
};

}  // namespace

void AppendJsonBytes(std::string_view name, std::string_view bytes, ByteText form,
                     std::string& out) {
  const bool hex = form == ByteText::kHex;
  const bool base64 = !hex && !IsValidUtf8(bytes);
  absl::StrAppend(&out, "\"", ToAbsl(name), hex ? "_hex" : base64 ? "_base64" : "", "\":");
  if (hex) {
    absl::StrAppend(&out, "\"", HexOf(bytes), "\"");
  } else if (base64) {
    absl::StrAppend(&out, "\"", absl::Base64Escape(ToAbsl(bytes)), "\"");
  } else {
    AppendJsonString(bytes, out);
  }
}

void AppendJsonLine(std::string_view key, std::string_view value, std::string& out) {
  out += '{';
  AppendJsonBytes("key", key, ByteText::kText, out);
  out += ',';
  AppendJsonBytes("value", value, ByteText::kText, out);
  out += "}\n";
}

absl::Status ParseJsonLine(std::string_view line, Item& item) {
  ItemHandler handler(item);
  json::sax_parse(line.begin(), line.end(), &handler);
  std::string error = handler.TakeError();
  return error.empty() ? absl::OkStatus() : absl::InvalidArgumentError(error);
}

}  // namespace kvd::cli
