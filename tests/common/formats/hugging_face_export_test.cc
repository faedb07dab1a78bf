// Checkpoint -> Hugging Face directory -> parameters: nothing is lost, and whatever does not fit is named.
#include "common/formats/hugging_face_export.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/formats/checkpoint_source.h"
#include "common/formats/hugging_face_config.h"
#include "common/formats/hugging_face_model.h"
#include "common/formats/stored_floats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_checkpoint.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Family {
  const char* name;
  ModelShape shape;
};

std::vector<Family> Families() {
  return {{"Gpt2", TinyGpt2()},           {"Gpt2Untied", TinyGpt2(false)},  {"Llama", TinyLlama()},
          {"LlamaTied", TinyLlama(true)}, {"Qwen2", TinyLlama(true, true)}, {"Qwen2Untied", TinyLlama(false, true)}};
}

std::vector<float> Expected(const ParameterInfo& parameter) {
  std::vector<float> values(static_cast<size_t>(parameter.elements()));
  EXPECT_TRUE(TinyWeights(parameter, 0, absl::MakeSpan(values)).ok());
  return values;
}

class HuggingFaceExportTest : public ::testing::TestWithParam<Family> {
 protected:
  std::string Export(const HuggingFaceExportOptions& options = {}) {
    FoundCheckpoint found = FindCheckpoint(WriteTinyCheckpoint(root_.File("ckpt"), GetParam().shape)).value();
    const absl::StatusOr<int64_t> bytes = ExportHuggingFace(found.reader, root_.File("out"), options);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return root_.File("out");
  }

  TemporaryDirectory root_;
};

INSTANTIATE_TEST_SUITE_P(Families, HuggingFaceExportTest, ::testing::ValuesIn(Families()),
                         [](const auto& info) { return info.param.name; });

TEST_P(HuggingFaceExportTest, ComesBackBitForBitInPiecesOfAnySize) {
  const HuggingFaceModel model = HuggingFaceModel::Open(Export(), GetParam().shape).value();
  for (const ParameterInfo& parameter : Parameters(GetParam().shape)) {
    const std::vector<float> expected = Expected(parameter);
    for (const size_t piece : {expected.size(), size_t{7}, size_t{100}}) {
      std::vector<float> values(expected.size());
      for (size_t first = 0; first < values.size(); first += piece) {
        const size_t count = std::min(piece, values.size() - first);
        model.Read(parameter, static_cast<int64_t>(first), absl::MakeSpan(values).subspan(first, count));
      }
      EXPECT_EQ(values, expected) << parameter.name << " in pieces of " << piece;
    }
  }
}

TEST_P(HuggingFaceExportTest, TheConfigurationSaysTheSameModel) {
  const ModelShape shape = ReadHuggingFaceShape(Export()).value();
  EXPECT_TRUE(CheckSameShape(GetParam().shape, shape, "config.json").ok());
}

TEST_P(HuggingFaceExportTest, NarrowTypesAreTheRoundedWeights) {
  for (const StoredType type : {StoredType::kBF16, StoredType::kF16}) {
    HuggingFaceExportOptions options;
    options.type = type;
    options.force = true;
    const HuggingFaceModel model = HuggingFaceModel::Open(Export(options), GetParam().shape).value();
    for (const ParameterInfo& parameter : Parameters(GetParam().shape)) {
      std::vector<float> rounded = Expected(parameter);
      std::vector<std::byte> stored(rounded.size() * 2);
      ASSERT_TRUE(StoreFloats(type, rounded, absl::MakeSpan(stored)));
      LoadFloats(type, stored, 0, 1, absl::MakeSpan(rounded));
      std::vector<float> values(rounded.size());
      model.Read(parameter, 0, absl::MakeSpan(values));
      EXPECT_EQ(values, rounded) << parameter.name;
    }
    ASSERT_TRUE(RemoveTree(root_.File("ckpt"), root_.path()).ok());
  }
}

class HuggingFaceDirectoryTest : public ::testing::Test {
 protected:
  absl::StatusOr<int64_t> Export(const HuggingFaceExportOptions& options = {}) {
    FoundCheckpoint found = FindCheckpoint(root_.File("ckpt")).value();
    return ExportHuggingFace(found.reader, out_, options);
  }
  void SetUp() override { WriteTinyCheckpoint(root_.File("ckpt"), shape_); }

