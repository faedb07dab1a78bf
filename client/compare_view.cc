#include "client/compare_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/output.h"
#include "common/base/format_bytes.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using Points = std::map<int64_t, double>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// Runs that are closer than this are called equal: less than one seed differs from another.
constexpr double kEqualLoss = 0.002;
constexpr double kEqualRate = 0.01;

Points PointsOf(const Run& run, const std::string& name) {
  Points points;
  for (const v1::MetricSeries& series : run.metrics.series()) {
    if (series.name() != name) continue;
    for (const v1::MetricPoint& point : series.points()) points[point.step()] = point.value();
  }
  return points;
}

double At(const Points& points, int64_t step) {
  const auto found = points.find(step);
  return found == points.end() ? kNone : found->second;
}

// "training.steps" -> "60"
std::map<std::string, std::string> Fields(const v1::JobSpec& spec) {
  std::map<std::string, std::string> fields;
  const nlohmann::json flat = nlohmann::json::parse(ToJson(spec)).flatten();  // outlives its items()
  for (const auto& item : flat.items()) {
    const std::string field = absl::StrReplaceAll(absl::StripPrefix(item.key(), "/"), {{"/", "."}});
    fields[field] = item.value().is_string() ? item.value().get<std::string>() : item.value().dump();
  }
  return fields;
}

std::vector<Comparison::Difference> Differences(const v1::JobSpec& left, const v1::JobSpec& right) {
  const std::map<std::string, std::string> lefts = Fields(left);
  const std::map<std::string, std::string> rights = Fields(right);
  std::set<std::string> names;
  for (const auto& field : lefts) names.insert(field.first);
  for (const auto& field : rights) names.insert(field.first);
  std::vector<Comparison::Difference> differences;
  for (const std::string& name : names) {
    if (name == "name" || name == "checkpoint.directory") continue;
    const auto of = [&name](const std::map<std::string, std::string>& fields) {
      const auto found = fields.find(name);
      return found == fields.end() ? std::string("-") : found->second;
    };
    if (of(lefts) != of(rights)) differences.push_back({name, of(lefts), of(rights)});
  }
  return differences;
}

double Mean(const Points& points) {
  double sum = 0;
  for (const auto& point : points) sum += point.second;
  return points.empty() ? kNone : sum / static_cast<double>(points.size());
}

std::string Against(const char* what, int64_t step, std::pair<double, double> losses, const Comparison& comparison) {
  const double difference = losses.first - losses.second;
  const std::string values =
      absl::StrFormat("%.4f (perplexity %.2f) against %.4f (%.2f)", std::min(losses.first, losses.second),
                      std::exp(std::min(losses.first, losses.second)), std::max(losses.first, losses.second),
                      std::exp(std::max(losses.first, losses.second)));
  if (std::abs(difference) < kEqualLoss) {
    return absl::StrFormat("%s loss is the same at step %d: %.4f and %.4f", what, step, losses.first, losses.second);
  }
  return absl::StrCat(difference < 0 ? comparison.left : comparison.right, " has the lower ", what, " loss at step ",
                      step, ": ", values);
}

std::string Verdict(const Run& left, const Run& right, const Comparison& comparison) {
  const Points losses[] = {PointsOf(left, "muster_job_loss"), PointsOf(right, "muster_job_loss")};
  const Points validations[] = {PointsOf(left, "muster_job_validation_loss"),
                                PointsOf(right, "muster_job_validation_loss")};
  const auto last_common = [](const Points& a, const Points& b) {
    for (auto point = a.rbegin(); point != a.rend(); ++point) {
      if (point->first > 0 && b.count(point->first) > 0) return point->first;
    }
    return int64_t{-1};
  };
  std::string verdict;
  if (const int64_t step = last_common(validations[0], validations[1]); step >= 0) {
    verdict = Against("validation", step, {validations[0].at(step), validations[1].at(step)}, comparison);
  } else if (const int64_t trained = last_common(losses[0], losses[1]); trained >= 0) {
    verdict = Against("training", trained, {losses[0].at(trained), losses[1].at(trained)}, comparison);
  } else {
    return "no step is known of both";
  }
  const double rates[] = {Mean(PointsOf(left, "muster_job_tokens_per_second")),
                          Mean(PointsOf(right, "muster_job_tokens_per_second"))};
  const double ratio = rates[0] / rates[1];
  if (!std::isfinite(ratio) || std::abs(ratio - 1) < kEqualRate) return absl::StrCat(verdict, "; both are as fast");
  return absl::StrFormat("%s; %s is faster, %s against %s tokens/s", verdict,
                         ratio > 1 ? comparison.left : comparison.right, FormatRate(std::max(rates[0], rates[1])),
                         FormatRate(std::min(rates[0], rates[1])));
}

std::string Cell(double value, int digits) { return std::isnan(value) ? "-" : absl::StrFormat("%.*f", digits, value); }

