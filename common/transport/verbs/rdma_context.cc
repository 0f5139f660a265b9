#include "common/transport/verbs/rdma_context.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/errno_status.h"

namespace kvd::verbs {
namespace {

using DeviceList = std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)>;

}  // namespace

absl::StatusOr<std::shared_ptr<RdmaContext>> RdmaContext::Open(const std::string& device_name) {
  int count = 0;
  const DeviceList devices(ibv_get_device_list(&count), &ibv_free_device_list);
  if (devices == nullptr) return ErrnoStatus("listing RDMA devices");
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    ibv_device* device = devices.get()[i];
    names.emplace_back(ibv_get_device_name(device));
    if (names.back() != device_name) continue;
    ibv_context* context = ibv_open_device(device);
    if (context == nullptr) return ErrnoStatus(absl::StrCat("opening RDMA device ", device_name));
    std::shared_ptr<RdmaContext> opened(new RdmaContext(context));
    if (const int error = ibv_query_device(context, &opened->attributes_); error != 0) {
      return ErrnoStatus(error, absl::StrCat("querying RDMA device ", device_name));
    }
    return opened;
  }
  return absl::NotFoundError(
      absl::StrCat("no RDMA device named ", device_name, "; there ",
                   names.empty() ? "is none" : absl::StrCat("are: ", absl::StrJoin(names, ", "))));
}

RdmaContext::RdmaContext(ibv_context* context)
    : context_(context), name_(ibv_get_device_name(context->device)) {}

RdmaContext::~RdmaContext() { ibv_close_device(context_); }

absl::StatusOr<ibv_port_attr> RdmaContext::QueryPort(uint8_t port) const {
  ibv_port_attr attributes{};
  const int error = ibv_query_port(context_, port, &attributes);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("querying port ", port, " of ", name_));
  return attributes;
}

absl::StatusOr<std::shared_ptr<ProtectionDomain>> ProtectionDomain::Create(
    std::shared_ptr<RdmaContext> context) {
  ibv_pd* pd = ibv_alloc_pd(context->get());
  if (pd == nullptr)
    return ErrnoStatus(absl::StrCat("allocating a protection domain on ", context->name()));
  return std::shared_ptr<ProtectionDomain>(new ProtectionDomain(std::move(context), pd));
}

ProtectionDomain::~ProtectionDomain() { ibv_dealloc_pd(pd_); }

}  // namespace kvd::verbs
