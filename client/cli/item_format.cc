#include "client/cli/item_format.h"

#include "absl/strings/str_cat.h"
#include "client/cli/jsonl_codec.h"
#include "client/cli/text.h"
#include "client/cli/tsv_codec.h"
#include "common/base/check.h"

namespace kvd::cli {
namespace {

absl::Status ParseDelimitedLine(std::string_view separator, std::string_view line, Item& item) {
  const size_t at = line.find(separator);
  if (at == std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("no separator ", Quoted(separator)));
  }
  item.key = line.substr(0, at);
  item.value = line.substr(at + separator.size());
  return absl::OkStatus();
}

}  // namespace

std::optional<ItemFormat> FormatOfName(std::string_view file_name) {
  if (file_name.ends_with(".tsv")) return ItemFormat::kTsv;
  for (const std::string_view ending : {".jsonl", ".ndjson", ".json"}) {
    if (file_name.ends_with(ending)) return ItemFormat::kJsonLines;
  }
  return std::nullopt;
}

ItemFormat FormatOfLine(std::string_view line) {
  return line.starts_with('{') ? ItemFormat::kJsonLines : ItemFormat::kTsv;
}

std::optional<ItemFormat> FormatOfWord(std::string_view word) {
  if (word == "tsv") return ItemFormat::kTsv;
  if (word == "jsonl") return ItemFormat::kJsonLines;
  if (word == "delimited") return ItemFormat::kDelimited;
  return std::nullopt;
}

absl::Status ParseItemLine(ItemFormat format, std::string_view separator, std::string_view line,
                           Item& item) {
  item.traits = {};
  switch (format) {
    case ItemFormat::kTsv:
      return ParseTsvLine(line, item);
    case ItemFormat::kJsonLines:
      return ParseJsonLine(line, item);
    case ItemFormat::kDelimited:
      return ParseDelimitedLine(separator, line, item);
  }
  return absl::InternalError("no such format");
}

void AppendItemLine(ItemFormat format, std::string_view key, std::string_view value,
                    const ItemTraits& traits, std::string& out) {
  KVD_CHECK(format != ItemFormat::kDelimited);
  if (format == ItemFormat::kTsv) {
    AppendTsvLine(key, value, traits, out);
  } else {
    AppendJsonLine(key, value, traits, out);
  }
}

}  // namespace kvd::cli
