#include "server/session/session_report.h"

#include <cctype>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/admission/role.h"
#include "common/base/string_view.h"

namespace kvd {
namespace {

std::string ClientIdText(uint64_t id) { return absl::StrFormat("%016x", id); }

// True: `text` begins with `prefix`, which is taken away.
bool Take(std::string_view prefix, std::string_view& text) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool IsAt(const SessionFacts& session, std::string_view address) {
  const std::string_view at = session.peer.address;
  return at == address || (at.size() > address.size() && at.substr(0, address.size()) == address &&
                           at[address.size()] == ':');
}

}  // namespace

std::string Harmless(std::string_view text) {
  std::string harmless(text);
  for (char& c : harmless) {
    if (std::isgraph(static_cast<unsigned char>(c)) == 0) c = '?';
  }
  return harmless;
}

std::string DescribeSessions(std::span<const SessionFacts> sessions) {
  std::string text;
  for (const SessionFacts& session : sessions) {
    const PeerIdentity& peer = session.peer;
    absl::StrAppend(&text, "session=", session.session_id,
                    " client=", ClientIdText(session.client_id),
                    " name=", session.name.empty() ? "-" : Harmless(session.name),
                    " transport=", peer.transport, " address=", Harmless(peer.address));
    if (peer.pid != 0) absl::StrAppend(&text, " pid=", peer.pid, " uid=", peer.uid);
    absl::StrAppend(&text, " key=", peer.key == nullptr ? "-" : peer.key->name,
                    " role=", NameOf(session.role), " since_unix_us=", session.since_unix_us,
                    " credits=", session.credits, " reported_reads=", session.reported_reads, "\n");
  }
  return text;
}

std::vector<uint64_t> SessionsMeant(std::span<const SessionFacts> sessions, std::string_view who) {
  std::function<bool(const SessionFacts&)> is_meant;
  uint64_t number = 0;
  if (absl::SimpleAtoi(ToAbsl(who), &number)) {
    is_meant = [number](const SessionFacts& s) { return s.session_id == number; };
  } else if (Take("client:", who)) {
    is_meant = [who](const SessionFacts& s) { return ClientIdText(s.client_id) == who; };
  } else if (Take("key:", who)) {
    is_meant = [who](const SessionFacts& s) {
      return s.peer.key != nullptr && s.peer.key->name == who;
    };
  } else if (Take("user:", who)) {
    const bool is_number = absl::SimpleAtoi(ToAbsl(who), &number);
    is_meant = [is_number, number](const SessionFacts& s) {
      return is_number && s.peer.transport == "shm" && s.peer.uid == number;
    };
  } else if (Take("address:", who)) {
    is_meant = [who](const SessionFacts& s) { return !who.empty() && IsAt(s, who); };
  } else {
    is_meant = [who](const SessionFacts& s) { return !who.empty() && s.name == who; };
  }
  std::vector<uint64_t> ids;
  for (const SessionFacts& session : sessions) {
    if (is_meant(session)) ids.push_back(session.session_id);
  }
  return ids;
}

}  // namespace kvd
