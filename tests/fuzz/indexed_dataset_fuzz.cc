// The index, tokens and mask of a dataset, and a token file of llm.c: whatever the bytes, opening them ends in a
// dataset that can be read or in an error. The input is the three files one after another, cut by its first two bytes;
// all of it is the file of llm.c.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "common/formats/token_dataset.h"

namespace {

void Put(const std::string& path, const uint8_t* data, size_t size) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

void ReadAll(const std::string& path) {
  const auto dataset = muster::OpenTokenDataset(path, /*documents_wanted=*/true);
  if (!dataset.ok()) return;
  std::vector<int32_t> tokens(static_cast<size_t>((*dataset)->tokens()));
  (*dataset)->Read(0, absl::MakeSpan(tokens));
  (void)(*dataset)->CheckTokens(100, 0, (*dataset)->tokens());
  for (int64_t document = 0; document <= (*dataset)->documents(); ++document) {
    const int64_t begin = (*dataset)->DocumentBegin(document);
    if (begin < 0 || begin > (*dataset)->tokens()) std::abort();
  }
  for (int64_t token = 0; token < (*dataset)->tokens(); ++token) {
    (void)(*dataset)->Counted(token);
    if ((*dataset)->DocumentBegin((*dataset)->DocumentOf(token)) > token) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = [] {
    char name[] = "/tmp/muster-fuzz-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  Put(folder + "/llmc.bin", data, size);
  ReadAll(folder + "/llmc.bin");
  if (size < 2) return 0;
  const size_t index_size = std::min<size_t>(data[0], size - 2);
  const size_t tokens_size = std::min<size_t>(data[1], size - 2 - index_size);
  const size_t mask_size = size - 2 - index_size - tokens_size;
  Put(folder + "/d.idx", data + 2, index_size);
  Put(folder + "/d.bin", data + 2 + index_size, tokens_size);
  if (mask_size > 0) {
    Put(folder + "/d.mask", data + size - mask_size, mask_size);
  } else {
    unlink((folder + "/d.mask").c_str());
  }
  ReadAll(folder + "/d");
  return 0;
}
