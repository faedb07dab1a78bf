// One port for /metrics and /healthz, through civetweb (prometheus-cpp's own exposer serves only /metrics and does not
// say why it cannot listen). Owned by a daemon's main, made and destroyed by one thread; pages are answered on four
// threads of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/address.h"

struct mg_context;

namespace muster {

struct HttpPages {
  // The text exposition format, made anew for each request. Called on HTTP threads.
  std::function<std::string()> metrics;
  // OK answers 200 "ok"; anything else 503 with its message. Called on HTTP threads.
  std::function<absl::Status()> health;
};

// Serves until destroyed.
class HttpServer {
 public:
  // UNAVAILABLE that names `flag` and the address when the port is taken. Port 0 picks a free one.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HostPort& address, absl::string_view flag,
                                                           HttpPages pages);
  ~HttpServer();

  // With the real port.
  const HostPort& address() const { return address_; }

 private:
  explicit HttpServer(HttpPages pages) : pages_(std::move(pages)) {}

  const HttpPages pages_;
  HostPort address_;
  mg_context* context_ = nullptr;
};

}  // namespace muster
