#include "common/spec/job_file_reference.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/field_rules.h"

namespace muster {
namespace {

constexpr char kIntroduction[] = R"(# The job file

A job is a YAML file. It is read strictly: an unknown or repeated key, a wrong type or a value out of range is an error with file, line and
field, and nothing is submitted. `muster plan FILE` checks a file and shows what it will take; `muster submit FILE --validate-only` asks
the coordinator as well. The same fields are the `JobSpec` message of `proto/muster/v1/job.proto`.

`deploy/jobs/quickstart.yaml` is a whole one. The least that a file needs:

```yaml
name: first
model:     {family: gpt2, layers: 4, hidden: 192, heads: 6, vocab: 257, context: 128}
data:      {train: [{path: train}]}
training:  {global_batch: 32, steps: 400}
resources: {ranks: 1}
```

Sizes take KiB, MiB, GiB, TiB, KB, MB, GB, TB, as in `40GiB`; durations s, m, h, d. `auto` leaves a choice to the planner, which makes
it once, before the first attempt; for `training.micro_batch` it needs to know the memory of a rank, which `muster plan`, without a
coordinator, has from `resources.memory_per_rank` alone. Values in brackets are known and refused by this version. This page is written from
`common/spec/field_table.cc`.
)";

// Everything before the first dot.
absl::string_view SectionOf(absl::string_view path) { return path.substr(0, path.find('.')); }

std::string Values(const FieldRule& rule) {
  if (!rule.choices.empty()) {
    std::vector<std::string> values;
    for (absl::string_view choice : rule.choices) {
      values.push_back(IsLater(rule, choice) ? absl::StrCat("[`", choice, "`]") : absl::StrCat("`", choice, "`"));
    }
    return absl::StrJoin(values, ", ");
  }
  return rule.may_be_auto ? absl::StrCat(rule.unit, ", `auto`") : rule.unit;
}

}  // namespace

std::string JobFileReference() {
  std::string text = kIntroduction;
  std::string section;
  for (const FieldRule& rule : FieldRules()) {
    const absl::string_view path = rule.path;
    const std::string own(SectionOf(path));
    const bool heads_a_section = path == own && rule.unit[0] == '\0';
    if (text.back() == '\n' && (section.empty() || (heads_a_section && own != section))) {
      section = own;
      absl::StrAppend(&text, "\n## ", heads_a_section ? absl::StrCat(own, ": ", rule.meaning) : "At the top", "\n\n",
                      "| field | values | default | meaning |\n|---|---|---|---|\n");
    }
    if (heads_a_section) continue;
    absl::StrAppend(&text, "| `", path, "` | ", Values(rule), " | ", rule.default_text, " | ", rule.meaning, " |\n");
  }
  return text;
}

}  // namespace muster
