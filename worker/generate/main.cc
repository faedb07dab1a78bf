// muster-generate: continues a text with a trained model, or computes its self-check. `muster sample` and `muster
// export` run it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/formats/byte_tokenizer.h"
#include "common/formats/tokenizer.h"
#include "worker/generate/compute_self_check.h"
#include "worker/generate/generate.h"

namespace muster {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct Options {
  std::string from;
  std::string prompt;
  std::string tokenizer;   // its name, or a directory of its files; empty: that of the model
  std::string self_check;  // the file to write it to, instead of a text
  int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  GenerateOptions generate;
};

void DeclareFlags(CLI::App& app, Options& options) {
  app.set_version_flag("--version", std::string("muster-generate " MUSTER_VERSION));
  app.add_option("--from", options.from, "A checkpoint, a job's directory of them, or a Hugging Face directory")
      ->required();
  app.add_option("--prompt", options.prompt, "The text to continue; none: a new document");
  app.add_option("--tokens", options.generate.tokens, "New tokens at the most")->capture_default_str();
  app.add_option("--temperature", options.generate.sampler.temperature, "Divides the logits; 0: the likeliest token")
      ->capture_default_str();
  app.add_option("--top-k", options.generate.sampler.top_k, "Draw among the k likeliest tokens; 0: all")
      ->capture_default_str();
  app.add_option("--seed", options.generate.sampler.seed, "Equal seeds give equal texts")->capture_default_str();
  app.add_option("--tokenizer", options.tokenizer,
                 "bytes, bpe:DIR, sentencepiece:FILE, or a directory of its files; else the model's own");
  app.add_option("--threads", options.threads, "Of matrix products; all cores")->check(CLI::Range(1, 1024));
  app.add_option("--self-check", options.self_check, "Write the logits of a few tokens to this file, and no text");
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const Options& options, const ModelSource& source) {
  if (PathExists(options.tokenizer)) return LoadTokenizer(options.tokenizer);
  if (!options.tokenizer.empty()) return MakeTokenizer(options.tokenizer);
  if (PathExists(source.tokenizer_directory)) {
    absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = LoadTokenizer(source.tokenizer_directory);
    if (!absl::IsNotFound(tokenizer.status())) return tokenizer;
  }
  if (source.shape.vocab == kByteVocab) return std::make_unique<ByteTokenizer>();
  return absl::NotFoundError(absl::StrCat("the tokenizer of ", source.directory,
                                          " is not known; say with --tokenizer which one made the model's data"));
}

absl::Status WriteSelfCheck(const Options& options, const ModelSource& source) {
  const int64_t window = static_cast<int64_t>(SelfCheckTokens(source.shape).size());
  MUSTER_ASSIGN_OR_RETURN(const auto model, ForwardModel::Create(source, {window, options.threads}));
  MUSTER_ASSIGN_OR_RETURN(const LogitsSelfCheck check, ComputeSelfCheck(*model));
  return WriteFileDurably(options.self_check, SerializeSelfCheck(check));
}

void Print(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

absl::Status Run(const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(const ModelSource source, OpenModelSource(options.from));
  if (!source.note.empty()) std::fprintf(stderr, "muster-generate: %s", source.note.c_str());
  if (!options.self_check.empty()) return WriteSelfCheck(options, source);
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, OpenTokenizer(options, source));
  if (tokenizer->vocab() > source.shape.vocab) {
    return absl::InvalidArgumentError(absl::StrCat("the tokenizer has ", tokenizer->vocab(), " tokens, the model ",
                                                   source.shape.vocab, ": they do not belong together"));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, EncodeAll(*tokenizer, options.prompt));
  const int64_t window = WindowFor(source.shape, static_cast<int64_t>(prompt.size()), options.generate.tokens);
  MUSTER_ASSIGN_OR_RETURN(const auto model, ForwardModel::Create(source, {window, options.threads}));
  Print(options.prompt);
  const absl::Status status = Generate(*model, *tokenizer, prompt, options.generate, Print).status();
  Print("\n");
  return status;
}

int Main(int argc, char** argv) {
  CLI::App app("Continues a text with a trained model.");
  Options options;
  DeclareFlags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "muster-generate: error: %s\n", std::string(status.message()).c_str());
  return kExitFailed;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
