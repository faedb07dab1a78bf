#include "client/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <optional>

namespace muster {
namespace {

constexpr char kFooter[] =
    "\nExit codes: 0 ok, 1 failed, 2 usage or a bad job file, 3 not found, 4 not allowed, 5 coordinator unavailable,\n"
    "            6 the job ended unsuccessfully, 7 timed out";

// CLI11's own checks print every representable bound; these say what is wanted.
CLI::Validator AtLeast(double least) {
  return CLI::Validator(
      [least](const std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least) return std::string();
        return "\"" + text + "\" is not a number of " + CLI::detail::to_string(least) + " or more";
      },
      "");
}

CLI::Validator Fraction(double most) {
  return CLI::Validator(
      [most](const std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= 0 && value <= most) return std::string();
        return "\"" + text + "\" is not a number from 0 to " + CLI::detail::to_string(most);
      },
      "");
}

// Checks the format's name, and turns it into the number that the option's conversion reads.
CLI::Validator Format() {
  return CLI::Validator(
      [](std::string& text) {
        const std::map<std::string, OutputFormat> formats = {
            {"table", OutputFormat::kTable}, {"json", OutputFormat::kJson}, {"yaml", OutputFormat::kYaml}};
        const auto format = formats.find(text);
        if (format == formats.end()) return "\"" + text + "\" is not table, json or yaml";
        text = std::to_string(static_cast<int>(format->second));
        return std::string();
      },
      "");
}

// Adds a subcommand whose options land in a struct that lives as long as `verb` keeps it.
template <typename Options, typename AddOptions>
CLI::App* AddVerb(CLI::App& parent, const char* name, const char* help, std::optional<VerbOptions>& verb,
                  AddOptions add_options) {
  CLI::App* command = parent.add_subcommand(name, help);
  auto options = std::make_shared<Options>();
  add_options(*command, *options);
  command->callback([options, &verb] { verb = *options; });
  return command;
}

void AddWaitTimeout(CLI::App& command, double& seconds) {
  command
      .add_option("--wait-timeout", seconds,
                  "Give up waiting after this many seconds (exit 7; 0: never); the job goes on")
      ->check(AtLeast(0));
}

void AddDataRoot(CLI::App& command, std::string& data_root) {
  command
      .add_option("--data-root", data_root,
                  "Where the workers' data is on this machine, for a job with model.init_from that leaves out the "
                  "model's shape")
      ->envname("MUSTER_DATA_ROOT")
      ->capture_default_str();
}

void AddSubmit(CLI::App& app, std::optional<VerbOptions>& verb) {
  AddVerb<SubmitOptions>(app, "submit", "Submit a job file", verb, [](CLI::App& command, SubmitOptions& options) {
    command.add_option("FILE", options.file, "The job file (docs/job-file.md); not needed with --from");
    command
        .add_option(
            "--from", options.from,
            "JOB or JOB@STEP: begin with that job's checkpoint. Without FILE the new job asks for what that one "
            "asked for; the model must be the same")
        ->type_name("JOB[@STEP]");
    command.add_option("--set", options.set, "Change a field: training.optimizer.adamw.lr=1e-4; may be repeated")
        ->type_name("FIELD=VALUE");
    AddDataRoot(command, options.data_root);
    command.add_flag("--validate-only", options.validate_only, "Check and plan as a submit would, and stop there");
    CLI::Option* wait = command.add_flag("--wait", options.wait, "Return when the job has ended");
    command.add_flag("--watch", options.watch, "Show the job's progress until it has ended")->excludes(wait);
    command.add_option("--request-id", options.request_id, "Makes a repeated submit return the first one's job");
    AddWaitTimeout(command, options.wait_timeout_seconds);
  });
}

void AddGet(CLI::App& app, std::optional<VerbOptions>& verb) {
  CLI::App* get = app.add_subcommand("get", "List jobs or workers, or show one job");
  get->require_subcommand(1);
  AddVerb<GetOptions>(*get, "jobs", "All jobs, newest first", verb, [](CLI::App& command, GetOptions& options) {
    options.kind = GetOptions::Kind::kJobs;
    command.add_option("--state", options.states, "Only jobs in this state; may be repeated");
  });
  AddVerb<GetOptions>(*get, "job", "One job", verb, [](CLI::App& command, GetOptions& options) {
    options.kind = GetOptions::Kind::kJob;
    command.add_option("JOB", options.job, "A job's id, or its name")->required();
    command.add_flag("--job-file", options.job_file,
                     "Print it as a job file with every default and auto filled in, to submit again");
  });
  AddVerb<GetCheckpointsOptions>(*get, "checkpoints", "The checkpoints of a job, newest first", verb,
                                 [](CLI::App& command, GetCheckpointsOptions& options) {
                                   command.add_option("JOB", options.job, "A job's id, or its name")->required();
                                 });
  AddVerb<GetOptions>(*get, "workers", "All workers", verb,
                      [](CLI::App&, GetOptions& options) { options.kind = GetOptions::Kind::kWorkers; });
}

