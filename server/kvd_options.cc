#include "server/kvd_options.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "common/transport/shm/default_path.h"
#include "common/transport/verbs/address.h"
#include "server/admin/admin_address.h"

namespace kvd {
namespace {

constexpr uint32_t kClientsMax = 100'000;

struct Flag {
  const char* name;
  char letter;          // memcached's, where the meaning is the same; 0: none
  const char* operand;  // nullptr: a switch
  const char* help;     // with unit
  const char* fallback;
  std::function<absl::Status(KvdOptions&, const std::string&)> set;
};

absl::Status Bad(std::string_view expected) { return absl::InvalidArgumentError(ToAbsl(expected)); }

absl::Status SetBytes(const std::string& text, uint64_t& bytes) {
  const absl::StatusOr<uint64_t> parsed = ParseBytes(text);
  if (absl::IsOutOfRange(parsed.status())) return Bad("less than 2^64 bytes");
  if (!parsed.ok()) return Bad("a number of bytes, or one with a suffix k, m, g or t such as 64m");
  bytes = *parsed;
  return absl::OkStatus();
}

bool IsDigits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

absl::Status SetNumber(const std::string& text, uint32_t min, uint32_t max, uint32_t& number) {
  uint32_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
    return Bad(absl::StrCat("a number from ", min, " to ", max));
  }
  number = value;
  return absl::OkStatus();
}

template <typename Enum>
absl::Status SetEnum(const std::string& text, std::initializer_list<Enum> values, Enum& value) {
  std::string names;
  for (const Enum candidate : values) {
    if (text == NameOf(candidate)) {
      value = candidate;
      return absl::OkStatus();
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", NameOf(candidate));
  }
  return Bad(absl::StrCat("one of ", names));
}

absl::Status SetMode(const std::string& text, mode_t& mode) {
  unsigned value = 0;
  if (text.empty() || text.size() > 4) return Bad("an octal file mode such as 0600 or 0660");
  for (const char c : text) {
    if (c < '0' || c > '7') return Bad("an octal file mode such as 0600 or 0660");
    value = value * 8 + static_cast<unsigned>(c - '0');
  }
  if (value > 0777) return Bad("an octal file mode up to 0777");
  mode = value;
  return absl::OkStatus();
}

absl::Status SetBucket(const std::string& text, uint32_t& bucket_bytes) {
  uint64_t bytes = 0;
  const absl::Status parsed = SetBytes(text, bytes);
  if (!parsed.ok() || bytes < kBucketBytesMin || bytes > kBucketBytesMax ||
      (bytes & (bytes - 1)) != 0) {
    return Bad(absl::StrCat("a power of two from ", kBucketBytesMin, " to ", kBucketBytesMax));
  }
  bucket_bytes = static_cast<uint32_t>(bytes);
  return absl::OkStatus();
}

absl::Status SetNode(const std::string& text, int& node) {
  uint32_t number = 0;
  if (text == "auto") {
    node = PlacementWish::kAuto;
  } else if (text == "off") {
    node = PlacementWish::kOff;
  } else if (SetNumber(text, 0, 1023, number).ok()) {
    node = static_cast<int>(number);
  } else {
    return Bad("auto, off, or a node's number");
  }
  return absl::OkStatus();
}

absl::Status SetCpus(const std::string& text, std::vector<int>& cpus) {
  cpus.clear();
  if (text.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<int>> parsed = ParseCpuList(text);
  if (!parsed.ok()) return parsed.status();
  cpus = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status SetListen(const std::string& text, std::string& listen) {
  if (!text.empty() && !verbs::ParseHostPort(text).ok()) {
    return Bad("ADDRESS:PORT such as 10.0.0.1:7711, or [ADDRESS]:PORT for IPv6");
  }
  listen = text;
  return absl::OkStatus();
}

// What follows a flag that wants a value, and is no value unless it is written behind '='.
bool LooksLikeFlag(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && !(argument[1] >= '0' && argument[1] <= '9');
}

// `usage`: "--shm=PATH". `next`: what stands where the value should; null: nothing.
absl::Status NeedsValue(const std::string& shown, const std::string& usage,
                        const std::string* next) {
  return absl::InvalidArgumentError(
      next == nullptr
          ? absl::StrCat(shown, " needs a value: ", usage)
          : absl::StrCat(shown, " needs a value, and ", *next, " looks like a flag: ", usage));
}

const std::vector<Flag>& Flags() {
  static const auto* const flags = new std::vector<Flag>{
      {"memory", 'm', "BYTES",
       "memory for everything: index and items; suffixes k, m, g, t (-m: MiB unless suffixed)",
       "64m",
       [](KvdOptions& o, const std::string& v) {
         o.memory_is_bare_number = IsDigits(v);
         return SetBytes(v, o.memory_bytes);
       }},
      {"shm", 's', "PATH", "Unix socket for clients on this host; empty: none", "",
       [](KvdOptions& o, const std::string& v) {
         // As kvcli writes it.
         o.shm_path = v.substr(v.compare(0, 4, "shm:") == 0 ? 4 : 0);
         return absl::OkStatus();
       }},
      {"shm_mode", 'a', "OCTAL", "permissions of that socket: who may connect", "0600",
       [](KvdOptions& o, const std::string& v) { return SetMode(v, o.shm_mode); }},
      {"listen", 'l', "ADDRESS:PORT",
       "also serve RDMA clients at this address of an RDMA device; needs --keys, unless loopback",
       "", [](KvdOptions& o, const std::string& v) { return SetListen(v, o.listen); }},
      {"device", 0, "NAME", "RDMA device to use, as 'kvcli devices' lists it",
       "the one with the address",
       [](KvdOptions& o, const std::string& v) {
         o.device = v;
         return absl::OkStatus();
       }},
      {"connect", 0, "HOW",
       "how RDMA clients connect: cm (rdma_cm), or tcp where rdma_cm cannot be used", "cm",
       [](KvdOptions& o, const std::string& v) {
         return SetEnum(v, {VerbsConnectMode::kCm, VerbsConnectMode::kTcp}, o.connect);
       }},
      {"gid_index", 0, "N", "GID of the port to use with --connect=tcp", "chosen",
       [](KvdOptions& o, const std::string& v) {
         uint32_t index = 0;
         const absl::Status set = SetNumber(v, 0, 65535, index);
         o.gid_index = static_cast<int>(index);
         return set;
       }},
      {"rdma_windows", 0, "POLICY",
       "how RDMA clients read: prefer (each by a memory window of its own, if the device has "
       "them), "
       "require, or off (all by one key)",
       "prefer",
       [](KvdOptions& o, const std::string& v) {
         return SetEnum(v, {WindowPolicy::kPrefer, WindowPolicy::kRequire, WindowPolicy::kOff},
                        o.rdma_windows);
       }},
      {"keys", 0, "PATH",
       "key file: who may connect, and whether to read, to write or to administer; kvd reads it "
       "anew on SIGHUP",
       "none: whoever reaches it",
       [](KvdOptions& o, const std::string& v) {
         o.keys_path = v;
         return absl::OkStatus();
       }},
      {"audit", 0, "PATH",
       "append a line of JSON for each client that is let in, turned away or sent away; -: to "
       "stderr",
       "none",
       [](KvdOptions& o, const std::string& v) {
         o.audit_path = v;
         return absl::OkStatus();
       }},
      {"insecure", 0, nullptr,
       "serve RDMA clients without --keys: whoever reaches --listen reads and writes; and --admin "
       "at "
       "other addresses than this host's",
       "",
       [](KvdOptions& o, const std::string&) {
         o.insecure = true;
         return absl::OkStatus();
       }},
      {"pollers", 't', "N", "threads that serve requests, one part of the keys each", "1",
       [](KvdOptions& o, const std::string& v) { return SetNumber(v, 1, kShardsMax, o.pollers); }},
      {"poll", 0, "MODE", "adaptive (spin, then sleep), busy (never sleep) or event (always sleep)",
       "adaptive",
       [](KvdOptions& o, const std::string& v) {
         return SetEnum(v, {PollMode::kAdaptive, PollMode::kBusy, PollMode::kEvent}, o.poll);
       }},
      {"poll_spin_us", 0, "N", "microseconds that an adaptive poller spins before it sleeps", "50",
       [](KvdOptions& o, const std::string& v) {
         return SetNumber(v, 0, 1'000'000, o.poll_spin_us);
       }},
      {"numa_node", 0, "NODE",
       "NUMA node of memory and pollers: auto (the RDMA device's, and others' memory when it runs "
       "out), off, or a number (that node alone)",
       "auto", [](KvdOptions& o, const std::string& v) { return SetNode(v, o.numa_node); }},
      {"poller_cpus", 0, "LIST", "a processor for each poller, such as 2,3 or 8-11",
       "all of the node",
       [](KvdOptions& o, const std::string& v) { return SetCpus(v, o.poller_cpus); }},
      {"hugepages", 0, "POLICY", "prefer, require or off", "prefer",
       [](KvdOptions& o, const std::string& v) {
         return SetEnum(v,
                        {HugepagePolicy::kPrefer, HugepagePolicy::kRequire, HugepagePolicy::kOff},
                        o.hugepages);
       }},
      {"max_value", 0, "BYTES", "longest value; suffixes k, m, g, t",
       "64m, or what fits the memory",
       [](KvdOptions& o, const std::string& v) {
         o.max_value_given = true;
         return SetBytes(v, o.max_value_bytes);
       }},
      {"evict", 0, "POLICY",
       "when the memory is full: none (refuse writes) or lru (what was not used for long goes)",
       "none",
       [](KvdOptions& o, const std::string& v) {
         return SetEnum(v, {EvictPolicy::kNone, EvictPolicy::kLru}, o.evict);
       }},
      {"max_clients", 'c', "N",
       "client connections at once; two more are kept for 'kvcli stat', ping, admin and the like "
       "by this user "
       "or root on this host",
       "1024",
       [](KvdOptions& o, const std::string& v) {
         return SetNumber(v, 1, kClientsMax, o.max_clients);
       }},
      {"max_clients_per_address", 0, "N",
       "of them from one address (over shared memory: of one user), but for kvd's own user and "
       "root; "
       "0: no limit",
       "0",
       [](KvdOptions& o, const std::string& v) {
         return SetNumber(v, 0, kClientsMax, o.max_clients_per_address);
       }},
      {"handshakes_per_second", 0, "N",
       "attempts to connect that one address may make, likewise; 0: no limit", "0",
       [](KvdOptions& o, const std::string& v) {
         return SetNumber(v, 0, 1'000'000, o.handshakes_per_second);
       }},
      {"max_pull_bytes", 0, "BYTES",
       "of long values that one client may have on their way to kvd at once; suffixes k, m, g, t; "
       "0: no limit but its credits",
       "0", [](KvdOptions& o, const std::string& v) { return SetBytes(v, o.max_pull_bytes); }},
      {"idle_timeout", 0, "SECONDS",
       "ends sessions that have sent nothing for so long, as those that read little; 0: never", "0",
       [](KvdOptions& o, const std::string& v) {
         return SetNumber(v, 0, 31'536'000, o.idle_timeout_s);
       }},
      {"bucket_bytes", 0, "BYTES", "size of an index bucket: 512, 1024, 2048 or 4096", "1024",
       [](KvdOptions& o, const std::string& v) { return SetBucket(v, o.bucket_bytes); }},
      {"slow_log", 0, "TIME",
       "remember the last 128 requests that took this long or longer, for 'kvcli slowlog' and the "
       "status page: 10ms, 250us, 1s; 0: none",
       "10ms",
       [](KvdOptions& o, const std::string& v) {
         absl::Duration time;
         if (!absl::ParseDuration(v, &time) || time < absl::ZeroDuration() ||
             time > absl::Hours(24) ||
             (time != absl::ZeroDuration() && time < absl::Microseconds(1)))
           return Bad("a time from 1us to 24h such as 10ms, or 0");
         o.slow_log_ns = absl::ToInt64Nanoseconds(time);
         return absl::OkStatus();
       }},
      {"admin", 0, "[HOST:]PORT",
       "serve metrics, health and a status page by HTTP; without HOST at 127.0.0.1, another needs "
       "--insecure: it shows them to whoever asks",
       "none",
       [](KvdOptions& o, const std::string& v) {
         o.admin = v;
         const absl::Status parsed = v.empty() ? absl::OkStatus() : ParseAdminAddress(v).status();
         return parsed.ok() ? parsed : Bad(ToStd(parsed.message()));
       }},
      {"check", 0, nullptr, "validate flags and limits, print the plan, exit with 0 or 78", "",
       [](KvdOptions& o, const std::string&) {
         o.check = true;
         return absl::OkStatus();
       }},
      {"verbose", 'v', nullptr, "also log each session's beginning and end", "",
       [](KvdOptions& o, const std::string&) {
         o.verbose = true;
         return absl::OkStatus();
       }},
      {"help", 'h', nullptr, "this text", "",
       [](KvdOptions& o, const std::string&) {
         o.help = true;
         return absl::OkStatus();
       }},
      {"version", 'V', nullptr, "print the version", "",
       [](KvdOptions& o, const std::string&) {
         o.version = true;
         return absl::OkStatus();
       }},
  };
  return *flags;
}

// Edit distance, for "did you mean" (Wagner and Fischer 1974).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row.back();
}

absl::Status UnknownFlag(const std::string& shown, const std::string& name) {
  const Flag* nearest = nullptr;
  size_t distance = 3;
  for (const Flag& flag : Flags()) {
    const size_t d = Distance(name, flag.name);
    if (d < distance) {
      distance = d;
      nearest = &flag;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag ", shown, "; ",
                   nearest == nullptr ? std::string("see kvd --help")
                                      : absl::StrCat("did you mean --", nearest->name, "?")));
}

// A line of a flag file without its comment: a # at its beginning or after a blank, and what
// follows it.
std::string_view WithoutComment(std::string_view line) {
  for (size_t i = line.find('#'); i != std::string_view::npos; i = line.find('#', i + 1)) {
    if (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t') return line.substr(0, i);
  }
  return line;
}

std::string Stripped(std::string_view text) {
  return std::string(absl::StripAsciiWhitespace(ToAbsl(text)));
}

// A line of a flag file as arguments: "--memory = 8m", "--memory 8m" and "-m 8" are understood.
// Empty: there is no flag in it.
absl::StatusOr<std::vector<std::string>> SplitFlagLine(std::string_view line) {
  const std::string text = Stripped(WithoutComment(line));
  if (text.empty()) return std::vector<std::string>();
  if (text[0] != '-') {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no flag; did you mean --", text, "?"));
  }
  const size_t blank = text.find_first_of(" \t");
  const size_t equals = text.find('=');
  if (blank == std::string::npos || equals < blank) {
    if (equals == std::string::npos) return std::vector<std::string>{text};
    return std::vector<std::string>{text.substr(0, equals + 1) + Stripped(text.substr(equals + 1))};
  }
  const std::string flag = text.substr(0, blank);
  const std::string value = Stripped(std::string_view(text).substr(blank));
  if (value[0] == '=') return std::vector<std::string>{flag + "=" + Stripped(value.substr(1))};
  return std::vector<std::string>{flag, value};
}

class Parser {
 public:
  absl::Status Take(const std::vector<std::string>& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      const std::string* next = i + 1 < arguments.size() ? &arguments[i + 1] : nullptr;
      bool took_next = false;
      if (argument.size() > 2 && argument.compare(0, 2, "--") == 0) {
        KVD_RETURN_IF_ERROR(TakeLong(argument, next, took_next));
      } else if (argument.size() > 1 && argument[0] == '-') {
        KVD_RETURN_IF_ERROR(TakeLetter(argument, next, took_next));
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("unexpected argument '", argument, "'; kvd takes flags only"));
      }
      if (took_next) ++i;
    }
    return absl::OkStatus();
  }

  KvdOptions options;

 private:
  absl::Status TakeLong(const std::string& argument, const std::string* next, bool& took_next) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    const bool is_file = name == "flagfile";
    const auto flag =
        std::find_if(Flags().begin(), Flags().end(), [&](const Flag& f) { return name == f.name; });
    if (flag == Flags().end() && !is_file) return UnknownFlag("--" + name, name);
    const bool has_operand = is_file || flag->operand != nullptr;
    if (!has_operand) {
      if (equals != std::string::npos && value != "true") {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " takes no value"));
      }
    } else if (equals == std::string::npos) {
      if (next == nullptr || LooksLikeFlag(*next)) {
        const std::string shown = "--" + name;
        return NeedsValue(shown, absl::StrCat(shown, "=", is_file ? "PATH" : flag->operand), next);
      }
      value = *next;
      took_next = true;
    }
    return is_file ? TakeFile(value) : Set(*flag, "--" + name + "=" + value, value);
  }

  absl::Status TakeLetter(const std::string& argument, const std::string* next, bool& took_next) {
    const auto flag = std::find_if(Flags().begin(), Flags().end(), [&](const Flag& f) {
      return f.letter != 0 && f.letter == argument[1];
    });
    if (flag == Flags().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag ", argument.substr(0, 2), "; see kvd --help"));
    }
    std::string value = argument.substr(2);
    if (flag->operand == nullptr) {
      // -vv and the like: memcached's users turn it up.
      if (value.find_first_not_of(argument[1]) != std::string::npos) {
        return absl::InvalidArgumentError(
            absl::StrCat("-", argument.substr(1, 1), " takes no value"));
      }
      return Set(*flag, argument, "");
    }
    if (value.empty()) {
      if (next == nullptr || LooksLikeFlag(*next)) {
        return NeedsValue(argument, absl::StrCat("--", flag->name, "=", flag->operand), next);
      }
      value = *next;
      took_next = true;
    }
    if (value[0] == '=') value.erase(0, 1);
    const std::string shown = absl::StrCat(argument.substr(0, 2), " ", value);
    if (flag->letter == 'm' && !value.empty() && IsDigits(value)) {
      value += 'm';
    }
    return Set(*flag, shown, value);
  }

  absl::Status Set(const Flag& flag, const std::string& shown, const std::string& value) {
    const absl::Status set = flag.set(options, value);
    if (set.ok()) return set;
    return absl::InvalidArgumentError(absl::StrCat(shown, ": expected ", set.message()));
  }

  // One flag a line, nearly as on a command line.
  absl::Status TakeFile(const std::string& path) {
    if (std::find(open_files_.begin(), open_files_.end(), path) != open_files_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("--flagfile=", path, " names itself"));
    }
    open_files_.push_back(path);
    std::ifstream file(path);
    if (!file) {
      return absl::InvalidArgumentError(absl::StrCat("--flagfile=", path, ": cannot be read"));
    }
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const absl::StatusOr<std::vector<std::string>> flag = SplitFlagLine(line);
      const absl::Status taken = flag.ok() ? Take(*flag) : flag.status();
      if (!taken.ok()) {
        // A value may hold blanks, and so a second flag is looked for only where it was wrong.
        const bool several = line.find(" -") != std::string::npos;
        return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", taken.message(),
                                                       several ? "; write one flag a line" : ""));
      }
    }
    // A directory can be opened, too.
    if (file.bad()) {
      return absl::InvalidArgumentError(absl::StrCat("--flagfile=", path, ": cannot be read"));
    }
    open_files_.pop_back();
    return absl::OkStatus();
  }

  std::vector<std::string> open_files_;  // flag files that are being read, the outermost first
};

}  // namespace

