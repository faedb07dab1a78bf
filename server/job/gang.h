// When a gang is dead: the rule by which a new attempt may start without two gangs ever training one job. Pure.
#pragma once

#include "absl/types/span.h"

namespace muster {

// One rank of an attempt.
struct GangMember {
  bool dead = false;       // its agent has said that it ended or never began
  bool reachable = false;  // its worker holds its lease
};

// (a) At least one rank is confirmed dead and so is every one that can be reached: without the dead one the gang cannot
// take another step, wherever the unreachable ones are. Or (b) no worker of it can be reached and the fence has passed:
// their agents have killed them. A gang of no ranks is dead.
inline bool GangIsDead(absl::Span<const GangMember> members, bool fence_passed) {
  bool any_dead = members.empty();
  bool any_reachable = false;
  for (const GangMember& member : members) {
    any_dead = any_dead || member.dead;
    any_reachable = any_reachable || member.reachable;
    if (!member.dead && member.reachable) return false;
  }
  return any_dead || (!any_reachable && fence_passed);
}

}  // namespace muster
