// Input that is to be text, looked at before it is read: compressed files, and others that hold no
// text, are given by mistake.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/cli/byte_stream.h"

namespace kvd::cli {

class UnpackedSource : public ByteSource {
 public:
  // `source` must outlive this object.
  explicit UnpackedSource(ByteSource& source) : source_(source) {}

  // The command that unpacks what the source holds, to be followed by the file's name; empty if it
  // is not compressed as far as is known. Call before the first Read. Blocks only for as long as
  // the next byte may decide; an error is left for the next Read.
  std::string_view Unpacker();

  // What the source begins with that no text does: "a byte of zero" or "bytes that are not UTF-8";
  // empty if nothing is found, or a brace begins it: of JSON lines each tells for itself. Looks at
  // 4 KiB at most, and of a pipe only at what is there: blocks as a Read does. Call behind Unpacker
  // and before the first Read.
  std::string_view NotText();

  // All bytes of the source.
  absl::StatusOr<size_t> Read(char* into, size_t size) override;

 private:
  ByteSource& source_;
  std::string begin_;  // what Unpacker and NotText have read
  size_t handed_out_ = 0;
  absl::StatusOr<size_t> last_ = 1;  // how its last read ended
};

}  // namespace kvd::cli
