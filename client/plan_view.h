// A plan as text for people: the answer first, then why, then what to do. Pure.
#pragma once

#include <string>

#include "client/terminal.h"
#include "muster/v1/plan.pb.h"

namespace muster {

// `name` is the job's. Ranks of equal memory share a line.
std::string PlanText(const std::string& name, const v1::Plan& plan, const Palette& palette);

}  // namespace muster
