// Writer and reader together: what is saved under one layout comes back under another, and what is damaged or
// unfinished does not come back.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/formats/checkpoint_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"
#include "worker/checkpoint/checkpoint_directory.h"
#include "worker/checkpoint/checkpoint_writer.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One box of a tensor with memory of its own.
struct Part {
  LocalTensor tensor;
  std::vector<float> values;

  LocalTensor View() {
    LocalTensor view = tensor;
    view.data = values.data();
    return view;
  }
};

constexpr float kUnset = -1;

Part MakePart(const std::string& name, const std::vector<int64_t>& global_dims, const Box& box,
              StateKind kind = StateKind::kMaster) {
  Part part;
  part.tensor = {name, kind, StoredType::kF32, global_dims, box, nullptr};
  part.values.assign(static_cast<size_t>(box.elements()), kUnset);
  return part;
}

// Calls visit(position in the box's memory, index in the whole tensor) for each element of the part.
template <typename Visit>
void ForEachElement(const Part& part, Visit visit) {
  const Box& box = part.tensor.box;
  for (int64_t i = 0; i < box.elements(); ++i) {
    int64_t rest = i;
    int64_t stride = 1;
    int64_t global = 0;
    for (size_t d = box.dims.size(); d-- > 0;) {
      global += (box.offset[d] + rest % box.dims[d]) * stride;
      rest /= box.dims[d];
      stride *= part.tensor.global_dims[d];
    }
    visit(static_cast<size_t>(i), global);
  }
}

// Every element gets its index in the whole tensor, and something of its kind.
void Fill(Part& part) {
  const float base = 1000.0f * static_cast<float>(part.tensor.kind);
  ForEachElement(part, [&](size_t at, int64_t global) { part.values[at] = base + static_cast<float>(global); });
}

void ExpectFilled(const Part& part) {
  Part expected = part;
  Fill(expected);
  EXPECT_EQ(part.values, expected.values) << part.tensor.name;
}

class CheckpointTest : public ::testing::Test {
 protected:
  absl::StatusOr<ShardRecord> WriteParts(int64_t rank, std::vector<Part> parts) {
    std::vector<LocalTensor> views;
    for (Part& part : parts) {
      Fill(part);
      views.push_back(part.View());
    }
    return WriteShard(root_.path(), id_, rank, views);
  }
  CheckpointManifest Manifest() const {
    CheckpointManifest manifest;
    manifest.id = id_;
    manifest.job_id = "job";
    manifest.consumed_samples = 80;
    return manifest;
  }
  // (6, 4) by rows over two ranks, with a vector in the second.
  void WriteTwoRanks() {
    const ShardRecord first = WriteParts(0, {MakePart("w", {6, 4}, {{0, 0}, {2, 4}})}).value();
    const ShardRecord second = WriteParts(1, {MakePart("w", {6, 4}, {{2, 0}, {4, 4}}),
                                              MakePart("b", {5}, {{0}, {5}}, StateKind::kFirstMoment)})
                                   .value();
    ASSERT_TRUE(Commit(root_.path(), Manifest(), {first, second}).ok());
  }
  CheckpointReader Open() {
    absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(directory());
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  std::string directory() const { return CheckpointDirectory(root_.path(), id_); }
  std::string unfinished() const { return UnfinishedCheckpointDirectory(root_.path(), id_); }

  TemporaryDirectory root_;
  const CheckpointId id_{2, 10};
};

TEST_F(CheckpointTest, ComesBackUnderAnyOtherLayout) {
  WriteTwoRanks();
  CheckpointReader reader = Open();
  EXPECT_EQ(reader.manifest().consumed_samples, 80);
  for (const Box& box : {Box{{0, 0}, {6, 4}}, Box{{1, 0}, {3, 4}}, Box{{0, 1}, {6, 2}}, Box{{1, 3}, {2, 1}},
                         Box{{5, 0}, {1, 4}}, Box{{0, 0}, {0, 4}}}) {
    Part part = MakePart("w", {6, 4}, box);
    ASSERT_TRUE(reader.Read(part.View()).ok());
    ExpectFilled(part);
  }
  Part vector = MakePart("b", {5}, {{2}, {3}}, StateKind::kFirstMoment);
  ASSERT_TRUE(reader.Read(vector.View()).ok());
  ExpectFilled(vector);
}

TEST_F(CheckpointTest, AssemblesBoxesCutInSeveralDimensions) {
  const std::vector<int64_t> dims = {4, 3, 5};
  std::vector<ShardRecord> records;
  for (int64_t i = 0; i < 4; ++i) {
    // Quadrants of the first and the last dimension, of unequal size.
    const Box box{{i / 2 * 1, 0, i % 2 * 2}, {i / 2 == 0 ? 1 : 3, 3, i % 2 == 0 ? 2 : 3}};
    records.push_back(WriteParts(i, {MakePart("t", dims, box)}).value());
  }
  ASSERT_TRUE(Commit(root_.path(), Manifest(), records).ok());
  CheckpointReader reader = Open();
  for (const Box& box : {Box{{0, 0, 0}, {4, 3, 5}}, Box{{0, 1, 1}, {3, 2, 3}}}) {
    Part part = MakePart("t", dims, box);
    ASSERT_TRUE(reader.Read(part.View()).ok());
    ExpectFilled(part);
  }
}

TEST_F(CheckpointTest, KeepsAScalar) {
  const ShardRecord record = WriteParts(0, {MakePart("s", {}, {{}, {}})}).value();
  ASSERT_TRUE(Commit(root_.path(), Manifest(), {record}).ok());
  CheckpointReader reader = Open();
  Part part = MakePart("s", {}, {{}, {}});
  ASSERT_TRUE(reader.Read(part.View()).ok());
  EXPECT_EQ(part.values[0], 0);
}

TEST_F(CheckpointTest, RefusesATensorOfAnotherShapeOrName) {
  WriteTwoRanks();
  CheckpointReader reader = Open();
  EXPECT_EQ(reader.Read(MakePart("v", {6, 4}, {{0, 0}, {6, 4}}).View()).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reader.Read(MakePart("w", {6, 4}, {{0, 0}, {6, 4}}, StateKind::kSecondMoment).View()).code(),
            absl::StatusCode::kNotFound);
  const absl::Status status = reader.Read(MakePart("w", {8, 4}, {{0, 0}, {8, 4}}).View());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("F32 [6,4], this job needs F32 [8,4]"));
}

