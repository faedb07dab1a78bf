// Writes the tiny models as the directories that transformers_logits.py reads: write_exports DIR makes DIR/gpt2 and its
// siblings.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/formats/checkpoint_source.h"
#include "common/formats/hugging_face_export.h"
#include "tests/support/golden_logits.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_checkpoint.h"

namespace muster {
namespace {

absl::Status WriteExports(const std::string& target) {
  for (const auto& [name, shape] : GoldenShapes()) {
    const TemporaryDirectory root;
    absl::StatusOr<FoundCheckpoint> found = FindCheckpoint(WriteTinyCheckpoint(root.path(), shape));
    if (!found.ok()) return found.status();
    const absl::StatusOr<int64_t> bytes =
        ExportHuggingFace(found->reader, absl::StrCat(target, "/", name), {.force = true});
    if (!bytes.ok()) return bytes.status();
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_exports DIR\n");
    return 2;
  }
  const absl::Status status = muster::WriteExports(argv[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "write_exports: %s\n", std::string(status.message()).c_str());
  return 1;
}
