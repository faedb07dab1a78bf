// A job that starts from a Hugging Face model need not repeat its shape: it is in the model's config.json.
#pragma once

#include <string>
#include <vector>

#include "common/plan/problem.h"
#include "muster/v1/job.pb.h"

namespace muster {

// Fills what `model` leaves out from DATA_ROOT/init_from/config.json; nothing without init_from. Appends a problem at
// model.init_from for a config.json that does not parse, and for one that is not there while the job needs it; and at
// each field that is given and differs, but for a llama's shorter context.
void FillFromInitialModel(const std::string& data_root, v1::ModelSpec* model, std::vector<Problem>* problems);

}  // namespace muster
