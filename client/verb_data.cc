// muster data tokenize | entropy
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output.h"
#include "client/verbs.h"
#include "common/base/status_macros.h"
#include "common/formats/ngram_entropy.h"
#include "common/formats/tokenize_files.h"
#include "common/formats/tokenizer.h"
#include "nlohmann/json.hpp"

namespace muster {
absl::StatusOr<ExitCode> RunVerb(Session& session, const DataTokenizeOptions& options) {
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = MakeTokenizer(options.tokenizer);
  if (!tokenizer.ok()) {
    return absl::Status(tokenizer.status().code(), absl::StrCat("--tokenizer: ", tokenizer.status().message()));
  }
  TokenizeOptions tokenize;
  tokenize.document_separator = options.document_separator;
  tokenize.text_field = options.jsonl_field;
  tokenize.prompt_field = options.prompt_field;
  tokenize.completion_field = options.completion_field;
  tokenize.validation_fraction = options.validation_fraction;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<TokenizedDataset> datasets,
                          TokenizeFiles(options.inputs, **tokenizer, options.output_prefix, tokenize));
  nlohmann::ordered_json json = {{"datasets", nlohmann::ordered_json::array()}};
  std::string text;
  for (const TokenizedDataset& dataset : datasets) {
    json["datasets"].push_back(
        {{"prefix", dataset.prefix}, {"tokens", dataset.tokens}, {"documents", dataset.documents}});
    absl::StrAppend(&text, dataset.prefix, ".bin and .idx: ", FormatCount(dataset.tokens), " tokens, ",
                    FormatCount(dataset.documents), dataset.documents == 1 ? " document\n" : " documents\n");
  }
  PrintJson(session.options(), json, text);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunVerb(Session& session, const DataEntropyOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const IndexedDataset train, IndexedDataset::Open(options.train_prefix));
  MUSTER_ASSIGN_OR_RETURN(const IndexedDataset held_out, IndexedDataset::Open(options.held_out_prefix));
  MUSTER_ASSIGN_OR_RETURN(const NgramEntropy entropy, ScoreNgrams(train, held_out));
  const nlohmann::ordered_json json = {{"unigram_nats", entropy.unigram_nats},
                                       {"bigram_nats", entropy.bigram_nats},
                                       {"train_tokens", entropy.train_tokens},
                                       {"held_out_tokens", entropy.held_out_tokens}};
  PrintJson(session.options(), json,
            absl::StrFormat("unigram %.4f  bigram %.4f nats per token (counts of %s tokens, scored on %s)\n",
                            entropy.unigram_nats, entropy.bigram_nats, FormatCount(entropy.train_tokens),
                            FormatCount(entropy.held_out_tokens)));
  return ExitCode::kOk;
}

}  // namespace muster
