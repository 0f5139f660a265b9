#include "tests/conformance/echo_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "common/base/check.h"
#include "common/base/checksum.h"

namespace kvd::test {

EchoServer::EchoServer(ServerEndpoint& endpoint, Mode mode, std::span<std::byte> landing)
    : endpoint_(endpoint), mode_(mode), landing_(landing), stop_(eventfd(0, EFD_CLOEXEC)) {
  KVD_CHECK(stop_.valid());
  thread_ = std::thread([this] { Run(); });
}

EchoServer::~EchoServer() {
  stopping_ = true;
  const uint64_t one = 1;
  KVD_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

void EchoServer::Run() {
  std::array<ServerEvent, 32> events;
  while (!stopping_) {
    const size_t count = endpoint_.Poll(events);
    for (size_t i = 0; i < count; ++i) Handle(events[i]);
    endpoint_.Flush();
    if (count != 0 || mode_ == Mode::kBusy || !endpoint_.PrepareToSleep()) continue;
    ++sleeps_;
    pollfd fds[] = {{endpoint_.event_fd(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    poll(fds, 2, -1);
  }
}

void EchoServer::Handle(const ServerEvent& event) {
  switch (event.kind) {
    case ServerEvent::Kind::kOpened:
      ++opened_;
      break;
    case ServerEvent::Kind::kRequest:
      Request(event);
      break;
    case ServerEvent::Kind::kPullDone: {
      auto node = pulls_.extract(event.pull_id);
      KVD_CHECK(!node.empty());
      Finish(node.mapped(), event.ok);
      break;
    }
    case ServerEvent::Kind::kClosed:
      std::erase_if(pulls_, [&](const auto& p) { return p.second.channel == event.channel; });
      ++closed_;
      break;
  }
}

void EchoServer::Request(const ServerEvent& event) {
  PullCommand command;
  if (event.frame.size() == sizeof(command)) {
    std::memcpy(&command, event.frame.data(), sizeof(command));
    if (command.magic == PullCommand::kMagic) {
      const uint64_t id = next_pull_++;
      if (pulls_.empty()) landing_used_ = 0;
      PendingPull& pull = pulls_[id];
      pull.channel = event.channel;
      pull.command = command;
      if (landing_.empty()) {
        pull.own.resize(command.length);
        pull.bytes = pull.own;
      } else {
        KVD_CHECK(command.length <= landing_.size() - landing_used_);
        pull.bytes = landing_.subspan(landing_used_, command.length);
        landing_used_ += command.length;
      }
      const PullSource source{command.address, static_cast<uint32_t>(command.key), command.length};
      if (!endpoint_.Pull(event.channel, source, pull.bytes.data(), id).ok()) {
        Finish(pull, false);
        pulls_.erase(id);
      }
      return;
    }
  }
  endpoint_.Reply(event.channel, FrameParts{event.frame, {}, {}});
}

void EchoServer::Finish(PendingPull& pull, bool ok) {
  pull.command.failed = ok ? 0 : 1;
  if (ok) pull.command.sum = Checksum64(pull.bytes.data(), pull.bytes.size(), 0);
  endpoint_.Reply(pull.channel, FrameParts{std::as_bytes(std::span(&pull.command, 1)), {}, {}});
}

}  // namespace kvd::test
