#include "server/admin/admin_endpoint.h"

#include "common/base/status_macros.h"

namespace kvd {

absl::StatusOr<std::unique_ptr<AdminEndpoint>> AdminEndpoint::Start(const AdminAddress& address) {
  KVD_ASSIGN_OR_RETURN(AdminListener listener, ListenAt(address));
  std::unique_ptr<AdminEndpoint> endpoint(new AdminEndpoint(address));
  AdminPages& pages = endpoint->pages_;
  KVD_ASSIGN_OR_RETURN(
      endpoint->server_,
      AdminHttpServer::Start(std::move(listener), {}, [&pages](const AdminRequest& request) {
        return pages.Answer(request);
      }));
  return endpoint;
}

}  // namespace kvd
