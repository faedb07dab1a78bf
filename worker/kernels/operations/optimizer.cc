#include <cmath>

#include "worker/kernels/operations/operation.h"

namespace muster::kernels {

void AdamW(KernelContext& context, const AdamWArgs& args) {
  const ProfileRange range(context.device(), "adamw");
  const int64_t count = args.gradient.elements();
  CheckVector(args.gradient, DType::kF32, count);
  CheckVector(args.master, DType::kF32, count);
  CheckVector(args.first, DType::kF32, count);
  CheckVector(args.second, DType::kF32, count);
  CheckVector(args.parameter, args.parameter.dtype, count);
  MUSTER_CHECK(args.step >= 1);
  const double step = static_cast<double>(args.step);
  WithType(args.parameter.dtype, [&](auto type) {
    using T = decltype(type);
    AdamWRows<T> rows{};
    rows.gradient = args.gradient.as<float>();
    rows.master = args.master.as<float>();
    rows.first = args.first.as<float>();
    rows.second = args.second.as<float>();
    rows.parameter = args.parameter.as<T>();
    rows.gradient_scale = args.gradient_scale;
    rows.beta2 = static_cast<float>(args.beta2);
    rows.rest1 = static_cast<float>(1 - args.beta1);
    rows.rest2 = static_cast<float>(1 - args.beta2);
    rows.eps = static_cast<float>(args.eps);
    rows.keep = static_cast<float>(1 - args.learning_rate * args.weight_decay);
    rows.step_size = static_cast<float>(args.learning_rate / (1 - std::pow(args.beta1, step)));
    rows.second_root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(args.beta2, step)));
    Launch(context, rows, 1, count);
  });
}

}  // namespace muster::kernels
