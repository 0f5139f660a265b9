#include "tests/linearizability/operation_log.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "common/base/clock.h"

namespace kvd::test {
namespace {

// A processor may read its time stamp counter earlier or later than its memory, unless it is told.
void ExecutionFence() {
#if defined(__x86_64__)
  asm volatile("mfence; lfence" ::: "memory");
#elif defined(__aarch64__)
  asm volatile("dsb sy; isb" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

int64_t OrderedNowNs() {
  ExecutionFence();
  const int64_t now_ns = RealClock::Get().NowMonotonicNs();
  ExecutionFence();
  return now_ns;
}

std::unique_ptr<OperationLog> OperationLog::Create(uint64_t capacity) {
  const uint64_t bytes = sizeof(Head) + capacity * sizeof(Operation);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<OperationLog>(new OperationLog(memory, bytes, capacity));
}

OperationLog::OperationLog(void* memory, uint64_t bytes, uint64_t capacity)
    : memory_(memory),
      bytes_(bytes),
      capacity_(capacity),
      head_(new (memory) Head),
      slots_(reinterpret_cast<Operation*>(head_ + 1)) {}

OperationLog::~OperationLog() { munmap(memory_, bytes_); }

void OperationLog::Clear() {
  madvise(memory_, bytes_, MADV_REMOVE);
  new (memory_) Head;
}

std::vector<Operation> OperationLog::Collect() const {
  std::vector<Operation> operations;
  const uint64_t end = std::min(taken(), capacity_);
  for (uint64_t i = 0; i < end; ++i) {
    if (slots_[i].invoked_ns != 0) operations.push_back(slots_[i]);
  }
  return operations;
}

Operation* LogWriter::Begin(Operation& operation) {
  if (next_ == end_) {
    next_ = log_.head_->taken.fetch_add(kSlotsAtOnce, std::memory_order_relaxed);
    end_ = next_ + kSlotsAtOnce;
  }
  if (end_ > log_.capacity_) return nullptr;
  Operation* const slot = &log_.slots_[next_++];
  operation.outcome = Outcome::kUnknown;
  operation.returned_ns = kNever;
  operation.invoked_ns = 0;
  *slot = operation;
  operation.invoked_ns = OrderedNowNs();
  // A slot without a time is empty; a client that is killed before has not begun.
  std::atomic_ref(slot->invoked_ns).store(operation.invoked_ns, std::memory_order_release);
  return slot;
}

void LogWriter::End(Operation* slot, const Operation& operation) {
  Operation ended = operation;
  ended.outcome = Outcome::kUnknown;
  *slot = ended;
  // A client that is killed before does not know how it ended.
  std::atomic_ref(slot->outcome).store(operation.outcome, std::memory_order_release);
}

void LogWriter::StrikeOut(Operation* slot) {
  std::atomic_ref(slot->invoked_ns).store(0, std::memory_order_release);
}

}  // namespace kvd::test
