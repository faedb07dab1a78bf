// Between the residual stream and a unit's linears. With tensor parallelism a rank has a run of T/t rows of the stream
// (sequence parallelism: Korthikanti et al. 2022, section 4.2.2) and the linears see all T rows; without, both are the
// same rows and nothing is copied.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/model/unit.h"
#include "worker/tensor/view.h"

namespace muster {

// A value; copied freely.
class RowExchange {
 public:
  explicit RowExchange(const UnitContext& context);

  // All rows of `local` (T/t, h): `local` itself, or gathered into a buffer that the next Gather of any unit
  // overwrites.
  absl::StatusOr<Tensor> Gather(const Tensor& local) const;

  // (T, h) for a product over all rows, of which every rank of the group computes a part and whose sum goes to `local`
  // (T/t, h): `local` itself, or the buffer that Gather fills.
  Tensor PartialFor(const Tensor& local) const;
  // local = its rows of the sum of the ranks' parts. REQUIRES: `partial` is PartialFor(local).
  absl::Status Reduce(const Tensor& partial, const Tensor& local) const;

 private:
  TensorGroup* group_;  // null with one tensor rank
  Tensor whole_;        // (T, h) compute, shared by all units
};

}  // namespace muster