void AddDescribe(CLI::App& app, std::optional<VerbOptions>& verb) {
  CLI::App* describe = app.add_subcommand("describe", "Everything about one job");
  describe->require_subcommand(1);
  AddVerb<DescribeOptions>(*describe, "job", "State, progress, memory, placement and events of a job", verb,
                           [](CLI::App& command, DescribeOptions& options) {
                             command.add_option("JOB", options.job, "A job's id, or its name")->required();
                             command.add_flag("--events", options.events, "Every event, not only the newest");
                           });
}

void AddWatchAndLogs(CLI::App& app, std::optional<VerbOptions>& verb) {
  AddVerb<WatchOptions>(app, "watch", "Show a job's progress until it has ended", verb,
                        [](CLI::App& command, WatchOptions& options) {
                          command.add_option("JOB", options.job, "A job's id, or its name")->required();
                          AddWaitTimeout(command, options.wait_timeout_seconds);
                        });
  AddVerb<LogsOptions>(
      app, "logs", "Print the logs of a job's ranks", verb, [](CLI::App& command, LogsOptions& options) {
        command.add_option("JOB", options.job, "A job's id, or its name")->required();
        command.add_flag("-f,--follow", options.follow, "Go on with what is written later, until the job ends");
        command.add_option("--rank", options.ranks, "Only this rank; may be repeated")->check(AtLeast(0));
        command.add_option("--attempt", options.attempt, "Of an earlier attempt")->check(AtLeast(1));
        command.add_option("--tail", options.tail_lines, "Only the newest lines of each rank")->check(AtLeast(1));
      });
}

void AddJobControl(CLI::App& app, std::optional<VerbOptions>& verb, const char* name, const char* help,
                   JobControlOptions::Action action) {
  AddVerb<JobControlOptions>(app, name, help, verb, [action](CLI::App& command, JobControlOptions& options) {
    options.action = action;
    command.add_option("JOB", options.job, "A job's id, or its name")->required();
    if (action == JobControlOptions::Action::kCancel) {
      command.add_option("--reason", options.reason, "Kept with the job");
    }
  });
}

void AddUpdate(CLI::App& app, std::optional<VerbOptions>& verb) {
  CLI::App* update = app.add_subcommand("update", "Change a job that exists");
  update->require_subcommand(1);
  AddVerb<UpdateOptions>(
      *update, "job", "More or fewer steps, priority, labels; a completed job that gets more steps trains on", verb,
      [](CLI::App& command, UpdateOptions& options) {
        command.add_option("JOB", options.job, "A job's id, or its name")->required();
        command.add_option("--steps", options.steps, "training.steps from now on")->check(AtLeast(1));
        command.add_option("--priority", options.priority, "policy.priority from now on");
        command.add_option("--label", options.labels, "KEY=VALUE, or KEY- to take it away; may be repeated");
      });
}

void AddCheckpoint(CLI::App& app, std::optional<VerbOptions>& verb) {
  AddVerb<CheckpointOptions>(app, "checkpoint", "Have a running job write a checkpoint, and wait for it", verb,
                             [](CLI::App& command, CheckpointOptions& options) {
                               command.add_option("JOB", options.job, "A job's id, or its name")->required();
                               command.add_flag("--now", options.now, "After the step under way")->required();
                             });
}

void AddMetrics(CLI::App& app, std::optional<VerbOptions>& verb) {
  CLI::App* metrics = app.add_subcommand("metrics", "The history of a job's steps");
  metrics->require_subcommand(1);
  AddVerb<MetricsExportOptions>(
      *metrics, "export", "Write the metrics of every step to a file", verb,
      [](CLI::App& command, MetricsExportOptions& options) {
        command.add_option("JOB", options.job, "A job's id, or its name")->required();
        command.add_option("--format", options.format, "csv or tensorboard")
            ->required()
            ->check([](const std::string& text) {
              return text == "csv" || text == "tensorboard" ? "" : "\"" + text + "\" is not csv or tensorboard";
            });
        command.add_option("-o,--path", options.path, "The file; for TensorBoard the run's folder")->required();
      });
  AddVerb<CompareOptions>(app, "compare", "Two runs side by side: what was asked, how they went, which is ahead", verb,
                          [](CLI::App& command, CompareOptions& options) {
                            command.add_option("JOB", options.left, "A job's id, or its name")->required();
                            command.add_option("OTHER", options.right, "The other's")->required();
                          });
}

