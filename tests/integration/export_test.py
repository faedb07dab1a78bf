"""A job's model leaves for Hugging Face's tools, comes back as the beginning of another job, and writes text.

Trained by muster-rank --local: no coordinator is needed for any of it.
"""

import json
import pathlib
import subprocess
import tempfile
import unittest

import cluster

JOB = """\
name: tiny
model: {model}
data: {{train: [{{path: text}}]}}
training: {{global_batch: 8, micro_batch: 4, sequence_length: 32, steps: {steps}, precision: fp32, optimizer: {{adamw: {{lr: 1e-3}}}}}}
parallelism: {{pipeline: 2}}
resources: {{ranks: 2}}
checkpoint: {{directory: {name}}}
"""
SHAPE = "{family: gpt2, layers: 2, hidden: 32, heads: 2, vocab: 257, context: 32}"


class ExportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="muster-test-")
        self.root = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        cluster.write_text(self.root / "text.txt", 4000, 1)
        self.run_program("muster", "data", "tokenize", self.root / "text.txt", "-o", self.root / "text")

    def run_program(self, name, *arguments, exit_code=0):
        done = subprocess.run([cluster.BIN / name, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False)
        output, errors = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        self.assertEqual(done.returncode, exit_code, f"{name} {arguments}:\n{output}\n{errors}")
        return output + errors

    def train(self, name, model, steps):
        job = self.root / f"{name}.yaml"
        job.write_text(JOB.format(name=name, model=model, steps=steps), encoding="utf-8")
        return self.run_program("muster-rank", "--local", job, "--data-root", self.root, "--checkpoint-root", self.root)

    def test_a_model_leaves_comes_back_and_writes(self):
        before = self.train("first", SHAPE, 30)
        exported = self.root / "exported"
        self.run_program("muster", "export", self.root / "first/local", exported)
        config = json.loads((exported / "config.json").read_text())
        self.assertEqual(config["model_type"], "gpt2")
        self.assertEqual(config["eos_token_id"], 256)
        for name in ("model.safetensors", "generation_config.json", "tokenizer.json", "muster_selfcheck.json"):
            self.assertTrue((exported / name).exists(), name)

        # The next job takes its shape from the directory, its weights are checked, and its loss goes on from there.
        after = self.train("second", "{init_from: exported}", 1)
        self.assertIn("INITIAL_WEIGHTS_CHECKED", after)

        def loss(output, step):
            return float(output.split(f"step {step} ", 1)[1].split("loss ", 1)[1].split()[0])

        self.assertLess(abs(loss(after, "1/1") - loss(before, "30/30")), 0.5)
        self.assertGreater(loss(before, "1/30") - loss(after, "1/1"), 1)

        text = self.run_program("muster", "sample", exported, "the ", "--tokens", "20", "--temperature", "0")
        self.assertTrue(text.startswith("the "), text)
        self.assertEqual(text, self.run_program("muster", "sample", self.root / "first/local", "the ", "--tokens", "20",
                                                "--temperature", "0"))

    def test_what_cannot_be_exported_is_named(self):
        self.train("first", SHAPE, 1)
        checkpoint = self.root / "first/local/attempt-1/step-1"
        (self.root / "full").mkdir()
        (self.root / "full/notes").write_text("mine")
        message = self.run_program("muster", "export", checkpoint, self.root / "full", exit_code=4)
        self.assertIn("--force", message)
        shard = checkpoint / "rank-00001.safetensors"
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
        message = self.run_program("muster", "export", checkpoint, self.root / "out", exit_code=1)
        self.assertIn("rank-00001.safetensors is damaged", message)
        self.assertFalse((self.root / "out").exists())


if __name__ == "__main__":
    unittest.main()
