#include "common/spec/validate.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/plan/layout_check.h"
#include "common/spec/field_rules.h"
#include "common/spec/plan_proto.h"
#include "common/spec/resolve.h"
#include "google/protobuf/duration.pb.h"

namespace muster {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kMostLabels = 64;
constexpr int kMostListEntries = 4096;

using Problems = std::vector<Problem>;

double NumberOf(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(reflection.GetUInt64(message, &field));
    default:
      return static_cast<double>(reflection.GetInt64(message, &field));
  }
}

void Missing(const std::string& path, Problems* problems) {
  problems->push_back({"MISSING_FIELD", path, "is required and missing", ""});
}

void CheckTextValue(const FieldRule& rule, const std::string& path, const std::string& value, Problems* problems) {
  const std::string wrong = CheckText(rule, value);
  if (!wrong.empty()) {
    problems->push_back({"OUT_OF_RANGE", path, wrong, ""});
  } else if (IsLater(rule, value)) {
    std::string use;
    for (absl::string_view choice : rule.choices) {
      if (!IsLater(rule, choice)) absl::StrAppend(&use, use.empty() ? "use " : " or ", choice);
    }
    problems->push_back({"NOT_SUPPORTED_YET", path, absl::StrCat(value, " is not supported yet by this version"), use});
  }
}

// The rules of the table, applied to what a message has. A number or text that is 0 or empty is not set, unless the
// field tells the two apart.
class FieldCheck {
 public:
  explicit FieldCheck(Problems* problems) : problems_(problems) {}

  void CheckMessage(const Message& message, const std::string& path) {
    const Descriptor& descriptor = *message.GetDescriptor();
    for (int i = 0; i < descriptor.field_count(); ++i) {
      const FieldDescriptor& field = *descriptor.field(i);
      const std::string key = FileKey(field);
      CheckField(message, field, path.empty() ? key : path + "." + key);
    }
  }

 private:
  void CheckField(const Message& message, const FieldDescriptor& field, const std::string& path) {
    const FieldRule* rule = FindFieldRule(path);
    if (rule == nullptr) return;
    const auto& reflection = *message.GetReflection();
    if (field.is_repeated()) {
      CheckList(message, field, *rule, path);
      return;
    }
    const bool set = reflection.HasField(message, &field);
    if (!set && rule->required()) {
      Missing(path, problems_);
    } else if (!set) {
      return;
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CheckPart(reflection.GetMessage(message, &field), *rule, path);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      CheckTextValue(*rule, path, reflection.GetString(message, &field), problems_);
    } else if (field.cpp_type() != FieldDescriptor::CPPTYPE_BOOL) {
      AddOutOfRange(CheckNumber(*rule, NumberOf(message, field)), path);
    }
  }

  void CheckPart(const Message& part, const FieldRule& rule, const std::string& path) {
    if (part.GetDescriptor() == google::protobuf::Duration::descriptor()) {
      AddOutOfRange(
          CheckNumber(rule, static_cast<double>(static_cast<const google::protobuf::Duration&>(part).seconds())), path);
    } else {
      CheckMessage(part, path);
    }
  }

  void CheckList(const Message& message, const FieldDescriptor& field, const FieldRule& rule, const std::string& path) {
    const auto& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    const int most = field.is_map() ? kMostLabels : kMostListEntries;
    if (size == 0 && rule.required()) Missing(path, problems_);
    if (size > most) {
      AddOutOfRange(absl::StrCat("has ", size, " entries, at most ", most, " are allowed"), path);
      return;
    }
    if (field.is_map()) return;
    for (int i = 0; i < size; ++i) {
      const std::string element = absl::StrCat(path, "[", i, "]");
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        CheckMessage(reflection.GetRepeatedMessage(message, &field, i), element);
      } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
        AddOutOfRange(CheckNumber(rule, static_cast<double>(reflection.GetRepeatedInt64(message, &field, i))), element);
      }
    }
  }

  void AddOutOfRange(const std::string& wrong, const std::string& path) {
    if (!wrong.empty()) problems_->push_back({"OUT_OF_RANGE", path, wrong, ""});
  }

  Problems* problems_;
};

// What the schema has and this version does not do, beside the choices of the table and the layout.
void CheckSupported(const v1::JobSpec& spec, Problems* problems) {
  const auto refuse = [problems](bool refused, const char* field, absl::string_view what,
                                 absl::string_view suggestion) {
    if (!refused) return;
    problems->push_back({"NOT_SUPPORTED_YET", field, absl::StrCat(what, " is not supported yet by this version"),
                         std::string(suggestion)});
  };
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  refuse(spec.model().frozen_size() > 0, "model.frozen", "freezing parameters", "leave it out");
  refuse(parallelism.context() > 1, "parallelism.context", "context parallelism", "leave it out");
  refuse(parallelism.expert() > 1, "parallelism.expert", "expert parallelism", "leave it out");
  refuse(parallelism.zero_stage() > 1, "parallelism.zero_stage", absl::StrCat("ZeRO stage ", parallelism.zero_stage()),
         "use 1");
  refuse(
      spec.checkpoint().has_asynchronous() && !spec.checkpoint().asynchronous() && spec.resources().device() == "cuda",
      "checkpoint.asynchronous", "a checkpoint straight from a GPU's memory", "use true");
  refuse(!spec.policy().queue().empty() && spec.policy().queue() != "default", "policy.queue",
         "a queue other than \"default\"", "leave it out");
  refuse(spec.policy().has_start_deadline(), "policy.start_deadline", "a start deadline", "leave it out");
}

