#include "common/formats/hugging_face_self_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "common/formats/json_fields.h"

namespace muster {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr int64_t kMostTokens = 32;

}  // namespace

std::string SerializeSelfCheck(const LogitsSelfCheck& check) {
  const nlohmann::ordered_json json = {{"format_version", kFormatVersion},
                                       {"computed_by", check.computed_by},
                                       {"tokens", check.tokens},
                                       {"log_probabilities", check.log_probabilities}};
  return json.dump(1) + "\n";
}

absl::StatusOr<LogitsSelfCheck> ParseSelfCheck(absl::string_view json, absl::string_view file,
                                               const ModelShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json, file));
  const JsonField root(parsed, std::string(file), "");
  MUSTER_RETURN_IF_ERROR(root.CheckKeys({"format_version", "computed_by", "tokens", "log_probabilities"}));
  MUSTER_ASSIGN_OR_RETURN(const JsonField version_field, root.Member("format_version"));
  MUSTER_ASSIGN_OR_RETURN(const int64_t version, version_field.Integer());
  if (version != kFormatVersion) return version_field.Error(absl::StrCat("version ", version, " is not known here"));
  LogitsSelfCheck check;
  MUSTER_ASSIGN_OR_RETURN(const JsonField by, root.Member("computed_by"));
  MUSTER_ASSIGN_OR_RETURN(check.computed_by, by.String());
  MUSTER_ASSIGN_OR_RETURN(const JsonField tokens_field, root.Member("tokens"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<int64_t> tokens, tokens_field.Integers());
  for (const int64_t token : tokens) {
    if (token >= shape.vocab)
      return tokens_field.Error(absl::StrCat(token, " is not in the vocabulary of ", shape.vocab));
    check.tokens.push_back(static_cast<int32_t>(token));
  }
  if (tokens.size() < 2 || static_cast<int64_t>(tokens.size()) > shape.context) {
    return tokens_field.Error(absl::StrCat("expected 2 to ", shape.context, " tokens"));
  }
  MUSTER_ASSIGN_OR_RETURN(const JsonField logs_field, root.Member("log_probabilities"));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<JsonField> logs, logs_field.Elements());
  for (const JsonField& field : logs) {
    MUSTER_ASSIGN_OR_RETURN(check.log_probabilities.emplace_back(), field.Number());
  }
  if (logs.size() + 1 != tokens.size()) return logs_field.Error("expected one less than tokens");
  return check;
}

std::vector<int32_t> SelfCheckTokens(const ModelShape& shape) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < std::min(kMostTokens, shape.context); ++i) {
    tokens.push_back(static_cast<int32_t>(MixBits(static_cast<uint64_t>(i) + kSplitMixIncrement) %
                                          static_cast<uint64_t>(shape.vocab)));
  }
  return tokens;
}

absl::Status CompareSelfCheck(const LogitsSelfCheck& check, absl::Span<const double> computed, double tolerance) {
  MUSTER_CHECK(computed.size() <= check.log_probabilities.size(), "more positions than the check has");
  for (size_t i = 0; i < computed.size(); ++i) {
    const double expected = check.log_probabilities[i];
    if (std::abs(computed[i] - expected) <= tolerance) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "the model does not compute what %s says: token %d at position %d has a log-probability of %.6f, %.6f is "
        "expected (tolerance %g), as %s computed it; the weights or the configuration are not those of the model that "
        "was exported",
        kSelfCheckFileName, check.tokens[i + 1], i + 1, computed[i], expected, tolerance, check.computed_by));
  }
  return absl::OkStatus();
}

}  // namespace muster
