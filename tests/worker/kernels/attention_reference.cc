#include "tests/worker/kernels/attention_reference.h"

#include <algorithm>
#include <cmath>

namespace muster {

using kernels::AttentionShape;

// Straight from the definition, a query at a time.
AttentionReference Expected(const Attention& attention) {
  const AttentionShape& shape = attention.shape;
  const int64_t d = shape.head_dim;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t qkv_cols = attention.qkv.tensor().cols();
  const std::vector<double> qkv = attention.qkv.values();
  const std::vector<double> d_out = attention.d_out.values();
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  AttentionReference expected;
  expected.out.resize(d_out.size());
  expected.lse.resize(static_cast<size_t>(shape.batch * shape.heads * shape.sequence));
  expected.d_qkv.resize(qkv.size());
  for (int64_t i = 0; i < shape.batch * shape.heads * shape.sequence; ++i) {
    const int64_t query = i % shape.sequence;
    const int64_t head = i / shape.sequence % shape.heads;
    const int64_t first_row = i / shape.sequence / shape.heads * shape.sequence;
    const int64_t q = (first_row + query) * qkv_cols + head * d;
    const int64_t k = first_row * qkv_cols + (shape.heads + head / group) * d;
    const int64_t v = k + shape.kv_heads * d;
    const int64_t o = (first_row + query) * shape.heads * d + head * d;
    const auto dot = [&](const std::vector<double>& a, int64_t at_a, const std::vector<double>& b, int64_t at_b) {
      double sum = 0;
      for (int64_t c = 0; c < d; ++c) sum += a[static_cast<size_t>(at_a + c)] * b[static_cast<size_t>(at_b + c)];
      return sum;
    };
    const int64_t start = static_cast<int64_t>(attention.starts.at(first_row + query));
    std::vector<double> weights(static_cast<size_t>(query + 1));
    double top = -HUGE_VAL;
    for (int64_t key = start; key <= query; ++key) {
      weights[static_cast<size_t>(key)] = scale * dot(qkv, q, qkv, k + key * qkv_cols);
      top = std::max(top, weights[static_cast<size_t>(key)]);
    }
    double total = 0;
    for (int64_t key = start; key <= query; ++key) {
      double& weight = weights[static_cast<size_t>(key)];
      total += weight = std::exp(weight - top);
    }
    for (double& weight : weights) weight /= total;
    expected.lse[static_cast<size_t>(i)] = top + std::log(total);
    double correction = 0;
    for (int64_t key = start; key <= query; ++key) {
      const double weight = weights[static_cast<size_t>(key)];
      for (int64_t c = 0; c < d; ++c) {
        expected.out[static_cast<size_t>(o + c)] += weight * qkv[static_cast<size_t>(v + key * qkv_cols + c)];
        expected.d_qkv[static_cast<size_t>(v + key * qkv_cols + c)] += weight * d_out[static_cast<size_t>(o + c)];
      }
      correction += weight * dot(d_out, o, qkv, v + key * qkv_cols);
    }
    for (int64_t key = start; key <= query; ++key) {
      const double d_score =
          weights[static_cast<size_t>(key)] * (dot(d_out, o, qkv, v + key * qkv_cols) - correction) * scale;
      for (int64_t c = 0; c < d; ++c) {
        expected.d_qkv[static_cast<size_t>(q + c)] += d_score * qkv[static_cast<size_t>(k + key * qkv_cols + c)];
        expected.d_qkv[static_cast<size_t>(k + key * qkv_cols + c)] += d_score * qkv[static_cast<size_t>(q + c)];
      }
    }
  }
  return expected;
}

std::vector<double> Documents(const AttentionShape& shape, const std::function<bool(int64_t, int64_t)>& starts_here) {
  std::vector<double> starts;
  int64_t start = 0;
  for (int64_t row = 0; row < shape.batch * shape.sequence; ++row) {
    const int64_t position = row % shape.sequence;
    if (position == 0 || starts_here(row / shape.sequence, position)) start = position;
    starts.push_back(static_cast<double>(start));
  }
  return starts;
}

std::vector<double> UnevenDocuments() {
  return Documents(kDocumentShape, [](int64_t sequence, int64_t position) {
    const int64_t moved = position - 5 * sequence;
    return moved == 1 || moved == 90 || moved == 128 || moved == 131 || moved == 300 || moved > 417;
  });
}

}  // namespace muster
