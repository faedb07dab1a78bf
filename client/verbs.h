// What each verb does. Prints its result on stdout; an error is returned, and main prints it on stderr.
#pragma once

#include "absl/status/statusor.h"
#include "client/exit_code.h"
#include "client/options.h"
#include "client/session.h"
#include "nlohmann/json_fwd.hpp"

namespace muster {

absl::StatusOr<ExitCode> RunVerb(Session& session, const SubmitOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const GetOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const GetCheckpointsOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const CheckpointOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const UpdateOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const MetricsExportOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const CompareOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const TraceOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const DescribeOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const WatchOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const LogsOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const JobControlOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const WorkerControlOptions& options);

// These ask the coordinator only for a JOB that is no path.
absl::StatusOr<ExitCode> RunVerb(Session& session, const ExportOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const SampleOptions& options);

// These need no coordinator; the session is only for the output format.
absl::StatusOr<ExitCode> RunVerb(Session& session, const PlanOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const DataTokenizeOptions& options);
absl::StatusOr<ExitCode> RunVerb(Session& session, const DataEntropyOptions& options);

// Prints a resource as -o asks; `table` is what people get.
void PrintResource(const GlobalOptions& options, const google::protobuf::Message& message, const std::string& table);

// The same for what is no resource of the API.
void PrintJson(const GlobalOptions& options, const nlohmann::ordered_json& json, const std::string& table);

// Watches until the job has ended, showing progress or, with `quiet`, nothing, then prints its summary or resource.
// kOk for COMPLETED, kJobUnsuccessful for the others.
absl::StatusOr<ExitCode> FollowJob(Session& session, const std::string& job, double wait_timeout_seconds, bool quiet);

}  // namespace muster
