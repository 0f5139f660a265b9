#include "client/cli/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/byte_stream.h"
#include "client/cli/text.h"
#include "common/base/errno_status.h"
#include "common/base/unique_fd.h"
#include "common/base/units.h"

namespace kvd::cli {

void Bundle::Add(std::string name, std::string text) {
  if (text.empty()) return AddMissing(std::move(name), "nothing to be read");
  if (!text.ends_with('\n')) text += '\n';
  sections_.push_back({std::move(name), std::move(text), false});
}

void Bundle::AddMissing(std::string name, std::string why) {
  sections_.push_back({std::move(name), std::move(why), true});
}

std::string Bundle::Text() const {
  std::string text;
  for (const Section& section : sections_) {
    absl::StrAppend(&text, "== ", section.name, " ==\n",
                    section.missing ? absl::StrCat("missing: ", OneLine(section.text), "\n")
                                    : ForTerminal(section.text),
                    "\n");
  }
  return text;
}

std::string Bundle::Contents() const {
  size_t width = 0;
  for (const Section& section : sections_) width = std::max(width, section.name.size());
  std::string text;
  for (const Section& section : sections_) {
    absl::StrAppend(&text, "  ", section.name, std::string(width - section.name.size() + 2, ' '),
                    section.missing ? absl::StrCat("missing: ", OneLine(section.text))
                                    : FormatBytes(section.text.size()),
                    "\n");
  }
  return text;
}

absl::Status WriteNewPrivateFile(const std::string& path, std::string_view text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                             S_IRUSR | S_IWUSR));
  if (!file.valid()) return ErrnoStatus(absl::StrCat("cannot create ", Quoted(path)));
  const auto fail = [&](const char* what, int error_number) {
    ::unlink(path.c_str());
    return ErrnoStatus(error_number, absl::StrCat(what, Quoted(path)));
  };
  // A umask may only have taken more away.
  if (::fchmod(file.get(), S_IRUSR | S_IWUSR) != 0) return fail("cannot set the mode of ", errno);
  FdSink sink(file.get());
  sink.Write(text);
  sink.Flush();
  if (!sink.ok()) return fail("cannot write ", sink.error_number());
  if (::fsync(file.get()) != 0) return fail("cannot write ", errno);
  return absl::OkStatus();
}

}  // namespace kvd::cli