absl::StatusOr<KvdOptions> ParseKvdOptions(const std::vector<std::string>& arguments) {
  Parser parser;
  parser.options.shm_path = DefaultSocketPath();
  KVD_RETURN_IF_ERROR(parser.Take(arguments));
  return parser.options;
}

std::string KvdHelp() {
  std::string text =
      "kvd - a key-value store whose GETs never touch the server's CPU\n\n"
      "usage: kvd [flags]\n\n";
  for (const Flag& flag : Flags()) {
    std::string left = absl::StrCat("--", flag.name);
    if (flag.operand != nullptr) absl::StrAppend(&left, "=", flag.operand);
    if (flag.letter != 0) absl::StrAppend(&left, ", -", std::string(1, flag.letter));
    left.resize(std::max<size_t>(left.size() + 2, 24), ' ');
    absl::StrAppend(&text, "  ", left, flag.help);
    const std::string fallback =
        std::string_view(flag.name) == "shm" ? DefaultSocketPath() : flag.fallback;
    if (!fallback.empty()) absl::StrAppend(&text, " (default ", fallback, ")");
    text += '\n';
  }
  absl::StrAppend(&text, "  --flagfile=PATH         ",
                  "reads flags from a file, one a line; # begins a comment\n\n",
                  "Exit status: 0 done: stopped by a signal, or --check found nothing against it;\n"
                  "1 cannot start at present: another kvd is in the way, memory or a device is "
                  "lacking;\n"
                  "2 usage: a flag that is not understood, also with --check;\n"
                  "78 --check failed, or flags and the files that they name do not let it start, "
                  "however\noften it is tried.\n");
  return text;
}

