#include "client/cli/devices_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "common/base/errno_status.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

using verbs::DeviceFacts;
using verbs::GidFacts;
using verbs::PortFacts;
using Pairs = std::vector<std::pair<std::string, std::string>>;

// Devices without a limit report one that no machine has memory for.
std::string Limit(uint64_t bytes) {
  return bytes >= uint64_t{1} << 60 ? "no limit" : "up to " + FormatBytes(bytes);
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : OneLine(text); }

std::string NumberOrDash(uint64_t number) { return number == 0 ? "-" : absl::StrCat(number); }

std::string OpenError(const DeviceFacts& device) {
  return std::string(ErrnoStatus(device.open_errno, "open " + device.uverbs_path).message());
}

std::string PortText(const PortFacts& port) {
  std::string text = absl::StrCat(ToAbsl(NameOf(port.state)), ", ", ToAbsl(NameOf(port.fabric)));
  if (!port.netdev.empty()) absl::StrAppend(&text, ", ", OneLine(port.netdev));
  absl::StrAppend(&text, ", MTU ", NumberOrDash(port.active_mtu_bytes), " of ",
                  NumberOrDash(port.max_mtu_bytes));
  if (port.speed_gbps > 0) absl::StrAppend(&text, ", ", port.speed_gbps, " Gb/s");
  if (port.lid != 0) absl::StrAppend(&text, ", LID ", port.lid);
  return text;
}

std::string GidText(const GidFacts& gid) {
  return absl::StrCat(OneLine(gid.address), " (", ToAbsl(NameOf(gid.type)),
                      gid.is_link_local ? ", link-local" : "", ")");
}

std::string Simple(const DeviceFacts& device) {
  std::string text = OneLine(device.name) + (device.is_software ? " (in software)\n" : "\n");
  Pairs lines;
  if (device.open_errno != 0) lines.emplace_back("  cannot be opened", OpenError(device));
  for (const PortFacts& port : device.ports) {
    lines.emplace_back(absl::StrCat("  port ", port.number), PortText(port));
    for (const GidFacts& gid : port.gids) {
      lines.emplace_back(absl::StrCat("    GID ", gid.index), GidText(gid));
    }
    lines.emplace_back("    message", Limit(port.max_message_bytes));
  }
  if (device.open_errno == 0) {
    lines.emplace_back("  memory region", Limit(device.max_mr_bytes));
    lines.emplace_back("  READ depth",
                       absl::StrCat(device.max_read_depth, " as target, ",
                                    device.max_initiated_read_depth, " as initiator"));
    lines.emplace_back("  queues", absl::StrCat(device.max_qps, " QPs, ", device.max_cqs, " CQs, ",
                                                device.max_srqs, " SRQs"));
    lines.emplace_back("  firmware", OrDash(device.firmware));
  }
  lines.emplace_back("  NUMA node", device.numa_node < 0 ? "-" : absl::StrCat(device.numa_node));
  return text + FormatAligned(lines);
}

std::string Table(std::span<const DeviceFacts> devices) {
  std::vector<std::vector<std::string>> rows;
  for (const DeviceFacts& device : devices) {
    const std::string node = device.numa_node < 0 ? "-" : absl::StrCat(device.numa_node);
    if (device.ports.empty()) {
      rows.push_back({OneLine(device.name), "-", device.open_errno != 0 ? "cannot be opened" : "-",
                      "-", "-", "-", "-", "-", node, "-", "-", "-"});
    }
    for (const PortFacts& port : device.ports) {
      const std::vector<std::string> row = {
          OneLine(device.name),
          absl::StrCat(port.number),
          std::string(NameOf(port.state)),
          std::string(NameOf(port.fabric)),
          OrDash(port.netdev),
          NumberOrDash(port.active_mtu_bytes),
          port.speed_gbps > 0 ? absl::StrCat(port.speed_gbps) : "-",
          absl::StrCat(device.max_read_depth),
          node};
      const auto add = [&](const std::vector<std::string>& gid) {
        rows.push_back(row);
        rows.back().insert(rows.back().end(), gid.begin(), gid.end());
      };
      if (port.gids.empty()) add({"-", "-", "-"});
      for (const GidFacts& gid : port.gids) {
        add({absl::StrCat(gid.index), std::string(NameOf(gid.type)), OneLine(gid.address)});
      }
    }
  }
  return FormatTable({"DEVICE", "PORT", "STATE", "LINK", "NETDEV", "MTU", "GB/S", "READS", "NODE",
                      "GID", "TYPE", "ADDRESS"},
                     rows);
}

using nlohmann::ordered_json;

ordered_json Json(const PortFacts& port) {
  ordered_json gids = ordered_json::array();
  for (const GidFacts& gid : port.gids) {
    gids.push_back({{"index", gid.index},
                    {"type", NameOf(gid.type)},
                    {"address", gid.address},
                    {"netdev", OneLine(gid.netdev)},
                    {"link_local", gid.is_link_local}});
  }
  return {{"port", port.number},
          {"state", NameOf(port.state)},
          {"physical_state", port.physical_state},
          {"link", NameOf(port.fabric)},
          {"netdev", OneLine(port.netdev)},
          {"active_mtu_bytes", port.active_mtu_bytes},
          {"max_mtu_bytes", port.max_mtu_bytes},
          {"speed_gbps", port.speed_gbps},
          {"lid", port.lid},
          {"max_message_bytes", port.max_message_bytes},
          {"gids", std::move(gids)}};
}

ordered_json Json(const DeviceFacts& device) {
  ordered_json object = {{"device", OneLine(device.name)}, {"software", device.is_software}};
  object["numa_node"] = device.numa_node < 0 ? ordered_json() : ordered_json(device.numa_node);
  if (device.open_errno != 0) {
    object["error"] = OpenError(device);
    return object;
  }
  object["firmware"] = OneLine(device.firmware);
  object["max_read_depth"] = device.max_read_depth;
  object["max_initiated_read_depth"] = device.max_initiated_read_depth;
  object["max_mr_bytes"] = device.max_mr_bytes;
  object["max_qps"] = device.max_qps;
  object["max_cqs"] = device.max_cqs;
  object["max_srqs"] = device.max_srqs;
  object["ports"] = ordered_json::array();
  for (const PortFacts& port : device.ports) object["ports"].push_back(Json(port));
  return object;
}

}  // namespace

std::string FormatDevices(OutputFormat format, std::span<const DeviceFacts> devices) {
  std::string text;
  switch (format) {
    case OutputFormat::kTable:
      return Table(devices);
    case OutputFormat::kJson: {
      ordered_json array = ordered_json::array();
      for (const DeviceFacts& device : devices) array.push_back(Json(device));
      return array.dump() + "\n";
    }
    case OutputFormat::kSimple:
      break;
  }
  for (const DeviceFacts& device : devices) text += Simple(device);
  return text;
}

}  // namespace kvd::cli
