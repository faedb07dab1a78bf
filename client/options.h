// What the user asked for, one struct a verb. Filled by command_line, read by the verbs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster {

enum class OutputFormat { kTable, kJson, kYaml };

struct GlobalOptions {
  // HOST:PORT of musterd. --coordinator, else MUSTER_COORDINATOR, else this.
  std::string coordinator = "127.0.0.1:7070";
  OutputFormat output = OutputFormat::kTable;
  // How long one call may take, and how long a lost connection is tried again while watching.
  double timeout_seconds = 30;
  // Colours: only on a terminal, and not when NO_COLOR is set.
  bool no_color = false;
};

struct SubmitOptions {
  std::string file;  // may be empty with `from`
  // A job from whose checkpoint this one begins, JOB or JOB@STEP. Empty: from the initial weights.
  std::string from;
  std::vector<std::string> set;  // FIELD=VALUE, over what the file or the job says
  // Where the workers' data is on this machine: for the config.json of model.init_from.
  std::string data_root = ".";
  bool validate_only = false;
  bool wait = false;   // until the job has ended
  bool watch = false;  // the same, showing progress
  // With wait or watch: how long at the most; 0: for ever.
  double wait_timeout_seconds = 0;
  // Makes a repeated submit return the first one's job. Empty: a new one is made.
  std::string request_id;
};

struct GetOptions {
  enum class Kind { kJobs, kJob, kWorkers };
  Kind kind = Kind::kJobs;
  std::string job;                  // for kJob
  bool job_file = false;            // for kJob: as a file that can be submitted again
  std::vector<std::string> states;  // for kJobs; empty: all
};

struct GetCheckpointsOptions {
  std::string job;
};

// checkpoint --now
struct CheckpointOptions {
  std::string job;
  bool now = false;  // always: said so that the command reads as what it does
};

struct UpdateOptions {
  std::string job;
  std::optional<int64_t> steps;
  std::optional<int64_t> priority;
  std::vector<std::string> labels;  // KEY=VALUE, or KEY- to take it away
};

struct MetricsExportOptions {
  std::string job;
  std::string format;  // csv or tensorboard
  std::string path;    // a file; for TensorBoard a folder
};

struct CompareOptions {
  std::string left;
  std::string right;
};

struct TraceOptions {
  std::string job;
  int64_t steps = 3;
  std::string path;  // with nsys: a directory below the workers' checkpoint root, or empty
  bool nsys = false;
  int64_t rank = 0;  // with nsys
  double nsys_seconds = 60;
};

struct DescribeOptions {
  std::string job;
  bool events = false;  // every event, not only the newest
};

struct WatchOptions {
  std::string job;
  double wait_timeout_seconds = 0;
};

struct LogsOptions {
  std::string job;
  std::vector<int64_t> ranks;  // empty: all
  bool follow = false;
  int64_t attempt = 0;     // 0: the current or last
  int64_t tail_lines = 0;  // 0: all that is kept
};

// cancel, pause, resume
struct JobControlOptions {
  enum class Action { kCancel, kPause, kResume };
  Action action = Action::kCancel;
  std::string job;
  std::string reason;
};

// cordon, uncordon
struct WorkerControlOptions {
  bool cordon = true;
  std::string worker;
  std::string reason;
};

struct PlanOptions {
  std::string file;
  // Where the workers' data is on this machine: for the config.json of model.init_from.
  std::string data_root = ".";
};

struct DataTokenizeOptions {
  std::string tokenizer = "bytes";
  std::vector<std::string> inputs;
  std::string output_prefix;
  // Ends a document inside a file; empty: each file is one document.
  std::string document_separator;
  // Of input that is JSONL: the member with the text; or those with a prompt, which is not learnt, and its completion.
  std::string jsonl_field;
  std::string prompt_field;
  std::string completion_field;
  // The last share of the text becomes PREFIX-val, the rest PREFIX-train; 0: one dataset, PREFIX.
  double validation_fraction = 0;
};

struct DataEntropyOptions {
  std::string train_prefix;
  std::string held_out_prefix;
};

struct ExportOptions {
  std::string checkpoint;  // a path, or JOB[@STEP]
  std::string directory;
  std::string dtype = "fp32";  // or bf16, fp16
  bool force = false;          // into a directory that is not empty
  // Where the workers' checkpoints are on this machine, for JOB[@STEP].
  std::string checkpoint_root = ".";
};

struct SampleOptions {
  std::string checkpoint;  // a path to a checkpoint or a Hugging Face directory, or JOB[@STEP]
  std::string prompt;
  int64_t tokens = 100;
  double temperature = 1;
  int64_t top_k = 0;
  uint64_t seed = 0;
  std::string tokenizer;  // empty: the model's own
  std::string checkpoint_root = ".";
};

using VerbOptions = std::variant<SubmitOptions, GetOptions, GetCheckpointsOptions, CheckpointOptions, UpdateOptions,
                                 MetricsExportOptions, CompareOptions, TraceOptions, DescribeOptions, WatchOptions,
                                 LogsOptions, JobControlOptions, WorkerControlOptions, PlanOptions, DataTokenizeOptions,
                                 DataEntropyOptions, ExportOptions, SampleOptions>;

struct Invocation {
  GlobalOptions global;
  VerbOptions verb;
};

}  // namespace muster
