#include "server/store/lifeline.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <future>

#include "common/base/errno_status.h"

namespace kvd {

struct LifelineThread::State {
  uint32_t* word = nullptr;
  robust_list node{};  // the kernel finds the word at a fixed distance from this node
  robust_list_head head{};
  std::promise<absl::Status> started;
  std::promise<void> stop;

  void Run();
};

// Replaces the list that the C library registered for this thread, which uses no robust mutexes.
void LifelineThread::State::Run() {
  node.next = &head.list;
  head.list.next = &node;
  head.futex_offset = reinterpret_cast<char*>(word) - reinterpret_cast<char*>(&node);
  head.list_op_pending = nullptr;
  if (::syscall(SYS_set_robust_list, &head, sizeof(head)) != 0) {
    started.set_value(ErrnoStatus("set_robust_list"));
    return;
  }
  // Release: whoever sees the word alive sees the superblock and the first buckets too (partner:
  // the reader's acquire).
  __atomic_store_n(word, static_cast<uint32_t>(::syscall(SYS_gettid)), __ATOMIC_RELEASE);
  started.set_value(absl::OkStatus());
  stop.get_future().wait();
  __atomic_store_n(word, 0u, __ATOMIC_RELEASE);
}

LifelineThread::LifelineThread(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<LifelineThread>> LifelineThread::Start(uint32_t* word) {
  auto state = std::make_unique<State>();
  state->word = word;
  std::future<absl::Status> started = state->started.get_future();
  std::unique_ptr<LifelineThread> lifeline(new LifelineThread(std::move(state)));
  // Signals are for the threads that handle them.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  lifeline->thread_ =
      std::thread([state_of_thread = lifeline->state_.get()] { state_of_thread->Run(); });
  ::pthread_setname_np(lifeline->thread_.native_handle(), "kvd-lifeline");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  absl::Status status = started.get();
  if (!status.ok()) return status;
  return lifeline;
}

LifelineThread::~LifelineThread() {
  state_->stop.set_value();
  if (thread_.joinable()) thread_.join();
}

}  // namespace kvd
