#include "common/formats/checkpoint_manifest.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two shards; a matrix cut by rows over both, and a whole vector in the second.
CheckpointManifest Example() {
  CheckpointManifest manifest;
  manifest.id = {3, 200};
  manifest.parent = CheckpointId{2, 150};
  manifest.job_id = "job-1";
  manifest.model = {.family = ModelFamily::kLlama,
                    .layers = 2,
                    .hidden = 64,
                    .heads = 4,
                    .kv_heads = 2,
                    .ffn = 172,
                    .vocab = 101,
                    .context = 32,
                    .tied = false,
                    .qkv_bias = false,
                    .norm_eps = 1e-6,
                    .rope_base = 500000};
  manifest.spec_json = "{\"name\": \"x\\n\"}";
  manifest.consumed_samples = 3200;
  manifest.loss_scaler = LossScalerState{.scale = 65536, .good_steps = 17, .hysteresis = 2, .fell_back = true};
  manifest.history = {.skipped_steps = 5, .recent_losses = {3.25, 1.0 / 3}, .spikes_in_a_row = 1};
  manifest.numerics_fingerprint = {{"isa", "avx512_core_amx"}, {"threads_per_rank", "1"}};
  manifest.files = {{"rank-00000.safetensors", 1234, 0xdeadbeef, {0xdeadbeef}}, {"rank-00001.safetensors", 99, 0, {0}}};
  manifest.tensors = {
      {"w", StateKind::kMaster, StoredType::kF32, {4, 8}, {{0, {{0, 0}, {1, 8}}}, {1, {{1, 0}, {3, 8}}}}},
      {"b", StateKind::kSecondMoment, StoredType::kF32, {8}, {{1, {{0}, {8}}}}}};
  return manifest;
}

