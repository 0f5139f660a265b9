#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/help_text.h"
#include "client/cli/interrupt.h"
#include "client/cli/line_editor.h"
#include "common/base/unique_fd.h"

namespace kvd::cli {
namespace {

constexpr int kHistoryLines = 1000;

// libedit reads characters, not bytes, and in the C locale knows none beyond ASCII.
void UseUtf8() {
  if (std::setlocale(LC_CTYPE, "") == nullptr ||
      std::string_view(nl_langinfo(CODESET)) != "UTF-8") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

// `path`, unless something is there that is no regular file: a history there is none to keep, and
// the mode of /dev/null none to change.
std::string RegularFile(const std::string& path) {
  struct stat about = {};
  const bool other = ::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
  return other ? "" : path;
}

// What all of `words` begin with.
std::string CommonPrefix(const std::vector<std::string>& words) {
  std::string prefix = words.front();
  for (const std::string& word : words) {
    while (!word.starts_with(prefix)) prefix.pop_back();
  }
  return prefix;
}

class TerminalLineEditor : public LineEditor {
 public:
  explicit TerminalLineEditor(const std::string& history_path)
      : history_path_(RegularFile(history_path)) {
    UseUtf8();
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_path_.empty()) history(history_, &event, H_LOAD, history_path_.c_str());

    editor_ = el_init("kvcli", stdin, stdout, stderr);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &TerminalLineEditor::Prompt);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    // Ctrl-C and Ctrl-Z come as characters while a line is edited, so no signal can come between
    // libedit and the terminal's modes. While a command runs the terminal makes signals of them.
    el_set(editor_, EL_SETTY, "-d", "-isig", nullptr);
    el_set(editor_, EL_ADDFN, "kvcli-cancel", "Discard the line", &TerminalLineEditor::Cancel);
    el_set(editor_, EL_ADDFN, "kvcli-suspend", "Stop kvcli", &TerminalLineEditor::Suspend);
    el_set(editor_, EL_ADDFN, "kvcli-complete", "Complete", &TerminalLineEditor::Complete);
    el_set(editor_, EL_BIND, "^C", "kvcli-cancel", nullptr);
    el_set(editor_, EL_BIND, "^Z", "kvcli-suspend", nullptr);
    el_set(editor_, EL_BIND, "^I", "kvcli-complete", nullptr);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }

  ~TerminalLineEditor() override {
    el_end(editor_);
    history_end(history_);
  }

  Outcome ReadLine(const std::string& prompt, std::string& line) override {
    prompt_ = prompt;
    cancelled_ = false;
    el_resize(editor_);
    // libedit itself would show the prompt first, and whoever types early would not be edited.
    el_set(editor_, EL_PREP_TERM, 1);
    int count = 0;
    const char* text = el_gets(editor_, &count);
    if (cancelled_) return Outcome::kCancelled;
    if (text == nullptr || count <= 0) {
      std::fputs("\n", stdout);
      std::fflush(stdout);
      // A SIGINT from elsewhere ends the read too.
      return InterruptGuard::Seen() ? Outcome::kCancelled : Outcome::kEnd;
    }
    line.assign(text, static_cast<size_t>(count));
    if (line.ends_with('\n')) line.pop_back();
    return Outcome::kLine;
  }

  void Remember(const std::string& line) override {
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
    if (history_path_.empty()) return;
    // At each line, so that nothing is lost if kvcli ends otherwise than by its prompt. The file is
    // there with its mode before the first line goes into it. A history that cannot be kept is no
    // reason to disturb anybody.
    const UniqueFd file(
        ::open(history_path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
    if (!file.valid() || ::fchmod(file.get(), 0600) != 0) return;
    history(history_, &event, H_SAVE, history_path_.c_str());
  }

 private:
  static TerminalLineEditor& Self(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<TerminalLineEditor*>(self);
  }

  static char* Prompt(EditLine* editor) { return Self(editor).prompt_.data(); }

  static unsigned char Cancel(EditLine* editor, int) {
    Self(editor).cancelled_ = true;
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    return CC_EOF;
  }

  static unsigned char Suspend(EditLine* editor, int) {
    el_set(editor, EL_PREP_TERM, 0);
    std::raise(SIGTSTP);
    el_set(editor, EL_PREP_TERM, 1);
    return CC_REDISPLAY;
  }

  static unsigned char Complete(EditLine* editor, int) {
    const LineInfo* info = el_line(editor);
    const std::string_view line(info->buffer, static_cast<size_t>(info->cursor - info->buffer));
    const std::vector<std::string> words = CompleteLastWord(line);
    if (words.empty()) return CC_ERROR;
    const size_t typed = line.size() - (line.find_last_of(" \t") + 1);
    std::string more = CommonPrefix(words).substr(typed);
    if (words.size() == 1 && !words[0].ends_with('=')) more += ' ';
    if (!more.empty()) return el_insertstr(editor, more.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    std::fputs("\n", stdout);
    for (const std::string& word : words) std::fprintf(stdout, "%s  ", word.c_str());
    std::fputs("\n", stdout);
    std::fflush(stdout);
    return CC_REDISPLAY;
  }

  const std::string history_path_;
  History* history_ = nullptr;
  EditLine* editor_ = nullptr;
  std::string prompt_;
  bool cancelled_ = false;
};

}  // namespace

std::unique_ptr<LineEditor> MakeTerminalLineEditor(const std::string& history_path) {
  return std::make_unique<TerminalLineEditor>(history_path);
}

}  // namespace kvd::cli
