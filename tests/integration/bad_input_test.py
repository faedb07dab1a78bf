"""Bad job files, datasets and flags: one clear message that names the field, file or flag, the right exit code, nothing half-started."""

import json
import socket
import subprocess
import unittest

import cluster

USAGE, NOT_FOUND, UNAVAILABLE, JOB_FAILED = 2, 3, 5, 6

JOB = """\
name: bad
model:
  family: gpt2
  layers: 2
  hidden: 64
  heads: 2
  vocab: 257
  context: 64
data:
  train: [{path: train}]
training:
  global_batch: 16
  micro_batch: 2
  sequence_length: 64
  steps: 4
  precision: bf16
  optimizer: {adamw: {lr: 1e-3}}
parallelism: {data: 2, pipeline: 2}
resources: {ranks: 4, memory_per_rank: 512MiB}
"""

# What is wrong; the line of JOB that is replaced and by what; what the message must have, beside the name of the file.
JOB_FILES = (
    ("unknown key", "  layers: 2", "  layers: 2\n  layrs: 3", ["bad.yaml:5:", "model.layrs"]),
    ("duplicate key", "  layers: 2", "  layers: 2\n  layers: 3", ["bad.yaml:5:", "layers"]),
    ("text for a number", "  layers: 2", "  layers: two", ["bad.yaml:4:", "model.layers", "two"]),
    ("a list for a number", "  steps: 4", "  steps: [4]", ["bad.yaml:15:", "training.steps"]),
    ("a number with a leading zero", "  layers: 2", "  layers: 010", ["bad.yaml:4:", "model.layers", "010"]),
    ("negative count", "  layers: 2", "  layers: -1", ["bad.yaml:4:", "model.layers"]),
    ("required field missing", "  vocab: 257\n", "", ["bad.yaml", "model.vocab"]),
    ("heads do not divide hidden", "  heads: 2", "  heads: 3", ["bad.yaml:6:", "model.heads", "64"]),
    ("unknown family", "  family: gpt2", "  family: gpt5", ["bad.yaml:3:", "model.family", "gpt5"]),
    ("layout is not the ranks", "parallelism: {data: 2, pipeline: 2}", "parallelism: {data: 2, pipeline: 3}",
     ["bad.yaml", "parallelism", "6", "4"]),
    ("batch not divisible", "  global_batch: 16", "  global_batch: 18", ["bad.yaml", "training.", "batch", "18"]),
    ("unknown precision", "  precision: bf16", "  precision: int4", ["bad.yaml:16:", "training.precision", "int4"]),
    ("precision that this version has not", "  precision: bf16", "  precision: fp8",
     ["bad.yaml:16:", "training.precision", "not supported"]),
    ("tensor parallelism that cuts heads", "parallelism: {data: 2, pipeline: 2}", "parallelism: {tensor: 4}",
     ["bad.yaml:18:", "parallelism.tensor", "2 heads"]),
    ("sequence longer than the context", "  sequence_length: 64", "  sequence_length: 128",
     ["bad.yaml:14:", "training.sequence_length", "64"]),
    ("more stages than units", "parallelism: {data: 2, pipeline: 2}\nresources: {ranks: 4",
     "parallelism: {pipeline: 8}\nresources: {ranks: 8", ["bad.yaml", "parallelism.pipeline", "8"]),
    ("size with an unknown unit", "memory_per_rank: 512MiB", "memory_per_rank: 512MegaBytes",
     ["bad.yaml:19:", "resources.memory_per_rank", "512MegaBytes"]),
    ("does not fit", "memory_per_rank: 512MiB", "memory_per_rank: 1MiB", ["bad.yaml:19: resources.memory_per_rank: "]),
    ("negative learning rate", "lr: 1e-3", "lr: -1", ["bad.yaml:17:", "training.optimizer.adamw.lr"]),
    ("name with a slash", "name: bad", "name: a/b", ["bad.yaml:1:", "name", "a/b"]),
    ("no training data", "train: [{path: train}]", "train: []", ["bad.yaml:10:", "data.train"]),
    ("path that leaves the data root", "{path: train}", "{path: ../../etc/passwd}", ["bad.yaml:10:", "data.train[0].path"]),
    ("no YAML", "  layers: 2", "  layers: {2", ["bad.yaml:"]),
    ("an empty file", JOB, "", ["bad.yaml"]),
)


