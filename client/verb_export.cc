// muster export
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/checkpoint_argument.h"
#include "client/engine_program.h"
#include "client/output.h"
#include "client/verbs.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/byte_tokenizer.h"
#include "common/formats/checkpoint_paths.h"
#include "common/formats/checkpoint_source.h"
#include "common/formats/hugging_face_export.h"
#include "common/formats/hugging_face_self_check.h"
#include "common/formats/tokenizer.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using Files = std::map<std::string, std::string>;

absl::StatusOr<StoredType> TypeOf(const std::string& dtype) {
  if (dtype == "fp32") return StoredType::kF32;
  if (dtype == "bf16") return StoredType::kBF16;
  if (dtype == "fp16") return StoredType::kF16;
  return absl::InvalidArgumentError(absl::StrCat("--dtype: \"", dtype, "\" is not fp32, bf16 or fp16"));
}

// The logits of the checkpoint itself, computed by the engine, so that whoever loads the export can compare. Without
// the engine program the export is whole, but nothing can be compared.
absl::Status AddSelfCheck(const std::string& checkpoint, Files& files) {
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("muster-export-", getpid(), ".json")).string();
  const absl::StatusOr<int> exit_code =
      RunEngineProgram({absl::StrCat("--from=", checkpoint), absl::StrCat("--self-check=", path)});
  if (absl::IsNotFound(exit_code.status())) {
    std::fprintf(stderr, "muster: no %s is written: %s\n", kSelfCheckFileName,
                 std::string(exit_code.status().message()).c_str());
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(exit_code.status());
  if (*exit_code != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("nothing was exported: the engine could not compute the logits of ", checkpoint));
  }
  absl::StatusOr<std::string> content = ReadFile(path);
  std::remove(path.c_str());
  MUSTER_RETURN_IF_ERROR(content.status());
  files[kSelfCheckFileName] = *std::move(content);
  return absl::OkStatus();
}

// That which the job kept beside its checkpoints; that of bytes where the vocabulary is theirs. Null: not known.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const FoundCheckpoint& found) {
  const std::string directory = CheckpointTokenizerDirectory(found.directory);
  if (PathExists(directory)) return LoadTokenizer(directory);
  if (found.reader.manifest().model.vocab == kByteVocab) return std::make_unique<ByteTokenizer>();
  std::fprintf(stderr, "muster: no tokenizer files are written: %s is not there\n", directory.c_str());
  return nullptr;
}

absl::Status AddTokenizer(const FoundCheckpoint& found, HuggingFaceExportOptions& write) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, TokenizerOf(found));
  if (tokenizer == nullptr) return absl::OkStatus();
  write.end_of_document = tokenizer->end_of_document();
  for (TokenizerFile& file : tokenizer->Files()) write.files[file.name] = std::move(file.contents);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunVerb(Session& session, const ExportOptions& options) {
  HuggingFaceExportOptions write;
  write.force = options.force;
  MUSTER_ASSIGN_OR_RETURN(write.type, TypeOf(options.dtype));
  MUSTER_ASSIGN_OR_RETURN(const std::string path,
                          ResolveCheckpoint(session, options.checkpoint, options.checkpoint_root));
  MUSTER_ASSIGN_OR_RETURN(FoundCheckpoint found, FindCheckpoint(path));
  if (!found.passed_over.empty()) std::fprintf(stderr, "muster: passed over: %s", found.passed_over.c_str());
  MUSTER_RETURN_IF_ERROR(AddTokenizer(found, write));
  MUSTER_RETURN_IF_ERROR(AddSelfCheck(found.directory, write.files));
  MUSTER_ASSIGN_OR_RETURN(const int64_t bytes, ExportHuggingFace(found.reader, options.directory, write));
  const int64_t parameters = ParameterCount(found.reader.manifest().model);
  const nlohmann::ordered_json json = {
      {"directory", options.directory}, {"checkpoint", found.directory}, {"step", found.reader.manifest().id.step},
      {"parameters", parameters},       {"dtype", options.dtype},        {"bytes", bytes}};
  PrintJson(session.options(), json,
            absl::StrCat(options.directory, ": step ", found.reader.manifest().id.step, " of ", found.directory, ", ",
                         FormatCount(parameters), " parameters in ", options.dtype, "\n"));
  return ExitCode::kOk;
}

}  // namespace muster
