// The shape of a model, its units and its logical parameters: the one list that the planner counts, the ledger lays
// out, the engine trains and the checkpoint names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

enum class ModelFamily { kGpt2, kLlama };

// A decoder-only transformer. Plain data; validated by common/spec (field paths) and CheckModelShape.
struct ModelShape {
  ModelFamily family = ModelFamily::kGpt2;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // equal to heads without grouped queries
  int64_t ffn = 0;       // inner width of the feed-forward block; GPT-2: 4 x hidden
  int64_t vocab = 0;     // tokens
  int64_t context = 0;   // longest sequence; rows of GPT-2's position table
  bool tied = true;      // the head uses the token embedding's weight
  bool qkv_bias = true;  // GPT-2, which always has it; Qwen2; not LLaMA
  double norm_eps = 1e-5;
  double rope_base = 10000;  // LLaMA only

  int64_t head_dim() const { return hidden / heads; }
  int64_t units() const { return 2 * layers + 2; }

  // What the family decides; everything else in the engine asks these.
  bool rotary() const { return family == ModelFamily::kLlama; }      // RoPE rather than a table of learned positions
  bool gated() const { return family == ModelFamily::kLlama; }       // SwiGLU rather than GELU
  bool norm_bias() const { return family == ModelFamily::kGpt2; }    // LayerNorm rather than RMSNorm
  bool linear_bias() const { return family == ModelFamily::kGpt2; }  // beside qkv's, which is qkv_bias
};

// A stage is a run of units: 0 the embedding, then attention and feed-forward of each layer, last the head.
enum class UnitKind { kEmbedding, kAttention, kFeedForward, kHead };

struct Unit {
  UnitKind kind = UnitKind::kEmbedding;
  int64_t index = 0;   // place in the model, 0 .. units()-1
  int64_t layer = -1;  // for attention and feed-forward

  std::string name() const;              // "embedding", "3.attention", "3.ffn", "head"
  std::string parameter_prefix() const;  // "embedding.", "layer.3.attention.", "layer.3.ffn.", "head."
};

std::vector<Unit> Units(const ModelShape& shape);

// One logical tensor of the model, whole, as a checkpoint stores it. Weights of linears are (out, in).
struct ParameterInfo {
  std::string name;  // "embedding.token.weight", "layer.3.attention.qkv.weight", "head.norm.bias"
  std::vector<int64_t> dims;
  int64_t unit = 0;    // the unit that uses it; a tied head uses unit 0's token embedding as well
  bool decay = false;  // weight decay applies: tensors of two dimensions, never biases and norms

  int64_t elements() const;
};

// Every logical parameter once, in the order of the model. The names, with their shapes:
//   embedding.token.weight (vocab, hidden)          embedding.position.weight (context, hidden)      GPT-2
//   layer.N.attention.norm.weight, .bias (hidden)   layer.N.attention.qkv.weight (q + 2 kv, hidden)  .qkv.bias
//   layer.N.attention.projection.weight (hidden, hidden) .bias
//   layer.N.ffn.norm.weight, .bias (hidden)         layer.N.ffn.up.weight (ffn, hidden) .bias
//   layer.N.ffn.down.weight (hidden, ffn) .bias
//   head.norm.weight, .bias (hidden)                head.weight (vocab, hidden)                      untied
// LLaMA has no biases but qkv's where asked, no norm biases, and layer.N.ffn.gate_up.weight (2 ffn, hidden).
std::vector<ParameterInfo> Parameters(const ModelShape& shape);

// The tied weight counts once.
int64_t ParameterCount(const ModelShape& shape);

// Training FLOPs for one token at this sequence length by the convention 6N + 12 L h s, not halved for causality, N
// without the input embedding when the head is untied (torchtitan's convention).
double ModelFlopsPerToken(const ModelShape& shape, int64_t sequence_length);

}  // namespace muster
