#include "common/formats/safetensors.h"

#include <cstring>
#include <limits>

#include "common/base/crc32.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// A file with this header and this many bytes of data, without the writer under test.
std::string FileWith(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, 'd');
}

class SafetensorsTest : public ::testing::Test {
 protected:
  absl::StatusOr<SafetensorsFile> Open(const std::string& contents) {
    return SafetensorsFile::Open(directory_.Put("t.safetensors", contents));
  }
  std::string ErrorOf(const std::string& contents) {
    const absl::Status status = Open(contents).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("t.safetensors"));
    return std::string(status.message());
  }
  absl::StatusOr<WrittenFile> WriteTwo() {
    return WriteSafetensors(directory_.File("w"),
                            {{"weight", StoredType::kF32, {2, 3}, weight_}, {"step", StoredType::kI64, {}, &step_}},
                            {{"note", "a \"quoted\" word"}});
  }

  TemporaryDirectory directory_;
  const float weight_[6] = {0, 1, 2, 3, 4, 5};
  const int64_t step_ = -7;
};

TEST_F(SafetensorsTest, ReadsWhatItWrites) {
  ASSERT_TRUE(WriteTwo().ok());
  const SafetensorsFile file = SafetensorsFile::Open(directory_.File("w")).value();
  ASSERT_EQ(file.tensors().size(), 2u);
  const StoredTensor& weight = file.tensors().at("weight");
  EXPECT_EQ(weight.type, StoredType::kF32);
  EXPECT_THAT(weight.dims, ElementsAre(2, 3));
  ASSERT_EQ(weight.data.size(), sizeof(weight_));
  EXPECT_EQ(std::memcmp(weight.data.data(), weight_, sizeof(weight_)), 0);
  const StoredTensor& step = file.tensors().at("step");
  EXPECT_TRUE(step.dims.empty());
  EXPECT_EQ(std::memcmp(step.data.data(), &step_, sizeof(step_)), 0);
  EXPECT_THAT(file.metadata(), ElementsAre(Pair("note", "a \"quoted\" word")));
}

TEST_F(SafetensorsTest, ReportsSizeAndChecksumOfTheWholeFile) {
  const WrittenFile written = WriteTwo().value();
  const std::string contents = directory_.Get("w");
  EXPECT_EQ(written.bytes, static_cast<int64_t>(contents.size()));
  EXPECT_EQ(written.crc32, Crc32({reinterpret_cast<const std::byte*>(contents.data()), contents.size()}));
}

TEST_F(SafetensorsTest, BeginsTheDataOnAMultipleOfEightBytes) {
  ASSERT_TRUE(WriteTwo().ok());
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, directory_.Get("w").data(), 8);
  EXPECT_EQ(header_bytes % 8, 0u);
}

TEST_F(SafetensorsTest, RefusesEveryTruncation) {
  ASSERT_TRUE(WriteTwo().ok());
  const std::string whole = directory_.Get("w");
  for (size_t size = 0; size < whole.size(); ++size) ErrorOf(whole.substr(0, size));
}

TEST_F(SafetensorsTest, SurvivesEveryFlippedBit) {
  ASSERT_TRUE(WriteTwo().ok());
  const std::string whole = directory_.Get("w");
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const absl::StatusOr<SafetensorsFile> file = Open(damaged);
    if (!file.ok()) continue;
    size_t data_bytes = 0;  // whatever was accepted still tiles the data
    for (const auto& tensor : file->tensors()) data_bytes += tensor.second.data.size();
    EXPECT_EQ(data_bytes, sizeof(weight_) + sizeof(step_)) << "bit " << bit;
  }
}

TEST_F(SafetensorsTest, RefusesAHeaderThatIsNotOne) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("too few"));
  EXPECT_THAT(ErrorOf(FileWith("", 0)), HasSubstr("expected '{' at byte 8"));
  EXPECT_THAT(ErrorOf(FileWith("[1]", 0)), HasSubstr("expected '{' at byte 8"));
  EXPECT_THAT(ErrorOf(FileWith("{\"a\":", 0)), HasSubstr("not valid JSON at byte"));
  EXPECT_THAT(ErrorOf(std::string(8, '\xff') + "{}"), HasSubstr("is this a safetensors file?"));
}

TEST_F(SafetensorsTest, RefusesOverlapHolesAndWrongSizes) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_TRUE(Open(FileWith("{" + a + "}", 8)).ok());
  EXPECT_THAT(ErrorOf(FileWith("{" + a + "}", 7)), HasSubstr("it is truncated"));
  EXPECT_THAT(ErrorOf(FileWith("{" + a + "}", 9)), HasSubstr("bytes belong to no tensor"));
  EXPECT_THAT(ErrorOf(FileWith("{" + a + R"(,"b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}})", 12)),
              HasSubstr("they overlap"));
  EXPECT_THAT(ErrorOf(FileWith("{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[10,12]}})", 12)),
              HasSubstr("a hole"));
  EXPECT_THAT(ErrorOf(FileWith("{" + a + "," + a + "}", 8)), HasSubstr("occurs twice"));
}

TEST_F(SafetensorsTest, RefusesOffsetsNearTheLargestInteger) {
  const auto error_of = [this](const std::string& offsets, const std::string& shape) {
    return ErrorOf(FileWith(R"({"a":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 8));
  };
  EXPECT_THAT(error_of("[9223372036854775800,9223372036854775807]", "[7]"),
              HasSubstr("ends 9223372036854775807 bytes"));
  EXPECT_THAT(error_of("[0,9223372036854775807]", "[9223372036854775807]"), HasSubstr("it is truncated"));
}

TEST_F(SafetensorsTest, NamesTheFieldOfATensorThatIsWrong) {
  const auto error_of = [this](const std::string& tensor) { return ErrorOf(FileWith("{\"a\":" + tensor + "}", 8)); };
  EXPECT_THAT(error_of("3"), HasSubstr("a: expected an object"));
  EXPECT_THAT(error_of(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})"), HasSubstr("a.dtype: unknown dtype"));
  EXPECT_THAT(error_of(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("a.shape[0]"));
  EXPECT_THAT(error_of(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]})"),
              HasSubstr("no valid size"));
  EXPECT_THAT(error_of(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), HasSubstr("a.data_offsets"));
  EXPECT_THAT(error_of(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), HasSubstr("need 12"));
  EXPECT_THAT(error_of(R"({"dtype":"F32","shape":[2]})"), HasSubstr("\"data_offsets\" is missing"));
  EXPECT_THAT(error_of(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"), HasSubstr("unknown key \"x\""));
}

TEST_F(SafetensorsTest, WriterRefusesARepeatedName) {
  EXPECT_EQ(WriteSafetensors(directory_.File("w"),
                             {{"a", StoredType::kI64, {}, &step_}, {"a", StoredType::kI64, {}, &step_}}, {})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(directory_.empty());
}

TEST_F(SafetensorsTest, WriterLeavesNothingOnAFullDevice) {
  directory_.PutFullDevice("w");
  const absl::Status status = WriteTwo().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "no space left on device writing " + directory_.File("w"));
  EXPECT_TRUE(directory_.empty());
}

}  // namespace
}  // namespace muster
