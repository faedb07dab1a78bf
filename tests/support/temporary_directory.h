// A fresh directory for one test, removed with all that is in it when the object goes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "common/base/check.h"

namespace muster {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-test-XXXXXX").string();
    MUSTER_CHECK(mkdtemp(pattern.data()) != nullptr, "cannot make ", pattern);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  bool empty() const { return std::filesystem::is_empty(path_); }

  // Writes a file of the directory without any of the code under test.
  std::string Put(const std::string& name, const std::string& contents) const {
    std::ofstream(File(name), std::ios::binary | std::ios::trunc) << contents;
    return File(name);
  }
  std::string Get(const std::string& name) const {
    std::ifstream in(File(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  // A name whose every write fails with "no space left on device", without a device that is full.
  void PutFullDevice(const std::string& name) const { std::filesystem::create_symlink("/dev/full", File(name)); }

 private:
  std::string path_;
};

}  // namespace muster
