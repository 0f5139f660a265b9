// An opened RDMA device and a protection domain on it: the two things that everything else hangs
// from. A child holds its parent, so a device is closed after the last of its memory regions,
// queues and connections has gone.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace kvd::verbs {

class RdmaContext {
 public:
  // Opens the device of this name, never another one. NotFound names the devices that there are;
  // otherwise what the kernel said. Not to be carried over a fork.
  static absl::StatusOr<std::shared_ptr<RdmaContext>> Open(const std::string& device_name);

  ~RdmaContext();
  RdmaContext(const RdmaContext&) = delete;
  RdmaContext& operator=(const RdmaContext&) = delete;

  ibv_context* get() const { return context_; }
  const std::string& name() const { return name_; }
  const ibv_device_attr& attributes() const { return attributes_; }
  bool is_iwarp() const { return context_->device->transport_type == IBV_TRANSPORT_IWARP; }

  // Asks the device each time. Unavailable: the device has gone.
  absl::StatusOr<ibv_port_attr> QueryPort(uint8_t port) const;

 private:
  explicit RdmaContext(ibv_context* context);

  ibv_context* context_;
  std::string name_;
  ibv_device_attr attributes_{};
};

class ProtectionDomain {
 public:
  static absl::StatusOr<std::shared_ptr<ProtectionDomain>> Create(
      std::shared_ptr<RdmaContext> context);

  ~ProtectionDomain();
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;

  ibv_pd* get() const { return pd_; }
  const std::shared_ptr<RdmaContext>& context() const { return context_; }

 private:
  ProtectionDomain(std::shared_ptr<RdmaContext> context, ibv_pd* pd)
      : context_(std::move(context)), pd_(pd) {}

  std::shared_ptr<RdmaContext> context_;
  ibv_pd* pd_;
};

}  // namespace kvd::verbs