TEST_F(CheckpointTest, AFlippedByteIsDataLossNamingTheShard) {
  WriteTwoRanks();
  const std::string name = "attempt-2/step-10/rank-00001.safetensors";
  const std::string whole = root_.Get(name);
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    root_.Put(name, damaged);
    CheckpointReader reader = Open();
    Part first = MakePart("w", {6, 4}, {{0, 0}, {2, 4}});
    EXPECT_TRUE(reader.Read(first.View()).ok()) << "the other shard is whole";
    const absl::Status status = reader.Read(MakePart("w", {6, 4}, {{0, 0}, {6, 4}}).View());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << "byte " << at;
    EXPECT_THAT(std::string(status.message()), HasSubstr(root_.File(name) + " is damaged"));
  }
}

TEST_F(CheckpointTest, NamesTheBlockThatIsDamagedAndReadsWhatLiesElsewhere) {
  constexpr int64_t kRows = 3'000'000;  // 12 MB: three blocks
  ASSERT_TRUE(Commit(root_.path(), Manifest(), {*WriteParts(0, {MakePart("long", {kRows}, {{0}, {kRows}})})}).ok());
  const std::string name = "attempt-2/step-10/rank-00000.safetensors";
  std::string damaged = root_.Get(name);
  damaged[6'000'000] ^= 1;
  root_.Put(name, damaged);
  CheckpointReader reader = Open();
  Part before = MakePart("long", {kRows}, {{0}, {1'000'000}});
  EXPECT_TRUE(reader.Read(before.View()).ok());
  ExpectFilled(before);
  Part behind = MakePart("long", {kRows}, {{2'500'000}, {500'000}});
  EXPECT_TRUE(reader.Read(behind.View()).ok());
  ExpectFilled(behind);
  const absl::Status status = reader.Read(MakePart("long", {kRows}, {{1'400'000}, {1}}).View());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(root_.File(name) + " is damaged between offset 4194304 and 8388608"));
  EXPECT_EQ(reader.Verify().code(), absl::StatusCode::kDataLoss);
}

TEST_F(CheckpointTest, EveryTruncationOfAShardIsDataLossAtOpen) {
  WriteTwoRanks();
  const std::string name = "attempt-2/step-10/rank-00000.safetensors";
  const std::string whole = root_.Get(name);
  for (size_t size = 0; size < whole.size(); ++size) {
    root_.Put(name, whole.substr(0, size));
    const absl::Status status = CheckpointReader::Open(directory()).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    ASSERT_THAT(std::string(status.message()), HasSubstr(root_.File(name)));
  }
}

TEST_F(CheckpointTest, AMissingShardIsDataLossAndAMissingManifestNoCheckpoint) {
  WriteTwoRanks();
  ASSERT_TRUE(RemoveTree(directory() + "/rank-00000.safetensors", root_.path()).ok());
  EXPECT_EQ(CheckpointReader::Open(directory()).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(RemoveTree(directory() + "/" + kManifestFileName, root_.path()).ok());
  EXPECT_EQ(CheckpointReader::Open(directory()).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointTest, ACrashBeforeTheManifestLeavesNoCheckpoint) {
  ASSERT_TRUE(WriteParts(0, {MakePart("b", {5}, {{0}, {5}})}).ok());
  EXPECT_THAT(FindCheckpoints(root_.path()).value(), IsEmpty());
  EXPECT_EQ(CheckpointReader::Open(directory()).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Discard(root_.path(), id_).ok());
  EXPECT_FALSE(PathExists(unfinished()));
}

TEST_F(CheckpointTest, CommitRefusesShardsThatDoNotMakeUpTheTensors) {
  const ShardRecord half = WriteParts(0, {MakePart("w", {6, 4}, {{0, 0}, {2, 4}})}).value();
  const absl::Status status = Commit(root_.path(), Manifest(), {half});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("master of \"w\": its boxes hold 8 of 24 elements"));
  EXPECT_FALSE(PathExists(unfinished()));
  EXPECT_THAT(FindCheckpoints(root_.path()).value(), IsEmpty());
}

TEST_F(CheckpointTest, CommitRefusesAShardThatIsNotThere) {
  const ShardRecord record = WriteParts(0, {MakePart("b", {5}, {{0}, {5}})}).value();
  ASSERT_TRUE(RemoveTree(unfinished() + "/rank-00000.safetensors", root_.path()).ok());
  EXPECT_EQ(Commit(root_.path(), Manifest(), {record}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(FindCheckpoints(root_.path()).value(), IsEmpty());
}

TEST_F(CheckpointTest, AStepIsWrittenOncePerAttempt) {
  WriteTwoRanks();
  EXPECT_EQ(WriteParts(0, {MakePart("b", {5}, {{0}, {5}})}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(CheckpointTest, AFullDeviceNamesThePathAndLeavesNoShard) {
  ASSERT_TRUE(MakeDirectories(unfinished()).ok());
  root_.PutFullDevice("attempt-2/step-10.tmp/rank-00000.safetensors");
  const absl::Status status = WriteParts(0, {MakePart("b", {5}, {{0}, {5}})}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "no space left on device writing " + unfinished() + "/rank-00000.safetensors");
  EXPECT_TRUE(ListDirectory(unfinished()).value().empty());
}

TEST_F(CheckpointTest, AFullDeviceDoesNotTakeTheShardsOfOtherRanks) {
  ASSERT_TRUE(WriteParts(1, {MakePart("b", {5}, {{0}, {5}})}).ok());
  root_.PutFullDevice("attempt-2/step-10.tmp/rank-00000.safetensors");
  ASSERT_FALSE(WriteParts(0, {MakePart("c", {5}, {{0}, {5}})}).ok());
  EXPECT_TRUE(PathExists(unfinished() + "/rank-00001.safetensors")) << "rank 0 discards, once all have answered";
}

TEST_F(CheckpointTest, AShardThatStopsHalfwayIsRemovedAndItsDirectoryStays) {
  signal(SIGXFSZ, SIG_IGN);  // writes over the limit then fail with EFBIG, part of the shard being written
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit low = before;
  low.rlim_cur = 64 << 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const absl::Status status = WriteParts(0, {MakePart("big", {100000}, {{0}, {100000}})}).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("writing " + unfinished() + "/rank-00000.safetensors"));
  // Another rank may be about to write into the directory: it is rank 0 that discards it.
  EXPECT_TRUE(ListDirectory(unfinished()).value().empty());
}

TEST_F(CheckpointTest, ShardsAreSafetensorsWithTheLogicalNames) {
  WriteTwoRanks();
  const SafetensorsFile shard = SafetensorsFile::Open(directory() + "/rank-00001.safetensors").value();
  EXPECT_EQ(shard.tensors().count("master/w@2:4,0:4"), 1u);
  EXPECT_EQ(shard.tensors().count("first_moment/b"), 1u);
  EXPECT_EQ(shard.metadata().at("muster.step"), "10");
}

}  // namespace
}  // namespace muster
