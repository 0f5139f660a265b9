#include "server/session/session_report.h"

#include <bit>
#include <cctype>

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

using Ids = std::vector<uint64_t>;

struct Kind {
  std::string_view prefix;
  bool (*is)(const SessionFacts& session, std::string_view what);
};

std::string ShownName(const SessionFacts& session) {
  return session.name.empty() ? "-" : Harmless(session.name);
}

constexpr Kind kSession{"session:", [](const SessionFacts& session, std::string_view what) {
                          uint64_t number = 0;
                          return absl::SimpleAtoi(ToAbsl(what), &number) &&
                                 session.session_id == number;
                        }};
constexpr Kind kClient{"client:", [](const SessionFacts& session, std::string_view what) {
                         return ClientIdText(session.client_id) == what;
                       }};
constexpr Kind kName{"name:", [](const SessionFacts& session, std::string_view what) {
                       return ShownName(session) == what;
                     }};
constexpr Kind kKey{"key:", [](const SessionFacts& session, std::string_view what) {
                      return session.peer.key != nullptr && session.peer.key->name == what;
                    }};
constexpr Kind kUser{"user:", [](const SessionFacts& session, std::string_view what) {
                       uint64_t number = 0;
                       return absl::SimpleAtoi(ToAbsl(what), &number) &&
                              session.peer.transport == "shm" && session.peer.uid == number;
                     }};
constexpr Kind kAddress{"address:", [](const SessionFacts& session, std::string_view what) {
                          return !what.empty() && IsAt(session, what);
                        }};
constexpr Kind kKinds[] = {kSession, kClient, kName, kKey, kUser, kAddress};

Ids IdsOf(std::span<const SessionFacts> sessions, const Kind& kind, std::string_view what) {
  Ids ids;
  for (const SessionFacts& session : sessions) {
    if (kind.is(session, what)) ids.push_back(session.session_id);
  }
  return ids;
}

// "name:loader (session 7, 8)", of the first few.
void AppendReading(const Kind& kind, std::string_view what, const Ids& ids, std::string& text) {
  constexpr size_t kFew = 5;
  if (ids.empty()) return;
  absl::StrAppend(&text, text.empty() ? "" : ", ", ToAbsl(kind.prefix), ToAbsl(what), " (session ");
  for (size_t i = 0; i < ids.size() && i < kFew; ++i)
    absl::StrAppend(&text, i == 0 ? "" : ", ", ids[i]);
  absl::StrAppend(&text, ids.size() > kFew ? ", ...)" : ")");
}

void AppendCounters(const SessionCounters& counters, std::string& text) {
  absl::StrAppend(&text, " requests=", counters.requests.get(), " writes=", counters.writes.get(),
                  " received_bytes=", counters.received_bytes.get(),
                  " sent_bytes=", counters.sent_bytes.get());
  const auto reported = std::bit_cast<ReportedWords>(counters.reported());
  for (size_t i = 0; i < kReportedCounts; ++i) {
    absl::StrAppend(&text, " ", ToAbsl(kReportedNames[i]), "=", reported[i]);
  }
  absl::StrAppend(&text, " reported_disbelieved=", counters.disbelieved_reports());
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
  const SessionCounters nothing;
  std::string text;
  for (const SessionFacts& session : sessions) {
    const PeerIdentity& peer = session.peer;
    absl::StrAppend(&text, "session=", session.session_id,
                    " client=", ClientIdText(session.client_id), " name=", ShownName(session),
                    " transport=", peer.transport, " address=", Harmless(peer.address));
    if (peer.pid != 0) absl::StrAppend(&text, " pid=", peer.pid, " uid=", peer.uid);
    absl::StrAppend(&text, " key=", peer.key == nullptr ? "-" : peer.key->name,
                    " role=", NameOf(session.role), " since_unix_us=", session.since_unix_us,
                    " credits=", session.credits);
    AppendCounters(session.counters == nullptr ? nothing : *session.counters, text);
    text += '\n';
  }
  return text;
}

absl::StatusOr<std::vector<uint64_t>> SessionsMeant(std::span<const SessionFacts> sessions,
                                                    std::string_view who) {
  if (who.empty()) return Ids{};
  for (const Kind& kind : kKinds) {
    std::string_view rest = who;
    if (Take(kind.prefix, rest)) return IdsOf(sessions, kind, rest);
  }
  const bool is_number = who.find_first_not_of("0123456789") == std::string_view::npos;
  const Kind& meant = is_number ? kSession : kName;
  const Ids ids = IdsOf(sessions, meant, who);
  // Names are the clients' own choice: one may call itself as another one's number or key.
  std::string others;
  for (const Kind* kind : {&kName, &kKey, &kClient}) {
    const Ids of_kind = IdsOf(sessions, *kind, who);
    if (!of_kind.empty() && of_kind != ids) AppendReading(*kind, who, of_kind, others);
  }
  if (others.empty()) return ids;
  std::string first;
  AppendReading(meant, who, ids, first);
  return absl::InvalidArgumentError(absl::StrCat(ToAbsl(who), " may mean ", first,
                                                 first.empty() ? "" : ", ", others, "; say which"));
}

}  // namespace kvd
