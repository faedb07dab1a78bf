#include "common/plan/model_shape.h"

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Collects the parameters of one model in order; `unit` is the one that is being described.
class ParameterList {
 public:
  void BeginUnit(int64_t unit) { unit_ = unit; }

  void Add(std::string name, std::vector<int64_t> dims) {
    const bool decay = dims.size() == 2;
    parameters_.push_back({std::move(name), std::move(dims), unit_, decay});
  }

  std::vector<ParameterInfo> Take() { return std::move(parameters_); }

 private:
  int64_t unit_ = 0;
  std::vector<ParameterInfo> parameters_;
};

void AddNorm(const ModelShape& shape, const std::string& name, ParameterList& list) {
  list.Add(name + ".weight", {shape.hidden});
  if (shape.norm_bias()) list.Add(name + ".bias", {shape.hidden});
}

void AddLinear(const std::string& name, int64_t out, int64_t in, bool bias, ParameterList& list) {
  list.Add(name + ".weight", {out, in});
  if (bias) list.Add(name + ".bias", {out});
}

void AddUnit(const ModelShape& shape, const Unit& unit, ParameterList& list) {
  const std::string prefix = unit.parameter_prefix();
  list.BeginUnit(unit.index);
  switch (unit.kind) {
    case UnitKind::kEmbedding:
      list.Add(prefix + "token.weight", {shape.vocab, shape.hidden});
      if (!shape.rotary()) list.Add(prefix + "position.weight", {shape.context, shape.hidden});
      break;
    case UnitKind::kAttention: {
      const int64_t key_value = shape.kv_heads * shape.head_dim();
      AddNorm(shape, prefix + "norm", list);
      AddLinear(prefix + "qkv", shape.hidden + 2 * key_value, shape.hidden, shape.linear_bias() || shape.qkv_bias,
                list);
      AddLinear(prefix + "projection", shape.hidden, shape.hidden, shape.linear_bias(), list);
      break;
    }
    case UnitKind::kFeedForward:
      AddNorm(shape, prefix + "norm", list);
      if (shape.gated()) {
        AddLinear(prefix + "gate_up", 2 * shape.ffn, shape.hidden, shape.linear_bias(), list);
      } else {
        AddLinear(prefix + "up", shape.ffn, shape.hidden, shape.linear_bias(), list);
      }
      AddLinear(prefix + "down", shape.hidden, shape.ffn, shape.linear_bias(), list);
      break;
    case UnitKind::kHead:
      AddNorm(shape, prefix + "norm", list);
      if (!shape.tied) list.Add(prefix + "weight", {shape.vocab, shape.hidden});
      break;
  }
}

}  // namespace

std::string Unit::name() const {
  switch (kind) {
    case UnitKind::kEmbedding:
      return "embedding";
    case UnitKind::kAttention:
      return absl::StrCat(layer, ".attention");
    case UnitKind::kFeedForward:
      return absl::StrCat(layer, ".ffn");
    case UnitKind::kHead:
      return "head";
  }
  return "";
}

std::string Unit::parameter_prefix() const {
  switch (kind) {
    case UnitKind::kEmbedding:
      return "embedding.";
    case UnitKind::kAttention:
      return absl::StrCat("layer.", layer, ".attention.");
    case UnitKind::kFeedForward:
      return absl::StrCat("layer.", layer, ".ffn.");
    case UnitKind::kHead:
      return "head.";
  }
  return "";
}

std::vector<Unit> Units(const ModelShape& shape) {
  std::vector<Unit> units;
  units.reserve(shape.units());
  units.push_back({UnitKind::kEmbedding, 0, -1});
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    units.push_back({UnitKind::kAttention, 2 * layer + 1, layer});
    units.push_back({UnitKind::kFeedForward, 2 * layer + 2, layer});
  }
  units.push_back({UnitKind::kHead, 2 * shape.layers + 1, -1});
  return units;
}

int64_t ParameterInfo::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

std::vector<ParameterInfo> Parameters(const ModelShape& shape) {
  ParameterList list;
  for (const Unit& unit : Units(shape)) AddUnit(shape, unit, list);
  return list.Take();
}

int64_t ParameterCount(const ModelShape& shape) {
  int64_t count = 0;
  for (const ParameterInfo& parameter : Parameters(shape)) count += parameter.elements();
  return count;
}

double ModelFlopsPerToken(const ModelShape& shape, int64_t sequence_length) {
  int64_t multiplied = ParameterCount(shape);
  if (!shape.tied) multiplied -= shape.vocab * shape.hidden;
  return 6.0 * static_cast<double>(multiplied) + 12.0 * static_cast<double>(shape.layers) *
                                                     static_cast<double>(shape.hidden) *
                                                     static_cast<double>(sequence_length);
}

}  // namespace muster