Json Value(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

}  // namespace

Comparison Compare(const Run& left, const Run& right, size_t most_steps) {
  Comparison comparison;
  comparison.left = absl::StrCat(left.job.id(), " ", left.job.spec().name());
  comparison.right = absl::StrCat(right.job.id(), " ", right.job.spec().name());
  comparison.differences = Differences(left.job.resolved_spec(), right.job.resolved_spec());
  const char* const names[] = {"muster_job_loss", "muster_job_validation_loss", "muster_job_tokens_per_second",
                               "muster_job_resident_bytes"};
  std::map<std::string, std::pair<Points, Points>> points;
  for (const char* name : names) points[name] = {PointsOf(left, name), PointsOf(right, name)};
  std::vector<int64_t> common;
  for (const auto& point : points[names[0]].first) {
    if (points[names[0]].second.count(point.first) > 0) common.push_back(point.first);
  }
  // Steps with a validation first: they say most.
  std::vector<int64_t> validated;
  for (const int64_t step : common) {
    const auto& validations = points[names[1]];
    if (validations.first.count(step) > 0 && validations.second.count(step) > 0) validated.push_back(step);
  }
  const std::vector<int64_t>& steps = validated.size() >= 2 ? validated : common;
  const size_t count = std::min(most_steps, steps.size());
  for (size_t i = 0; i < count; ++i) {
    const int64_t step = steps[count < 2 ? steps.size() - 1 : i * (steps.size() - 1) / (count - 1)];
    const auto both = [&](const char* name) {
      return std::make_pair(At(points[name].first, step), At(points[name].second, step));
    };
    comparison.steps.push_back({step, both(names[0]), both(names[1]), both(names[2]), both(names[3])});
  }
  comparison.verdict = Verdict(left, right, comparison);
  return comparison;
}

std::string CompareText(const Comparison& comparison) {
  std::string text;
  if (comparison.differences.empty()) {
    absl::StrAppend(&text, comparison.left, " and ", comparison.right, " were asked for the same\n");
  } else {
    Table table({{"FIELD"}, {comparison.left}, {comparison.right}});
    for (const auto& difference : comparison.differences) {
      table.AddRow({difference.field, difference.left, difference.right});
    }
    absl::StrAppend(&text, table.ToString());
  }
  using Align = Table::Align;
  Table table({{"STEP", Align::kRight},
               {"LOSS", Align::kRight},
               {"", Align::kRight},
               {"VALIDATION", Align::kRight},
               {"", Align::kRight},
               {"PERPLEXITY", Align::kRight},
               {"", Align::kRight},
               {"TOKENS/S", Align::kRight},
               {"", Align::kRight},
               {"MEMORY", Align::kRight},
               {"", Align::kRight}});
  for (const Comparison::Step& step : comparison.steps) {
    const auto bytes = [](double value) { return std::isnan(value) ? "-" : FormatBytes(static_cast<int64_t>(value)); };
    const auto rate = [](double value) { return std::isnan(value) ? "-" : FormatRate(value); };
    table.AddRow({absl::StrCat(step.step), Cell(step.loss.first, 4), Cell(step.loss.second, 4),
                  Cell(step.validation_loss.first, 4), Cell(step.validation_loss.second, 4),
                  Cell(std::exp(step.validation_loss.first), 2), Cell(std::exp(step.validation_loss.second), 2),
                  rate(step.tokens_per_second.first), rate(step.tokens_per_second.second),
                  bytes(step.resident_bytes.first), bytes(step.resident_bytes.second)});
  }
  if (!comparison.steps.empty()) absl::StrAppend(&text, "\n", table.ToString());
  return absl::StrCat(text, "\n", comparison.verdict, "\n");
}

namespace {

Json ToJson(const Comparison& comparison) {
  Json json = {{"left", comparison.left}, {"right", comparison.right}};
  json["differences"] = Json::array();
  for (const auto& difference : comparison.differences) {
    json["differences"].push_back(
        {{"field", difference.field}, {"left", difference.left}, {"right", difference.right}});
  }
  json["steps"] = Json::array();
  for (const Comparison::Step& step : comparison.steps) {
    const auto both = [](const std::pair<double, double>& values) {
      return Json{{"left", Value(values.first)}, {"right", Value(values.second)}};
    };
    json["steps"].push_back({{"step", step.step},
                             {"loss", both(step.loss)},
                             {"validation_loss", both(step.validation_loss)},
                             {"tokens_per_second", both(step.tokens_per_second)},
                             {"resident_bytes", both(step.resident_bytes)}});
  }
  json["verdict"] = comparison.verdict;
  return json;
}

}  // namespace

std::string CompareJson(const Comparison& comparison) { return ToJson(comparison).dump(2) + "\n"; }

std::string CompareYaml(const Comparison& comparison) { return JsonToYaml(ToJson(comparison)); }

}  // namespace muster