const char* NameOf(VerbsConnectMode mode) { return mode == VerbsConnectMode::kCm ? "cm" : "tcp"; }

const char* NameOf(EvictPolicy policy) { return policy == EvictPolicy::kNone ? "none" : "lru"; }

const char* NameOf(WindowPolicy policy) {
  switch (policy) {
    case WindowPolicy::kPrefer:
      return "prefer";
    case WindowPolicy::kRequire:
      return "require";
    case WindowPolicy::kOff:
      break;
  }
  return "off";
}

const char* NameOf(PollMode mode) {
  switch (mode) {
    case PollMode::kAdaptive:
      return "adaptive";
    case PollMode::kBusy:
      return "busy";
    case PollMode::kEvent:
      return "event";
  }
  return "?";
}

const char* NameOf(HugepagePolicy policy) {
  switch (policy) {
    case HugepagePolicy::kPrefer:
      return "prefer";
    case HugepagePolicy::kRequire:
      return "require";
    case HugepagePolicy::kOff:
      return "off";
  }
  return "?";
}

const char* NameOf(PageKind kind) {
  switch (kind) {
    case PageKind::kHuge1GiB:
      return "1 GiB";
    case PageKind::kHuge2MiB:
      return "2 MiB";
    case PageKind::kTransparent:
      return "transparent 2 MiB";
    case PageKind::kSmall:
      return "4 KiB";
  }
  return "?";
}

}  // namespace kvd
