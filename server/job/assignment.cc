#include "server/job/assignment.h"

#include "common/rpc/proto_time.h"
#include "server/job/rewind.h"

namespace muster {

DesiredByWorker MakeAssignments(const server::JobRecord& record, const std::string& rendezvous_address,
                                const GangOptions& options) {
  DesiredByWorker desired;
  for (const server::RankRecord& rank : record.ranks()) {
    if (rank.dead()) continue;
    v1::Assignment assignment;
    assignment.set_job_id(record.job().id());
    assignment.set_attempt(record.job().attempt());
    assignment.set_rank(rank.rank());
    assignment.set_device(rank.device());
    *assignment.mutable_resolved_spec() = record.job().resolved_spec();
    for (const v1::PlanStage& stage : record.job().plan().stages()) assignment.add_cuts(stage.first_unit());
    if (record.job().plan().stages_size() > 0) {
      assignment.add_cuts(record.job().plan().stages().rbegin()->last_unit());
    }
    assignment.set_resume_from(record.resumed_from().path());
    assignment.set_resume_step(record.resumed_from().step());
    assignment.set_next_sample(NextSample(record));
    assignment.set_action(rank.action());
    assignment.set_rendezvous_address(rendezvous_address);
    *assignment.mutable_join_deadline() = ToProto(options.join_deadline);
    *assignment.mutable_operation_deadline() = ToProto(options.operation_deadline);
    *assignment.mutable_stop_grace() = ToProto(options.stop_grace);
    *assignment.mutable_commands() = record.commands();
    if (record.has_profile() && record.profile().rank() == rank.rank()) {
      *assignment.mutable_profile() = record.profile().profile();
    }
    if (rank.rank() == 0) *assignment.mutable_delete_checkpoints() = record.delete_checkpoints();
    desired[rank.worker()].push_back(std::move(assignment));
  }
  return desired;
}

}  // namespace muster