std::string ErrorOf(const std::string& json) {
  const absl::Status status = ParseManifest(json, "dir/manifest.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("dir/manifest.json: "));
  return std::string(status.message());
}

// The example with one text replaced by another.
std::string Edited(const std::string& from, const std::string& to) {
  std::string json = SerializeManifest(Example());
  const size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return json.replace(at, from.size(), to);
}

TEST(CheckpointManifest, ComesBackAsItWas) {
  const CheckpointManifest manifest = ParseManifest(SerializeManifest(Example()), "m").value();
  EXPECT_EQ(SerializeManifest(manifest), SerializeManifest(Example()));
  EXPECT_EQ(manifest.id, (CheckpointId{3, 200}));
  EXPECT_EQ(*manifest.parent, (CheckpointId{2, 150}));
  EXPECT_EQ(manifest.model.family, ModelFamily::kLlama);
  EXPECT_EQ(manifest.model.kv_heads, 2);
  EXPECT_FALSE(manifest.model.tied);
  EXPECT_EQ(manifest.model.norm_eps, 1e-6);
  EXPECT_EQ(manifest.spec_json, Example().spec_json);
  EXPECT_EQ(manifest.consumed_samples, 3200);
  EXPECT_EQ(manifest.loss_scaler->scale, 65536);
  EXPECT_EQ(manifest.loss_scaler->good_steps, 17);
  EXPECT_EQ(manifest.loss_scaler->hysteresis, 2);
  EXPECT_TRUE(manifest.loss_scaler->fell_back);
  EXPECT_EQ(manifest.history.skipped_steps, 5);
  EXPECT_EQ(manifest.history.recent_losses, (std::vector<double>{3.25, 1.0 / 3})) << "bit for bit";
  EXPECT_EQ(manifest.history.spikes_in_a_row, 1);
  EXPECT_EQ(manifest.numerics_fingerprint, Example().numerics_fingerprint);
  EXPECT_EQ(manifest.files[0].crc32, 0xdeadbeefu);
  EXPECT_EQ(manifest.tensors[0].boxes[1].box, (Box{{1, 0}, {3, 8}}));
}

TEST(CheckpointManifest, OmitsParentAndScalerWhereThereAreNone) {
  CheckpointManifest manifest = Example();
  manifest.parent.reset();
  manifest.loss_scaler.reset();
  const CheckpointManifest parsed = ParseManifest(SerializeManifest(manifest), "m").value();
  EXPECT_FALSE(parsed.parent.has_value());
  EXPECT_FALSE(parsed.loss_scaler.has_value());
}

TEST(CheckpointManifest, RefusesEveryTruncation) {
  const std::string whole = SerializeManifest(Example());
  for (size_t size = 0; size + 1 < whole.size(); ++size) ErrorOf(whole.substr(0, size));
}

TEST(CheckpointManifest, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(ErrorOf(Edited("\"format_version\": 2", "\"format_version\": 3")),
              HasSubstr("format_version: version 3"));
  EXPECT_THAT(ErrorOf(Edited("\"step\": 200", "\"step\": -1")), HasSubstr("step: expected an integer"));
  EXPECT_THAT(ErrorOf(Edited("\"step\": 200", "\"step\": 1.5")), HasSubstr("step: expected an integer"));
  EXPECT_THAT(ErrorOf(Edited("\"job_id\"", "\"job\"")), HasSubstr("unknown key \"job\""));
  EXPECT_THAT(ErrorOf(Edited("\"second_moment\"", "\"third_moment\"")), HasSubstr("tensors[1].kind: unknown kind"));
  EXPECT_THAT(ErrorOf(Edited("\"F32\"", "\"F33\"")), HasSubstr("tensors[0].dtype: unknown dtype"));
  EXPECT_THAT(ErrorOf(Edited("3735928559", "37359285590")),
              HasSubstr("files[0].crc32: expected an integer of 32 bits"));
  EXPECT_THAT(ErrorOf(Edited("\"bytes\": 1234", "\"bytes\": 12345678")),
              HasSubstr("files[0].block_crc32s: expected 3 checksums for 12345678 bytes"));
  EXPECT_THAT(ErrorOf(Edited("rank-00001", "../rank-00001")), HasSubstr("files[1].name: expected the plain name"));
}

TEST(CheckpointManifest, RefusesBoxesThatAreNoPartition) {
  CheckpointManifest manifest = Example();
  manifest.tensors[0].boxes[1].box = {{0, 0}, {3, 8}};
  EXPECT_THAT(ErrorOf(SerializeManifest(manifest)), HasSubstr("master of \"w\": boxes"));
  manifest = Example();
  manifest.tensors[0].boxes.pop_back();
  EXPECT_THAT(ErrorOf(SerializeManifest(manifest)), HasSubstr("hold 8 of 32 elements"));
  manifest = Example();
  manifest.tensors[0].boxes[1].box = {{1, 1}, {3, 8}};
  EXPECT_THAT(ErrorOf(SerializeManifest(manifest)), HasSubstr("is not inside [4,8]"));
  manifest = Example();
  manifest.tensors[0].boxes[1].file = 2;
  EXPECT_THAT(ErrorOf(SerializeManifest(manifest)), HasSubstr("names file 2 of 2"));
  manifest = Example();
  manifest.tensors.push_back(manifest.tensors[1]);
  EXPECT_THAT(ErrorOf(SerializeManifest(manifest)), HasSubstr("listed twice"));
}

TEST(CheckCoverage, FindsOverlapsThatAddUpToMoreThanAnInteger) {
  const int64_t half = int64_t{1} << 62;  // five of them wrap around to one; UBSan sees the sum
  CheckpointManifest manifest;
  manifest.files.resize(1);
  manifest.tensors.resize(1);
  manifest.tensors[0].name = "w";
  manifest.tensors[0].type = StoredType::kU8;
  manifest.tensors[0].dims = {half};
  for (int i = 0; i < 5; ++i) manifest.tensors[0].boxes.push_back({0, {{0}, {half}}});
  EXPECT_THAT(std::string(CheckCoverage(manifest).message()), HasSubstr("overlap"));
}

// A shard with a part of one vector "w" of four elements.
ShardRecord RecordOf(const std::string& file, int64_t bytes, int64_t offset, int64_t count) {
  ShardRecord record;
  record.file.name = file;
  record.file.bytes = bytes;
  record.file.block_crc32s = {0};
  CheckpointTensor tensor;
  tensor.name = "w";
  tensor.dims = {4};
  tensor.boxes.push_back({0, {{offset}, {count}}});
  record.tensors.push_back(tensor);
  return record;
}

TEST(ShardRecords, TravelAsTextAndMerge) {
  std::vector<ShardRecord> records;
  for (const ShardRecord& record : {RecordOf("a.safetensors", 10, 0, 1), RecordOf("b.safetensors", 20, 1, 3)}) {
    records.push_back(ParseShardRecord(SerializeShardRecord(record), "record").value());
  }
  CheckpointManifest manifest;
  ASSERT_TRUE(MergeShardRecords(records, manifest).ok());
  EXPECT_TRUE(CheckCoverage(manifest).ok());
  ASSERT_EQ(manifest.tensors.size(), 1u);
  EXPECT_EQ(manifest.tensors[0].boxes[1].file, 1);
  EXPECT_EQ(manifest.tensors[0].boxes[1].box, (Box{{1}, {3}}));
  EXPECT_EQ(manifest.files[1].bytes, 20);
}

TEST(ShardRecords, ThatDisagreeAboutATensorAreRefused) {
  std::vector<ShardRecord> records = {RecordOf("a", 1, 0, 4), RecordOf("b", 1, 0, 4)};
  records[1].tensors[0].dims = {5};
  CheckpointManifest manifest;
  EXPECT_EQ(MergeShardRecords(records, manifest).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Box, IntersectsInEveryDimension) {
  EXPECT_EQ(Intersect({{0, 2}, {4, 4}}, {{2, 0}, {4, 4}}), (Box{{2, 2}, {2, 2}}));
  EXPECT_EQ(Intersect({{0, 0}, {2, 2}}, {{2, 0}, {2, 2}}).elements(), 0);
  EXPECT_EQ(Intersect({{}, {}}, {{}, {}}).elements(), 1) << "a scalar is one element";
}

TEST(ShardTensorName, SaysWhichPartItIs) {
  EXPECT_EQ(ShardTensorName(StateKind::kMaster, "head.norm.bias", {8}, {{0}, {8}}), "master/head.norm.bias");
  EXPECT_EQ(ShardTensorName(StateKind::kFirstMoment, "w", {8, 4}, {{2, 0}, {3, 4}}), "first_moment/w@2:3,0:4");
}

}  // namespace
}  // namespace muster