// Commands take an id or a name: what reads like an id must mean that id, also before there is such a job.
void CheckNameIsNoId(const v1::JobSpec& spec, Problems* problems) {
  absl::string_view number = spec.name();
  if (!absl::ConsumePrefix(&number, "job-") || number.empty()) return;
  if (number.find_first_not_of("0123456789") != absl::string_view::npos) return;
  problems->push_back({"OUT_OF_RANGE", "name", absl::StrCat("\"", spec.name(), "\" reads like the id of a job"),
                       "choose a name that is not \"job-\" and a number"});
}

// REQUIRES: defaults are filled.
void CheckParallelism(const v1::ParallelismSpec& parallelism, Problems* problems) {
  const bool interleaved = parallelism.schedule() == "interleaved";
  if (interleaved && parallelism.interleave() == 1) {
    problems->push_back({"INTERLEAVE_DOES_NOT_FIT", "parallelism.interleave",
                         "1 chunk on each rank cannot be interleaved", "use 2 or more, or schedule 1f1b"});
  } else if (!interleaved && parallelism.interleave() > 1) {
    problems->push_back(
        {"INTERLEAVE_DOES_NOT_FIT", "parallelism.interleave",
         absl::StrCat(parallelism.interleave(), " chunks on each rank, but parallelism.schedule is 1f1b"),
         "use schedule interleaved, or leave it out"});
  }
  if (parallelism.tensor() > 1 && !parallelism.sequence_parallel()) {
    problems->push_back({"SEQUENCE_PARALLEL_NEEDED", "parallelism.sequence_parallel",
                         "false with tensor > 1 would send the same bytes and hold more activations; it is always on",
                         "leave it out"});
  }
}

void CheckSchedule(const v1::LearningRateScheduleSpec& schedule, int64_t steps, Problems* problems) {
  const char* decay_field = "training.schedule.decay_steps";
  if (schedule.warmup_steps() > steps) {
    problems->push_back({"OUT_OF_RANGE", "training.schedule.warmup_steps",
                         absl::StrCat(schedule.warmup_steps(), " steps are more than training.steps ", steps), ""});
  } else if (schedule.decay() != "wsd" && schedule.decay_steps() > 0) {
    problems->push_back({"OUT_OF_RANGE", decay_field, absl::StrCat("is for wsd, the decay is ", schedule.decay()),
                         "leave it out, or set training.schedule.decay to wsd"});
  } else if (schedule.decay() == "wsd" && schedule.warmup_steps() + schedule.decay_steps() > steps) {
    problems->push_back({"OUT_OF_RANGE", decay_field,
                         absl::StrCat(schedule.decay_steps(), " steps of decay and ", schedule.warmup_steps(),
                                      " of warm-up are more than training.steps ", steps),
                         ""});
  }
}

// Fields that are right by themselves and contradict each other.
void CheckTogether(const v1::JobSpec& spec, Problems* problems) {
  CheckParallelism(spec.parallelism(), problems);
  CheckSchedule(spec.training().schedule(), spec.training().steps(), problems);
  const bool rewinds = spec.policy().loss_spike() == "rewind" || spec.policy().non_finite() == "rewind";
  if (rewinds && spec.checkpoint().every_steps() == 0) {
    problems->push_back({"MISSING_FIELD", "checkpoint.every_steps",
                         "is required and missing when the policy may rewind: there would be nothing to go back to",
                         absl::StrCat("use at most ", std::max<int64_t>(1, spec.policy().rewind_steps()))});
  }
  if (spec.training().validate_every_steps() > 0 && spec.data().validation_size() == 0) {
    problems->push_back(
        {"MISSING_FIELD", "data.validation", "is required and missing when training.validate_every_steps is set", ""});
  }
}

}  // namespace

std::vector<Problem> ValidateSpec(const v1::JobSpec& spec) {
  Problems found;
  FieldCheck(&found).CheckMessage(spec, "");
  CheckNameIsNoId(spec, &found);
  CheckSupported(spec, &found);
  if (found.empty()) {
    v1::JobSpec filled = spec;
    FillDefaults(&filled);
    CheckTogether(filled, &found);
    const JobPlanRequest request = ToPlanRequest(filled, &found);
    for (Problem& problem : CheckLayout(request.job)) found.push_back(std::move(problem));
  }
  Problems one_a_field;
  std::set<std::string> fields;
  for (Problem& problem : found) {
    if (fields.insert(problem.field).second) one_a_field.push_back(std::move(problem));
  }
  return one_a_field;
}

std::vector<google::rpc::BadRequest::FieldViolation> ToFieldViolations(const std::vector<Problem>& problems,
                                                                       absl::string_view root) {
  std::vector<google::rpc::BadRequest::FieldViolation> violations;
  for (const Problem& problem : problems) {
    std::string path(root);
    const Descriptor* message = v1::JobSpec::descriptor();
    for (absl::string_view part : absl::StrSplit(problem.field, '.', absl::SkipEmpty())) {
      const absl::string_view key = part.substr(0, part.find('['));
      const FieldDescriptor* field = message == nullptr ? nullptr : FieldOfKey(*message, key);
      absl::StrAppend(&path, path.empty() ? "" : ".", field == nullptr ? std::string(key) : field->name(),
                      part.substr(key.size()));
      message = field == nullptr ? nullptr : field->message_type();
    }
    google::rpc::BadRequest::FieldViolation violation;
    violation.set_field(path);
    violation.set_description(problem.suggestion.empty() ? problem.message
                                                         : absl::StrCat(problem.message, "; ", problem.suggestion));
    violations.push_back(std::move(violation));
  }
  return violations;
}

}  // namespace muster