def run_program(name, *arguments):
    """A program that must refuse to start: it is given ten seconds to say so."""
    return subprocess.run([str(cluster.BIN / name), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=10, check=False)


class BadInputTest(cluster.ClusterTest):
    words = 20_000

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = cls.cluster.root

    def jobs(self):
        return json.loads(self.cluster.succeed("get", "jobs", "-o", "json").stdout)["jobs"]

    def assert_refused(self, result, code, fragments):
        """One message on the error output, no more than a few lines, with every fragment."""
        output = result.stderr
        self.assertEqual(result.returncode, code, result.stdout + output)
        for fragment in fragments:
            self.assertIn(fragment, output)
        self.assertLessEqual(len(output.strip().splitlines()), 6, output)
        for noise in ("terminate called", "Traceback", "core dumped", "what()"):
            self.assertNotIn(noise, output)

    # ---- job files -----------------------------------------------------------------------------------------------------------

    def test_job_files(self):
        path = self.folder / "bad.yaml"
        before = len(self.jobs())
        for title, old, new, fragments in JOB_FILES:
            with self.subTest(title):
                self.assertEqual(JOB.count(old), 1)
                path.write_text(JOB.replace(old, new), encoding="utf-8")
                self.assert_refused(self.cluster.muster("submit", path), USAGE, fragments)
                self.assert_refused(self.cluster.muster("submit", path, "--validate-only"), USAGE, fragments)
        self.assertEqual(len(self.jobs()), before)

    def test_the_job_that_they_were_made_from_is_good(self):
        path = self.folder / "good.yaml"
        path.write_text(JOB, encoding="utf-8")
        self.cluster.succeed("submit", path, "--validate-only")

    def test_missing_job_file(self):
        self.assert_refused(self.cluster.muster("submit", self.folder / "none.yaml"), USAGE, ["none.yaml"])

    # ---- datasets ------------------------------------------------------------------------------------------------------------

    def copy_dataset(self, name):
        files = []
        for suffix in (".bin", ".idx"):
            target = self.cluster.data / (name + suffix)
            target.write_bytes((self.cluster.data / ("train" + suffix)).read_bytes())
            files.append(target)
        return files

    def assert_job_fails(self, name, fragments, **model):
        """The job fails once, without a retry, with a reason that names the file."""
        spec = cluster.tiny_job(name, steps=8)
        spec["data"] = {"train": [{"path": name}], "validation": [{"path": name}]}
        spec["model"].update(model)
        spec["training"]["sequence_length"] = spec["model"]["context"]
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(spec), encoding="utf-8")
        result = self.cluster.muster("submit", path, "--wait")
        self.assertEqual(result.returncode, JOB_FAILED, result.stdout + result.stderr)
        job = self.cluster.job(name)
        self.assertEqual(job["state"], "FAILED")
        self.assertLessEqual(int(job["attempt"]), 1)
        for fragment in fragments:
            self.assertIn(fragment, job["state_reason"])
            self.assertIn(fragment, result.stdout + result.stderr)

    def test_missing_dataset(self):
        self.assert_job_fails("nowhere", ["nowhere"])

    def test_missing_tokens(self):
        tokens, _ = self.copy_dataset("half")
        tokens.unlink()
        self.assert_job_fails("half", ["half.bin"])

    def test_truncated_tokens(self):
        tokens, _ = self.copy_dataset("short")
        tokens.write_bytes(tokens.read_bytes()[:1001])
        self.assert_job_fails("short", ["short.bin", "1001"])

    def test_truncated_index(self):
        _, index = self.copy_dataset("cut")
        index.write_bytes(index.read_bytes()[:20])
        self.assert_job_fails("cut", ["cut.idx"])

    def test_index_with_a_wrong_magic(self):
        _, index = self.copy_dataset("magic")
        index.write_bytes(b"NOTMAGIC!" + index.read_bytes()[9:])
        self.assert_job_fails("magic", ["magic.idx", "byte 0"])

    def test_vocabulary_smaller_than_a_token(self):
        self.copy_dataset("wide")
        self.assert_job_fails("wide", ["wide", "vocab", "100"], vocab=100)

    def test_dataset_shorter_than_a_sample(self):
        self.cluster.make_dataset("tiny", words=12)
        self.assert_job_fails("tiny", ["tiny"], context=4096)

    # ---- the client ----------------------------------------------------------------------------------------------------------

    def test_tokenize_without_an_input(self):
        result = self.cluster.muster("data", "tokenize", "--tokenizer", "bytes", self.folder / "none.txt", "-o", self.folder / "out")
        self.assert_refused(result, NOT_FOUND, ["none.txt"])
        self.assertEqual(list(self.folder.glob("out*")), [])

    def test_tokenize_into_a_folder_that_is_not_there(self):
        result = self.cluster.muster("data", "tokenize", "--tokenizer", "bytes", self.folder / "train.txt", "-o",
                                     self.folder / "not" / "there")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("not/there", result.stderr)

    def test_unreachable_coordinator(self):
        port = cluster.free_port()
        result = run_program("muster", "--coordinator", f"127.0.0.1:{port}", "get", "jobs")
        self.assert_refused(result, UNAVAILABLE, [f"127.0.0.1:{port}"])

    def test_unknown_job(self):
        self.assert_refused(self.cluster.muster("get", "job", "nobody"), NOT_FOUND, ["nobody"])
        self.assert_refused(self.cluster.muster("cancel", "nobody"), NOT_FOUND, ["nobody"])
        self.assert_refused(self.cluster.muster("logs", "nobody"), NOT_FOUND, ["nobody"])

    def test_unknown_verb_and_output(self):
        self.assert_refused(self.cluster.muster("frobnicate"), USAGE, ["frobnicate"])
        self.assert_refused(self.cluster.muster("get", "jobs", "-o", "xml"), USAGE, ["xml"])

    # ---- daemons -------------------------------------------------------------------------------------------------------------

    def test_musterd_at_a_port_in_use(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            address = f"127.0.0.1:{holder.getsockname()[1]}"
            for flags in (["--listen", address, "--http", "127.0.0.1:0"], ["--listen", "127.0.0.1:0", "--http", address]):
                with self.subTest(flags):
                    result = run_program("musterd", *flags, "--state-dir", self.folder / "second")
                    self.assertNotEqual(result.returncode, 0)
                    self.assertIn(flags[flags.index(address) - 1], result.stderr)
                    self.assertIn(f"port {address.split(':')[1]}", result.stderr)

    def test_musterd_with_a_state_directory_in_use(self):
        result = run_program("musterd", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--state-dir", self.folder / "musterd")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(str(self.folder / "musterd"), result.stderr + result.stdout)

    def test_musterd_with_a_file_as_state_directory(self):
        file = self.folder / "file"
        file.write_text("", encoding="utf-8")
        result = run_program("musterd", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--state-dir", file)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(str(file), result.stderr + result.stdout)

    def test_worker_flags(self):
        good = {"--coordinator": f"127.0.0.1:{self.cluster.port}", "--name": "worker-9", "--slots": "1", "--slot-memory": "64MiB",
                "--http": "127.0.0.1:0", "--data-root": self.folder, "--checkpoint-root": self.folder,
                "--state-dir": self.folder / "worker-9"}
        for flag, value, fragment in (("--slots", "0", "--slots"), ("--slots", "many", "--slots"),
                                      ("--slot-memory", "12 parsecs", "--slot-memory"), ("--name", "a b", "--name"),
                                      ("--coordinator", "nowhere", "--coordinator"),
                                      ("--data-root", self.folder / "missing", "missing"),
                                      ("--colour", "red", "--colour")):
            with self.subTest(f"{flag} {value}"):
                flags = [item for pair in {**good, flag: value}.items() for item in pair]
                result = run_program("muster-worker", *flags)
                self.assertEqual(result.returncode, USAGE, result.stdout + result.stderr)
                self.assertIn(fragment, result.stderr)

    def test_worker_of_a_name_that_is_taken(self):
        """It keeps trying, as an agent that was restarted within its predecessor's lease must, and says what is wrong."""
        imposter = cluster.Program(
            "imposter",
            [cluster.BIN / "muster-worker", "--coordinator", f"127.0.0.1:{self.cluster.port}", "--name", "worker-0", "--slots", "1",
             "--slot-memory", "64MiB", "--http", "127.0.0.1:0", "--data-root", self.folder, "--checkpoint-root", self.folder,
             "--state-dir", self.folder / "imposter"],
            self.folder / "imposter.log")
        try:
            cluster.wait_until(lambda: "another agent is connected as worker-0" in imposter.log_text(), "it is told why", 10)
            workers = json.loads(self.cluster.succeed("get", "workers", "-o", "json").stdout)["workers"]
            self.assertEqual([(worker["state"], len(worker["inventory"]["devices"])) for worker in workers], [("READY", 4)])
        finally:
            self.assertEqual(imposter.terminate(), 0)


if __name__ == "__main__":
    unittest.main()
