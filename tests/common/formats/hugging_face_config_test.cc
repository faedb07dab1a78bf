#include "common/formats/hugging_face_config.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kLlamaSizes[] =
    R"("num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96,
       "vocab_size": 100, "max_position_embeddings": 128)";

std::string Config(const std::string& type, const std::string& more = "") {
  return absl::StrCat(R"({"model_type": ")", type, "\", ", kLlamaSizes, more.empty() ? "" : ", ", more, "}");
}

std::string ErrorOf(const std::string& json) {
  const absl::Status status = ParseHuggingFaceConfig(json, "dir/config.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
  return std::string(status.message());
}

TEST(HuggingFaceConfig, ReadsThePublishedGpt2) {
  // The fields of huggingface.co/gpt2 that say what is computed.
  const ModelShape shape = ParseHuggingFaceConfig(R"({
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
    "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
    "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "task_specific_params": {}, "vocab_size": 50257})",
                                                  "config.json")
                               .value();
  EXPECT_EQ(ParameterCount(shape), 124'439'808);
  EXPECT_TRUE(shape.tied);
  EXPECT_EQ(shape.ffn, 3072);
}

TEST(HuggingFaceConfig, LeavesOutWhatTransformersDefaults) {
  const ModelShape llama = ParseHuggingFaceConfig(Config("llama"), "config.json").value();
  EXPECT_EQ(llama.kv_heads, 4);
  EXPECT_EQ(llama.norm_eps, 1e-6);
  EXPECT_EQ(llama.rope_base, 10000);
  EXPECT_FALSE(llama.tied);
  EXPECT_FALSE(llama.qkv_bias);
  const ModelShape qwen2 =
      ParseHuggingFaceConfig(Config("qwen2", R"("num_key_value_heads": 2, "sliding_window": 8)"), "config.json")
          .value();
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_EQ(qwen2.kv_heads, 2);
}

TEST(HuggingFaceConfig, ReadsRopeAsEitherGenerationOfTransformersWritesIt) {
  EXPECT_EQ(ParseHuggingFaceConfig(Config("llama", R"("rope_theta": 500000.0)"), "c").value().rope_base, 500000);
  EXPECT_EQ(ParseHuggingFaceConfig(
                Config("llama", R"("rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"})"), "c")
                .value()
                .rope_base,
            500000);
}

TEST(HuggingFaceConfig, RefusesByTheFieldWhatItWouldComputeDifferently) {
  EXPECT_THAT(ErrorOf(Config("bloom")), HasSubstr("dir/config.json: model_type: \"bloom\""));
  EXPECT_THAT(ErrorOf(Config("llama", R"("rope_scaling": {"rope_type": "llama3", "factor": 8})")),
              HasSubstr("rope_scaling: scaled RoPE (\"llama3\") is not implemented"));
  EXPECT_THAT(ErrorOf(Config("llama", R"("rope_parameters": {"rope_type": "yarn"})")), HasSubstr("rope_parameters: "));
  EXPECT_THAT(ErrorOf(Config("llama", R"("attention_bias": true)")), HasSubstr("attention_bias: "));
  EXPECT_THAT(ErrorOf(Config("llama", R"("mlp_bias": true)")), HasSubstr("mlp_bias: "));
  EXPECT_THAT(ErrorOf(Config("llama", R"("hidden_act": "gelu")")), HasSubstr("hidden_act: \"gelu\""));
  EXPECT_THAT(ErrorOf(Config("llama", R"("head_dim": 32)")), HasSubstr("head_dim: "));
  EXPECT_THAT(ErrorOf(Config("mistral", R"("num_key_value_heads": 2, "sliding_window": 64)")),
              HasSubstr("sliding_window: "));
  EXPECT_THAT(ErrorOf(R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2})"),
              HasSubstr("\"vocab_size\" is missing"));
  EXPECT_THAT(ErrorOf(R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 9,
                          "activation_function": "relu"})"),
              HasSubstr("activation_function: \"relu\""));
  EXPECT_THAT(ErrorOf(R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 3, "vocab_size": 9})"),
              HasSubstr("model.heads: 3 heads do not divide hidden 8"));
}

TEST(HuggingFaceConfig, ALlamaMayBeTrainedOnAShorterContext) {
  const ModelShape stored = ParseHuggingFaceConfig(Config("llama"), "c").value();
  ModelShape wanted = stored;
  wanted.context = 64;
  EXPECT_TRUE(CheckSameShape(wanted, stored, "c").ok());
  wanted.context = 256;
  EXPECT_THAT(std::string(CheckSameShape(wanted, stored, "c").message()), HasSubstr("model.context: the job says 256"));
  wanted = stored;
  wanted.rope_base = 5;
  EXPECT_THAT(std::string(CheckSameShape(wanted, stored, "c").message()), HasSubstr("model.rope_base"));
}

}  // namespace
}  // namespace muster
