// The admin endpoint, put together.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/admin/admin_http_server.h"
#include "server/admin/admin_pages.h"

namespace kvd {

class AdminEndpoint {
 public:
  // Answers from now on, /readyz that kvd is starting. Errors: of ListenAt, of AdminHttpServer.
  static absl::StatusOr<std::unique_ptr<AdminEndpoint>> Start(const AdminAddress& address);

  // kvd serves; what `source` needs lives until StopServing has returned, or this object goes.
  void Serve(AdminSource source) { pages_.SetServing(std::move(source)); }
  void StopServing() { pages_.SetNotServing("kvd is shutting down"); }

  // "http://127.0.0.1:7712/".
  std::string Url() const { return "http://" + server_->address().ToText() + "/"; }

 private:
  explicit AdminEndpoint(const AdminAddress& address)
      : pages_({.reason = "kvd is starting", .only_this_host = address.IsLoopback()}) {}

  AdminPages pages_;
  std::unique_ptr<AdminHttpServer> server_;
};

}  // namespace kvd