void AddTrace(CLI::App& app, std::optional<VerbOptions>& verb) {
  AddVerb<TraceOptions>(
      app, "trace", "Record a timeline of a running job's ranks", verb, [](CLI::App& command, TraceOptions& options) {
        command.add_option("JOB", options.job, "A job's id, or its name")->required();
        command.add_option("--steps", options.steps, "Optimizer steps to record, at most 100")
            ->check(AtLeast(1))
            ->capture_default_str();
        command.add_option("-o,--path", options.path,
                           "The file, for ui.perfetto.dev or chrome://tracing; with --nsys a directory below the "
                           "workers' checkpoint root");
        CLI::Option* nsys = command.add_flag("--nsys", options.nsys,
                                             "Instead: start one rank, by a new attempt, under NVIDIA Nsight Systems");
        command.add_option("--rank", options.rank, "The rank that --nsys is for")->check(AtLeast(0))->needs(nsys);
        command.add_option("--seconds", options.nsys_seconds, "How long --nsys records")
            ->check(AtLeast(1))
            ->needs(nsys)
            ->capture_default_str();
      });
}

void AddWorkerControl(CLI::App& app, std::optional<VerbOptions>& verb, const char* name, const char* help,
                      bool cordon) {
  AddVerb<WorkerControlOptions>(app, name, help, verb, [cordon](CLI::App& command, WorkerControlOptions& options) {
    options.cordon = cordon;
    command.add_option("WORKER", options.worker, "A worker's name")->required();
    if (cordon) command.add_option("--reason", options.reason, "Shown with the worker");
  });
}

void AddPlan(CLI::App& app, std::optional<VerbOptions>& verb) {
  AddVerb<PlanOptions>(app, "plan", "What a job takes: parameters, layout, memory of every rank. Needs no coordinator",
                       verb, [](CLI::App& command, PlanOptions& options) {
                         command.add_option("FILE", options.file, "The job file")->required();
                         AddDataRoot(command, options.data_root);
                       });
}

void AddData(CLI::App& app, std::optional<VerbOptions>& verb) {
  CLI::App* data = app.add_subcommand("data", "Make and inspect datasets. Needs no coordinator");
  data->require_subcommand(1);
  AddVerb<DataTokenizeOptions>(
      *data, "tokenize", "Turn text files into a dataset, PREFIX.bin and PREFIX.idx", verb,
      [](CLI::App& command, DataTokenizeOptions& options) {
        command
            .add_option("--tokenizer", options.tokenizer,
                        "bytes, or bpe:DIR with tokenizer.json or vocab.json and merges.txt")
            ->capture_default_str();
        command.add_option("IN", options.inputs, "Text files; each is one document")->required();
        command.add_option("-o,--prefix", options.output_prefix, "PREFIX")->required();
        command.add_option("--document-separator", options.document_separator, "Text that ends a document in a file");
        command.add_option("--jsonl-field", options.jsonl_field, "Input is JSONL; the member with a document's text");
        command.add_option("--prompt-field", options.prompt_field,
                           "Input is JSONL; the member with a prompt, whose tokens do not count in the loss");
        command.add_option("--completion-field", options.completion_field, "The member with what follows the prompt");
        command
            .add_option("--validation-fraction", options.validation_fraction,
                        "The last share of the text becomes PREFIX-val, the rest PREFIX-train")
            ->check(Fraction(0.5));
      });
  AddVerb<DataEntropyOptions>(
      *data, "entropy",
      "Unigram and bigram entropy of TRAIN's counts on HELD_OUT, in nats per token: what a model must beat", verb,
      [](CLI::App& command, DataEntropyOptions& options) {
        command.add_option("TRAIN", options.train_prefix, "Prefix of the training dataset")->required();
        command.add_option("HELD_OUT", options.held_out_prefix, "Prefix of the held-out one")->required();
      });
}

void AddCheckpointRoot(CLI::App& command, std::string& root) {
  command.add_option("--checkpoint-root", root, "Where the workers' checkpoints are on this machine, for JOB[@STEP]")
      ->envname("MUSTER_CHECKPOINT_ROOT")
      ->capture_default_str();
}

