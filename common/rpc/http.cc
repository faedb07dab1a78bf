#include "common/rpc/http.h"

#include <civetweb.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/rpc/listen_probe.h"

namespace muster {
namespace {

constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr char kPlainType[] = "text/plain; charset=utf-8";

int Answer(mg_connection* connection, int code, const char* reason, const char* type, const std::string& body) {
  mg_printf(connection, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", code,
            reason, type, body.size());
  mg_write(connection, body.data(), body.size());
  return code;
}

int ServeMetrics(mg_connection* connection, void* data) {
  return Answer(connection, 200, "OK", kMetricsType, static_cast<const HttpPages*>(data)->metrics());
}

int ServeHealth(mg_connection* connection, void* data) {
  const absl::Status health = static_cast<const HttpPages*>(data)->health();
  if (health.ok()) return Answer(connection, 200, "OK", kPlainType, "ok\n");
  return Answer(connection, 503, "Service Unavailable", kPlainType, absl::StrCat(health.message(), "\n"));
}

int ServeIndex(mg_connection* connection, void* data) {
  return Answer(connection, 404, "Not Found", kPlainType, "Here are /metrics and /healthz.\n");
}

// Connects and leaves.
void Knock(const HostPort& address) {
  char error[256];
  const std::string host = address.host == "0.0.0.0" ? "127.0.0.1" : address.host;
  mg_connection* connection = mg_connect_client(host.c_str(), address.port, /*use_ssl=*/0, error, sizeof(error));
  if (connection != nullptr) mg_close_connection(connection);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HostPort& address, absl::string_view flag,
                                                              HttpPages pages) {
  if (absl::Status probe = ProbeListen(address.host, address.port); !probe.ok()) {
    return absl::Status(probe.code(), absl::StrCat(flag, ": ", probe.message()));
  }
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(pages)));
  server->address_ = address;
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  const std::string port = HostPort{host, address.port}.ToString();
  const char* options[] = {"listening_ports", port.c_str(), "num_threads", "4", nullptr};
  mg_callbacks callbacks{};
  callbacks.log_message = [](const mg_connection*, const char*) { return 1; };  // not on our stderr
  server->context_ = mg_start(&callbacks, nullptr, options);
  if (server->context_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(flag, ": cannot serve HTTP on ", address.ToString()));
  }
  mg_server_port bound[1] = {};
  if (mg_get_server_ports(server->context_, 1, bound) == 1) server->address_.port = bound[0].port;
  void* data = const_cast<HttpPages*>(&server->pages_);
  mg_set_request_handler(server->context_, "/metrics$", ServeMetrics, data);
  mg_set_request_handler(server->context_, "/healthz$", ServeHealth, data);
  mg_set_request_handler(server->context_, "**", ServeIndex, data);
  return server;
}

HttpServer::~HttpServer() {
  if (context_ == nullptr) return;
  // civetweb's listening thread looks at its stop flag every two seconds, or after a connection: give it one.
  std::atomic<bool> stopped{false};
  std::thread waker([this, &stopped] {
    while (!stopped.load()) {
      Knock(address_);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  mg_stop(context_);
  stopped.store(true);
  waker.join();
}

}  // namespace muster
