#include "common/spec/scalars.h"

#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

struct Unit {
  absl::string_view name;
  double value;
};

constexpr std::array<Unit, 9> kSizeUnits = {{{"KiB", 1024.0},
                                             {"MiB", 1048576.0},
                                             {"GiB", 1073741824.0},
                                             {"TiB", 1099511627776.0},
                                             {"KB", 1e3},
                                             {"MB", 1e6},
                                             {"GB", 1e9},
                                             {"TB", 1e12},
                                             {"B", 1.0}}};
constexpr std::array<Unit, 4> kTimeUnits = {{{"s", 1.0}, {"m", 60.0}, {"h", 3600.0}, {"d", 86400.0}}};

absl::Status Bad(absl::string_view text, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" ", what));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the front; how many there were.
size_t TakeDigits(absl::string_view* text) {
  size_t count = 0;
  while (count < text->size() && IsDigit((*text)[count])) ++count;
  text->remove_prefix(count);
  return count;
}

bool HasLeadingZero(absl::string_view text) {
  absl::ConsumePrefix(&text, "-") || absl::ConsumePrefix(&text, "+");
  return text.size() > 1 && text[0] == '0' && IsDigit(text[1]);
}

absl::Status CheckDigits(absl::string_view text) {
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "-") || absl::ConsumePrefix(&rest, "+");
  if (TakeDigits(&rest) == 0 || !rest.empty()) return Bad(text, "is not a whole number");
  if (HasLeadingZero(text)) return Bad(text, "has a leading zero, which some readers take for octal; leave it out");
  return absl::OkStatus();
}

template <size_t kCount>
absl::StatusOr<double> ParseWithUnit(absl::string_view text, const std::array<Unit, kCount>& units,
                                     absl::string_view expected) {
  for (const Unit& unit : units) {
    absl::string_view number = text;
    if (!absl::ConsumeSuffix(&number, unit.name)) continue;
    const auto value = ParseNumber(absl::StripSuffix(number, " "));
    if (!value.ok() || *value < 0) break;
    return *value * unit.value;
  }
  return Bad(text, expected);
}

}  // namespace

absl::StatusOr<int64_t> ParseInteger(absl::string_view text) {
  MUSTER_RETURN_IF_ERROR(CheckDigits(text));
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return Bad(text, "is too large");
  return value;
}

absl::StatusOr<uint64_t> ParseUnsigned(absl::string_view text) {
  MUSTER_RETURN_IF_ERROR(CheckDigits(text));
  if (text[0] == '-') return Bad(text, "is negative");
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return Bad(text, "is too large");
  return value;
}

absl::StatusOr<double> ParseNumber(absl::string_view text) {
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "-") || absl::ConsumePrefix(&rest, "+");
  size_t digits = TakeDigits(&rest);
  if (absl::ConsumePrefix(&rest, ".")) digits += TakeDigits(&rest);
  bool well_formed = digits > 0;
  if (absl::ConsumePrefix(&rest, "e") || absl::ConsumePrefix(&rest, "E")) {
    absl::ConsumePrefix(&rest, "-") || absl::ConsumePrefix(&rest, "+");
    well_formed = well_formed && TakeDigits(&rest) > 0;
  }
  double value = 0;
  if (!well_formed || !rest.empty() || !absl::SimpleAtod(text, &value)) return Bad(text, "is not a number");
  if (!std::isfinite(value)) return Bad(text, "is too large");
  if (HasLeadingZero(text)) return Bad(text, "has a leading zero, which some readers take for octal; leave it out");
  return value;
}

absl::StatusOr<bool> ParseFlag(absl::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return Bad(text, "is neither true nor false");
}

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  if (!text.empty() && IsDigit(text.back())) return ParseInteger(text);
  MUSTER_ASSIGN_OR_RETURN(const double bytes,
                          ParseWithUnit(text, kSizeUnits,
                                        "is not a size: write bytes, or a number with KiB, MiB, GiB, "
                                        "TiB, KB, MB, GB or TB, as in 40GiB"));
  if (bytes > 9e18) return Bad(text, "is too large");
  return static_cast<int64_t>(std::llround(bytes));
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(
      const double seconds,
      ParseWithUnit(text, kTimeUnits, "is not a duration: write a number with s, m, h or d, as in 30m"));
  return absl::Seconds(seconds);
}

std::string SizeText(int64_t bytes) {
  for (const Unit& unit :
       {Unit{"TiB", 1099511627776.0}, Unit{"GiB", 1073741824.0}, Unit{"MiB", 1048576.0}, Unit{"KiB", 1024.0}}) {
    const int64_t size = static_cast<int64_t>(unit.value);
    if (bytes >= size && bytes % size == 0) return absl::StrCat(bytes / size, unit.name);
  }
  return absl::StrCat(bytes);
}

}  // namespace muster