void AddExportAndSample(CLI::App& app, std::optional<VerbOptions>& verb) {
  AddVerb<ExportOptions>(
      app, "export", "Write a checkpoint as a directory that Hugging Face's transformers loads", verb,
      [](CLI::App& command, ExportOptions& options) {
        command.add_option("CHECKPOINT", options.checkpoint, "Its directory, a job's directory of them, or JOB[@STEP]")
            ->required();
        command.add_option("DIR", options.directory, "What is written")->required();
        command.add_option("--dtype", options.dtype, "Of the weights: fp32, bf16 or fp16")->capture_default_str();
        command.add_flag("--force", options.force, "Replace the files of a model in a DIR that is not empty");
        AddCheckpointRoot(command, options.checkpoint_root);
      });
  AddVerb<SampleOptions>(
      app, "sample", "Continue a text with a trained model", verb, [](CLI::App& command, SampleOptions& options) {
        command
            .add_option("CHECKPOINT", options.checkpoint,
                        "Its directory, a job's directory of them, an exported directory, or JOB[@STEP]")
            ->required();
        command.add_option("TEXT", options.prompt, "What to continue; nothing: a new document");
        command.add_option("--tokens", options.tokens, "New tokens at the most")
            ->check(AtLeast(1))
            ->capture_default_str();
        command
            .add_option("--temperature", options.temperature,
                        "Below 1 bolder, above 1 more varied; 0: always the likeliest token")
            ->check(AtLeast(0))
            ->capture_default_str();
        command.add_option("--top-k", options.top_k, "Draw among the k likeliest tokens; 0: all")
            ->check(AtLeast(0))
            ->capture_default_str();
        command.add_option("--seed", options.seed, "Equal seeds give equal texts")->capture_default_str();
        command.add_option("--tokenizer", options.tokenizer,
                           "bytes, bpe:DIR, or a directory of its files; else the model's own");
        AddCheckpointRoot(command, options.checkpoint_root);
      });
}

// The innermost verb that was named (`muster get`, of which one of its own verbs may be missing); adds its words to
// `name`.
const CLI::App& NamedVerb(const CLI::App& app, std::string& name) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  if (named.empty()) return app;
  name += " " + named.front()->get_name();
  return NamedVerb(*named.front(), name);
}

std::string FailureMessage(const CLI::App* app, const CLI::Error& error) {
  std::string name = "muster";
  const CLI::App& verb = NamedVerb(*app, name);
  std::string message = "muster: " + std::string(error.what()) + "\n";
  const std::vector<const CLI::App*> choices = verb.get_subcommands([](const CLI::App*) { return true; });
  if (error.get_name() == "RequiredError" && !choices.empty()) {
    message = name + ": say what:";
    for (const CLI::App* choice : choices) message += " " + choice->get_name();
    message += "\n";
  }
  return message + "Run `" + name + " --help` for what there is.\n";
}

}  // namespace

std::variant<Invocation, ExitCode> ParseCommandLine(int argc, char** argv) {
  CLI::App app("muster: submit, watch and plan training jobs", "muster");
  app.set_version_flag("--version", std::string("muster ") + MUSTER_VERSION);
  app.footer(kFooter);
  app.failure_message(FailureMessage);
  app.require_subcommand(1);
  app.fallthrough();  // global flags may stand behind the verb

  Invocation invocation;
  GlobalOptions& global = invocation.global;
  app.add_option("--coordinator", global.coordinator, "HOST:PORT of musterd")
      ->envname("MUSTER_COORDINATOR")
      ->capture_default_str();
  app.add_option("-o,--output", global.output, "table, json or yaml")->transform(Format())->type_name("FORMAT");
  app.add_option("--timeout", global.timeout_seconds, "Seconds that one call may take")
      ->check(AtLeast(0.001))
      ->capture_default_str();
  app.add_flag("--no-color", global.no_color, "No colours, as with NO_COLOR=1 in the environment");

  std::optional<VerbOptions> verb;
  AddSubmit(app, verb);
  AddGet(app, verb);
  AddDescribe(app, verb);
  AddWatchAndLogs(app, verb);
  AddJobControl(app, verb, "cancel", "Stop a job for good", JobControlOptions::Action::kCancel);
  AddJobControl(app, verb, "pause", "Stop a job at a checkpoint and free its devices",
                JobControlOptions::Action::kPause);
  AddJobControl(app, verb, "resume", "Queue a paused job again", JobControlOptions::Action::kResume);
  AddUpdate(app, verb);
  AddCheckpoint(app, verb);
  AddMetrics(app, verb);
  AddTrace(app, verb);
  AddWorkerControl(app, verb, "cordon", "Place no new ranks on a worker", true);
  AddWorkerControl(app, verb, "uncordon", "Place ranks on a worker again", false);
  AddPlan(app, verb);
  AddData(app, verb);
  AddExportAndSample(app, verb);

  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // A verb that does not exist is left over, and all that CLI11 says is that one is required.
    const std::vector<std::string> left_over = app.remaining();
    if (!app.get_subcommands().empty() || left_over.empty()) {
      app.exit(error);
      return ExitCode::kUsage;
    }
    std::fprintf(stderr, "muster: there is no verb \"%s\"\nRun `muster --help` for those that there are.\n",
                 left_over.front().c_str());
    return ExitCode::kUsage;
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" of code 0.
    return app.exit(error) == 0 ? ExitCode::kOk : ExitCode::kUsage;
  }
  invocation.verb = *std::move(verb);
  return invocation;
}

}  // namespace muster
