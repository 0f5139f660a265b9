#include "client/cli/foreign_flags.h"

namespace kvd::cli {
namespace {

struct ForeignFlag {
  std::string_view name;
  std::string_view needs;  // the flag that is meant; write_out, which is kvcli's alone: a command
  std::string_view meant;
};

constexpr ForeignFlag kForeignFlags[] = {
    {"host", "server", "--server"},
    {"hostname", "server", "--server"},
    {"port", "server", "--server"},
    {"p", "server", "--server"},
    {"socket", "server", "--server"},
    {"endpoint", "server", "--server"},
    {"endpoints", "server", "--server"},
    {"command_timeout", "deadline", "--deadline"},
    {"dial_timeout", "deadline", "--deadline"},
    {"timeout", "deadline", "--deadline"},
    {"ex", "ttl", "--ttl"},
    {"px", "ttl", "--ttl=Nms"},
    {"expire", "ttl", "--ttl"},
    {"exptime", "ttl", "--ttl"},
    {"lease", "ttl", "--ttl"},
    {"exat", "expire_at", "--expire_at"},
    {"nx", "if", "--if=absent"},
    {"xx", "if", "--if=present"},
    {"json", "write_out", "-w json"},
    {"pattern", "prefix", "--prefix"},
    {"match", "prefix", "--prefix"},
    {"prefix", "write_out", "scan --prefix=P"},
    {"scan", "write_out", "scan"},
    {"stat", "write_out", "stat --rates"},
    {"latency", "write_out", "latency"},
    {"latency_history", "write_out", "latency --lines"},
    {"bigkeys", "write_out", "bigkeys"},
};

}  // namespace

std::string_view MeaningOfForeignFlag(std::string_view name,
                                      const std::function<bool(std::string_view)>& is_known) {
  for (const ForeignFlag& flag : kForeignFlags) {
    if (flag.name == name && is_known(flag.needs)) return flag.meant;
  }
  return {};
}

}  // namespace kvd::cli
