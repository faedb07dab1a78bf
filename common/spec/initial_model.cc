#include "common/spec/initial_model.h"

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/formats/hugging_face_config.h"
#include "common/formats/hugging_face_model.h"

namespace muster {
namespace {

constexpr char kField[] = "model.init_from";

bool HasEveryRequiredField(const v1::ModelSpec& model) {
  return !model.family().empty() && model.layers() > 0 && model.hidden() > 0 && model.heads() > 0 &&
         model.vocab() > 0 && model.context() > 0;
}

// One field of the job: taken from the model where the job leaves it out.
class Merge {
 public:
  Merge(const std::string& config, std::vector<Problem>* problems) : config_(config), problems_(problems) {}

  template <typename Value>
  Value Field(const char* name, bool given, const Value& ours, const Value& theirs) {
    if (!given) return theirs;
    if (ours == theirs) return ours;
    problems_->push_back({"OUT_OF_RANGE", absl::StrCat("model.", name),
                          absl::StrCat(Text(ours), " contradicts ", config_, ", which says ", Text(theirs)),
                          "leave it out to take the model's"});
    return ours;
  }

 private:
  static std::string Text(bool flag) { return flag ? "true" : "false"; }
  static std::string Text(const std::string& text) { return text; }
  template <typename Number>
  static std::string Text(Number number) {
    return absl::StrCat(number);
  }

  const std::string& config_;
  std::vector<Problem>* problems_;
};

}  // namespace

void FillFromInitialModel(const std::string& data_root, v1::ModelSpec* model, std::vector<Problem>* problems) {
  if (model->init_from().empty()) return;
  const std::string directory = absl::StrCat(data_root.empty() ? "." : data_root, "/", model->init_from());
  const std::string config = absl::StrCat(directory, "/", kHuggingFaceConfig);
  if (!PathExists(config)) {
    if (HasEveryRequiredField(*model)) return;  // the ranks compare them with the model
    problems->push_back({"MISSING_FIELD", kField,
                         absl::StrCat("the model's shape is not given, and there is no ", config),
                         "say with --data-root where the workers' data is, or give model.family, layers, hidden, "
                         "heads, vocab and context"});
    return;
  }
  const absl::StatusOr<ModelShape> read = ReadHuggingFaceShape(directory);
  if (!read.ok()) {
    problems->push_back({"OUT_OF_RANGE", kField, std::string(read.status().message()), ""});
    return;
  }
  const ModelShape& shape = *read;
  const bool llama = shape.family == ModelFamily::kLlama;
  Merge merge(config, problems);
  model->set_family(
      merge.Field<std::string>("family", !model->family().empty(), model->family(), llama ? "llama" : "gpt2"));
  model->set_layers(merge.Field("layers", model->layers() != 0, model->layers(), shape.layers));
  model->set_hidden(merge.Field("hidden", model->hidden() != 0, model->hidden(), shape.hidden));
  model->set_heads(merge.Field("heads", model->heads() != 0, model->heads(), shape.heads));
  model->set_kv_heads(merge.Field("kv_heads", model->kv_heads() != 0, model->kv_heads(), shape.kv_heads));
  model->set_ffn(merge.Field("ffn", model->ffn() != 0, model->ffn(), shape.ffn));
  model->set_vocab(merge.Field("vocab", model->vocab() != 0, model->vocab(), shape.vocab));
  const bool shorter = llama && model->context() != 0 && model->context() < shape.context;
  if (!shorter) model->set_context(merge.Field("context", model->context() != 0, model->context(), shape.context));
  model->set_tied(merge.Field("tied", model->has_tied(), model->tied(), shape.tied));
  model->set_qkv_bias(merge.Field("qkv_bias", model->has_qkv_bias(), model->qkv_bias(), shape.qkv_bias));
  model->set_norm_eps(merge.Field("norm_eps", model->norm_eps() != 0, model->norm_eps(), shape.norm_eps));
  if (llama)
    model->set_rope_base(merge.Field("rope_base", model->rope_base() != 0, model->rope_base(), shape.rope_base));
}

}  // namespace muster
