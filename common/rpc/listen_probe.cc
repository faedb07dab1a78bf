#include "common/rpc/listen_probe.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"

namespace muster {
namespace {

absl::Status Explain(int error, const std::string& host, int port) {
  const std::string address = absl::StrCat(host, ":", port);
  switch (error) {
    case EADDRINUSE:
      return absl::UnavailableError(absl::StrCat(
          "port ", port, " on ", host, " is in use by another process; choose another, or port 0 for a free one"));
    case EACCES:
      return absl::PermissionDeniedError(
          absl::StrCat("not allowed to listen on ", address, "; ports below 1024 need privileges"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(absl::StrCat(host, " is not an address of this host"));
    default:
      return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", std::strerror(error)));
  }
}

}  // namespace

absl::Status ProbeListen(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot resolve host \"", host, "\": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address(found, freeaddrinfo);
  const FileDescriptor file(socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0));
  if (!file.valid()) return Explain(errno, host, port);
  const int reuse = 1;  // as the servers do: a port in TIME_WAIT is free
  setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  if (bind(file.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(file.get(), 1) != 0) {
    return Explain(errno, host, port);
  }
  return absl::OkStatus();
}

}  // namespace muster