  // Writes the exported tensors again as `edit` leaves them.
  using Tensors = std::vector<std::pair<std::string, StoredTensor>>;
  void Rewrite(const std::function<void(Tensors&)>& edit) {
    const SafetensorsFile file = SafetensorsFile::Open(weights()).value();
    Tensors tensors(file.tensors().begin(), file.tensors().end());
    edit(tensors);
    std::vector<TensorToWrite> to_write;
    for (const auto& [name, tensor] : tensors) {
      to_write.push_back({name, tensor.type, tensor.dims, tensor.data.data()});
    }
    ASSERT_TRUE(WriteSafetensors(weights() + ".new", to_write, {}).ok());
    ASSERT_TRUE(RenameDurably(weights() + ".new", weights()).ok());
  }
  static std::pair<std::string, StoredTensor>& Find(Tensors& tensors, const std::string& name) {
    for (auto& tensor : tensors) {
      if (tensor.first == name) return tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return tensors.front();
  }
  std::string OpenError() {
    const absl::Status status = HuggingFaceModel::Open(out_, shape_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }
  std::string weights() const { return absl::StrCat(out_, "/", kHuggingFaceWeights); }

  TemporaryDirectory root_;
  const std::string out_ = root_.File("out");
  const ModelShape shape_ = TinyGpt2();
};

TEST_F(HuggingFaceDirectoryTest, HoldsWhatTransformersReads) {
  HuggingFaceExportOptions options;
  options.files = {{"tokenizer.json", "{}"}};
  ASSERT_TRUE(Export(options).ok());
  EXPECT_THAT(ListDirectory(out_).value(),
              ElementsAre("config.json", "generation_config.json", "model.safetensors", "tokenizer.json"));
  const SafetensorsFile file = SafetensorsFile::Open(weights()).value();
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_THAT(file.tensors().at("transformer.h.1.attn.c_attn.weight").dims, ElementsAre(32, 96));
  EXPECT_EQ(file.tensors().count("lm_head.weight"), 0u) << "tied";
}

TEST_F(HuggingFaceDirectoryTest, AFullDirectoryIsLeftAloneUnlessForced) {
  ASSERT_TRUE(MakeDirectories(out_).ok());
  root_.Put("out/notes.txt", "mine");
  EXPECT_EQ(Export().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ListDirectory(out_).value(), ElementsAre("notes.txt"));
  HuggingFaceExportOptions options;
  options.force = true;
  ASSERT_TRUE(Export(options).ok());
  EXPECT_EQ(ReadFile(out_ + "/notes.txt").value(), "mine");
  EXPECT_TRUE(HuggingFaceModel::Open(out_, shape_).ok());
  EXPECT_FALSE(PathExists(out_ + ".tmp"));
}

TEST_F(HuggingFaceDirectoryTest, ADamagedCheckpointIsNotExportedAndTheOneBeforeIs) {
  const std::string newer = WriteTinyCheckpoint(root_.File("ckpt"), shape_, 8);
  const std::string shard = newer + "/rank-00001.safetensors";
  std::string bytes = ReadFile(shard).value();
  bytes.back() ^= 1;
  std::ofstream(shard, std::ios::binary) << bytes;

  EXPECT_EQ(FindCheckpoint(newer).status().code(), absl::StatusCode::kDataLoss);
  const FoundCheckpoint found = FindCheckpoint(root_.File("ckpt")).value();
  EXPECT_THAT(found.directory, HasSubstr("step-3"));
  EXPECT_THAT(found.passed_over, HasSubstr("step-8/rank-00001.safetensors is damaged"));
}

TEST_F(HuggingFaceDirectoryTest, NamesWithoutPrefixAndBuffersAreRead) {
  ASSERT_TRUE(Export().ok());
  const int64_t mask = 0;
  Rewrite([&](Tensors& tensors) {
    for (auto& tensor : tensors) tensor.first = tensor.first.substr(std::string("transformer.").size());
    tensors.push_back(
        {"h.0.attn.bias", {StoredType::kU8, {1, 1, 2, 2}, {reinterpret_cast<const std::byte*>(&mask), 4}}});
    tensors.push_back({"lm_head.weight", Find(tensors, "wte.weight").second});
  });
  EXPECT_TRUE(HuggingFaceModel::Open(out_, shape_).ok());
}

TEST_F(HuggingFaceDirectoryTest, WhatDoesNotFitTheModelIsNamed) {
  ASSERT_TRUE(Export().ok());
  Rewrite([](Tensors& tensors) { Find(tensors, "transformer.h.1.ln_2.bias").first = "transformer.h.1.ln_3.bias"; });
  EXPECT_THAT(OpenError(), HasSubstr("\"h.1.ln_2.bias\" [32] is missing; it holds layer.1.ffn.norm.bias"));
  Rewrite([](Tensors& tensors) {
    Find(tensors, "transformer.h.1.ln_3.bias").first = "transformer.h.1.ln_2.bias";
    tensors.push_back({"transformer.h.2.ln_1.bias", Find(tensors, "transformer.h.1.ln_2.bias").second});
  });
  EXPECT_THAT(OpenError(), HasSubstr("\"h.2.ln_1.bias\" [32] belongs to no parameter"));
  Rewrite([](Tensors& tensors) {
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                 [](const auto& tensor) { return tensor.first == "transformer.h.2.ln_1.bias"; }),
                  tensors.end());
    Find(tensors, "transformer.h.0.attn.c_attn.weight").second.dims = {96, 32};
  });
  EXPECT_THAT(OpenError(), HasSubstr("\"h.0.attn.c_attn.weight\" is [96, 32], the model needs [32, 96]"));
}

