#include "common/rpc/address.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/http.h"
#include "muster/v1/rendezvous.grpc.pb.h"

namespace muster {
namespace {

TEST(AddressTest, ReadsHostAndPort) {
  const auto plain = ParseHostPort("worker-0.cluster:7070", "--listen");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "worker-0.cluster");
  EXPECT_EQ(plain->port, 7070);
  const auto ipv6 = ParseHostPort("[::1]:80", "--listen");
  ASSERT_TRUE(ipv6.ok());
  EXPECT_EQ(ipv6->host, "::1");
  EXPECT_EQ(ipv6->ToString(), "[::1]:80");
  EXPECT_TRUE(ipv6->IsLoopback());
}

TEST(AddressTest, RefusesWhatIsNotHostAndPortNamingTheFlag) {
  for (const char* text : {"", "7070", ":7070", "host:", "host:70700", "host:-1", "host:7x"}) {
    const auto address = ParseHostPort(text, "--listen");
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(address.status().message(), "--listen: ")) << address.status();
  }
}

TEST(AddressTest, ASecondServerOnAPortIsRefusedNamingFlagAndPort) {
  v1::RendezvousService::CallbackService service;
  const auto add_service = [&](grpc::ServerBuilder& builder) { builder.RegisterService(&service); };
  int port = 0;
  const auto first = StartServer({"127.0.0.1", 0}, "--listen", add_service, &port);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_GT(port, 0);
  int again = 0;
  const auto second = StartServer({"127.0.0.1", port}, "--listen", add_service, &again);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(second.status().message(), absl::StrCat("--listen: port ", port))) << second.status();
  const auto http = HttpServer::Start({"127.0.0.1", port}, "--http", {});
  EXPECT_EQ(http.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace muster
