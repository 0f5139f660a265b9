// Messages to one poller from the others: any thread posts, the owner takes. Intrusive, so posting
// never allocates and never waits (Vyukov, "Intrusive MPSC node-based queue"). What may be in it is
// bounded by the credits of all sessions.
#pragma once

#include <atomic>

namespace kvd {

struct MailboxNode {
  std::atomic<MailboxNode*> next_in_mailbox{nullptr};
};

class Mailbox {
 public:
  Mailbox() : newest_(&stub_), oldest_(&stub_) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Any thread. The node belongs to the mailbox until Take returns it.
  void Post(MailboxNode* node) {
    node->next_in_mailbox.store(nullptr, std::memory_order_relaxed);
    // seq_cst: with the poster's load of "sleeping" that follows, partner of the owner's store of
    // it and empty().
    MailboxNode* before = newest_.exchange(node, std::memory_order_seq_cst);
    before->next_in_mailbox.store(node, std::memory_order_release);
  }

  // The owner only. The oldest message; null if there is none, or if its poster is just between the
  // two steps of Post (then empty() is false).
  MailboxNode* Take() {
    MailboxNode* node = oldest_;
    MailboxNode* next = node->next_in_mailbox.load(std::memory_order_acquire);
    if (node == &stub_) {
      if (next == nullptr) return nullptr;
      oldest_ = node = next;
      next = node->next_in_mailbox.load(std::memory_order_acquire);
    }
    if (next == nullptr) {
      if (node != newest_.load(std::memory_order_acquire)) return nullptr;
      // The last node can only leave when another stands behind it.
      Post(&stub_);
      next = node->next_in_mailbox.load(std::memory_order_acquire);
      if (next == nullptr) return nullptr;
    }
    oldest_ = next;
    return node;
  }

  // The owner only. False also while a message is being posted.
  bool empty() const {
    return oldest_ == &stub_ && newest_.load(std::memory_order_seq_cst) == &stub_;
  }

 private:
  MailboxNode stub_;
  alignas(64) std::atomic<MailboxNode*> newest_;
  alignas(64) MailboxNode* oldest_;
};

}  // namespace kvd