TEST_F(HuggingFaceDirectoryTest, AHeadThatIsNotTheEmbeddingOfATiedModelIsRefused) {
  ASSERT_TRUE(Export().ok());
  Rewrite([](Tensors& tensors) {
    StoredTensor head = Find(tensors, "transformer.wte.weight").second;
    head.data = Find(tensors, "transformer.h.0.mlp.c_fc.weight").second.data.first(head.data.size());
    tensors.push_back({"lm_head.weight", head});
  });
  EXPECT_THAT(OpenError(), HasSubstr("tie_word_embeddings"));
}

TEST_F(HuggingFaceDirectoryTest, ShardsAreReadByTheirIndex) {
  ASSERT_TRUE(Export().ok());
  std::string map;
  {
    const SafetensorsFile file = SafetensorsFile::Open(weights()).value();
    std::vector<TensorToWrite> shards[2];
    for (const auto& [name, tensor] : file.tensors()) {
      const size_t shard = shards[0].size() > shards[1].size() ? 1 : 0;
      shards[shard].push_back({name, tensor.type, tensor.dims, tensor.data.data()});
      absl::StrAppend(&map, map.empty() ? "" : ",", "\"", name, "\":\"part-", shard, ".safetensors\"");
    }
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(WriteSafetensors(absl::StrCat(out_, "/part-", i, ".safetensors"), shards[i], {}).ok());
    }
  }
  ASSERT_TRUE(RemoveTree(weights(), out_).ok());
  EXPECT_EQ(HuggingFaceModel::Open(out_, shape_).status().code(), absl::StatusCode::kNotFound);
  root_.Put(absl::StrCat("out/", kHuggingFaceIndex), absl::StrCat(R"({"metadata":{},"weight_map":{)", map, "}}"));
  EXPECT_TRUE(HuggingFaceModel::Open(out_, shape_).ok());

  std::string moved = map;
  moved.replace(moved.find("part-0"), 6, "part-1");
  root_.Put(absl::StrCat("out/", kHuggingFaceIndex), absl::StrCat(R"({"weight_map":{)", moved, "}}"));
  EXPECT_THAT(OpenError(), HasSubstr("places there"));
  root_.Put(absl::StrCat("out/", kHuggingFaceIndex), R"({"weight_map":{"a":"../a.safetensors"}})");
  EXPECT_THAT(OpenError(), HasSubstr("weight_map: \"../a.safetensors\" is not the plain name"));
}

TEST_F(HuggingFaceDirectoryTest, AJobOfAnotherShapeIsRefusedByTheField) {
  ASSERT_TRUE(Export().ok());
  ModelShape other = shape_;
  other.vocab = 62;
  EXPECT_THAT(std::string(HuggingFaceModel::Open(out_, other).status().message()),
              HasSubstr("model.vocab: the job says 62"));
}

}  // namespace
}  // namespace muster
