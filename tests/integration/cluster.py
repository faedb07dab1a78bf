"""A whole Muster on loopback for a test: musterd, workers and the client, in one temporary folder, on free ports.

Standard library only. A test opens a Cluster as a context manager; leaving it ends every process that it started, by its id, and
deletes the folder (or, when the test failed, prints the end of each log). The programs are taken from MUSTER_BIN, which ctest sets.

Every rank runs under the allocation guard, and a cluster that ends well must end without a finding: no allocation above 1 MiB that
was neither the planned arena nor a named allowance.

Waiting is always for a condition with a deadline, never for a length of time.
"""

import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

BIN = pathlib.Path(os.environ.get("MUSTER_BIN", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin")).resolve()
# The interposed allocator of tests/support/allocation_guard, which ctest names; without it ranks run unwatched.
GUARD = os.environ.get("MUSTER_ALLOCATION_GUARD", "")
ALLOWANCES = pathlib.Path(__file__).resolve().parents[1] / "support" / "allocation_guard" / "allowances.txt"
FINAL_STATES = ("COMPLETED", "FAILED", "CANCELLED")
POLL_SECONDS = 0.02


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(condition, what, timeout_seconds=60):
    """The first true value of condition()."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_seconds} s: {what}")
        time.sleep(POLL_SECONDS)


def is_alive(pid):
    """Whether the process runs; one that has ended and waits to be collected does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


PR_SET_PDEATHSIG = 1  # linux/prctl.h
LIBC = ctypes.CDLL(None)


def die_with_parent():
    """A test that is killed, by a time-out say, leaves no cluster that trains on."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def write_text(path, words, seed):
    """English-looking lines from a seed, the same on every machine."""
    vocabulary = ("the and of to that in he shall unto for i his a lord they be is him not them it with all thou thy was god "
                  "which my me said but ye their have will thee from as are when this out were upon man by you").split()
    rng = random.Random(seed)
    lines = (" ".join(rng.choices(vocabulary, weights=range(len(vocabulary), 0, -1), k=12)) for _ in range(words // 12))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_safetensors(path):
    """Tensor name -> bytes."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    begin = 8 + length
    return {name: data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


def check_memory_as_planned(job):
    """Every rank's arena is as large as the plan said, and so is what the engine bound in it, category by category."""
    plan = {rank["rank"]: rank for rank in job["plan"]["ranks"]}
    for rank in job["ranks"]:
        assert rank["planned"] == rank["used"], f"rank {rank['rank']}: planned {rank['planned']}, used {rank['used']}"
        assert rank["planned"] == plan[rank["rank"]]["memory"], f"rank {rank['rank']}: planned {rank['planned']} by itself"
        assert rank["arena_bytes"] == plan[rank["rank"]]["arena_bytes"], f"rank {rank['rank']}: arena {rank['arena_bytes']}"
    assert len(job["ranks"]) == len(plan)


class Program:
    """One process that a cluster started, with its output in a file."""

    def __init__(self, name, arguments, log, environment=None):
        self.name = name
        self.log = log
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [str(argument) for argument in arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, env={**os.environ, **(environment or {})}, preexec_fn=die_with_parent)

    @property
    def pid(self):
        return self.process.pid

    def running(self):
        return self.process.poll() is None

    def kill(self):
        """SIGKILL, as a machine that fails would."""
        self.process.kill()
        return self.process.wait(timeout=10)

    def terminate(self, timeout_seconds=20):
        """SIGTERM, and its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=timeout_seconds)

    def log_text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")


class Cluster:
    def __init__(self, slots=4, slot_memory="512MiB"):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-"))
        self.data = self.root / "data"
        self.checkpoints = self.root / "checkpoints"
        self.data.mkdir()
        self.checkpoints.mkdir()
        self.slots = slots
        self.slot_memory = slot_memory
        self.port = free_port()
        self.http_port = free_port()
        self.coordinator = None
        self.workers = {}
        self.worker_http_ports = {}
        self.allocation_report = self.root / "allocations.txt"

    # ---- life ----------------------------------------------------------------------------------------------------------------

    def __enter__(self):
        try:
            self.start_coordinator()
            self.start_worker("worker-0")
            self.wait_for_workers(1)
        except BaseException:
            self.close(failed=True)
            raise
        return self

    def __exit__(self, kind, error, traceback):
        self.close(failed=kind is not None)

    def close(self, failed):
        programs = [*self.workers.values(), self.coordinator]
        for program in programs:
            if program is None or not program.running():
                continue
            try:
                program.terminate(timeout_seconds=15)
            except subprocess.TimeoutExpired:
                program.kill()
                failed = True
                print(f"{program.name} did not end within 15 s of SIGTERM", file=sys.stderr)
        if failed:
            for log in sorted(self.root.rglob("*.log")):
                tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:]
                print(f"---- {log.relative_to(self.root)}", *tail, sep="\n", file=sys.stderr)
        try:
            if GUARD and not failed:
                self.check_allocations()
        finally:
            shutil.rmtree(self.root, ignore_errors=True)

    def check_allocations(self):
        """Rows of what the guard saw above 1 MiB, all of it allowed: verdict, program, process, function, bytes, name, frames."""
        text = self.allocation_report.read_text(encoding="utf-8") if self.allocation_report.exists() else ""
        findings = [line for line in text.splitlines() if not line.startswith("ALLOWED")]
        assert not findings, "allocations above 1 MiB outside the plan:\n" + "\n".join(findings)
        return [line.split("\t") for line in text.splitlines()]

    def guard_environment(self):
        if not GUARD:
            return {}
        return {"LD_PRELOAD": GUARD, "MUSTER_ALLOCATION_REPORT": str(self.allocation_report),
                "MUSTER_ALLOCATION_ALLOWANCES": str(ALLOWANCES), "MUSTER_ALLOCATION_PROGRAM": "muster-rank",
                "MUSTER_ALLOCATION_ENFORCE": "1"}

    def start_coordinator(self, *flags):
        state = self.root / "musterd"
        state.mkdir(exist_ok=True)
        self.coordinator = Program(
            "musterd",
            [BIN / "musterd", "--listen", f"127.0.0.1:{self.port}", "--http", f"127.0.0.1:{self.http_port}", "--state-dir", state,
             *flags],
            self.root / "musterd.log")

    def start_worker(self, name, *flags):
        state = self.root / name
        state.mkdir(exist_ok=True)
        self.worker_http_ports.setdefault(name, free_port())
        self.workers[name] = Program(
            name,
            [BIN / "muster-worker", "--coordinator", f"127.0.0.1:{self.port}", "--name", name, "--slots", self.slots,
             "--slot-memory", self.slot_memory, "--http", f"127.0.0.1:{self.worker_http_ports[name]}",
             "--data-root", self.data, "--checkpoint-root", self.checkpoints, "--state-dir", state, *flags],
            self.root / f"{name}.log", self.guard_environment())

    def wait_for_workers(self, count):
        def ready():
            for program in [self.coordinator, *self.workers.values()]:
                assert program.running(), f"{program.name} ended:\n{program.log_text()}"
            result = self.muster("get", "workers", "-o", "json")
            return result.returncode == 0 and result.stdout.count('"READY"') >= count

        wait_until(ready, f"{count} workers are READY", timeout_seconds=20)

    # ---- what a user does ----------------------------------------------------------------------------------------------------

    def muster(self, *arguments, timeout_seconds=60, environment=None):
        """Runs the client; its result has text stdout and stderr."""
        return subprocess.run(
            [str(BIN / "muster"), "--coordinator", f"127.0.0.1:{self.port}", *map(str, arguments)], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout_seconds, check=False, env={**os.environ, **(environment or {})})

    def succeed(self, *arguments, **options):
        result = self.muster(*arguments, **options)
        assert result.returncode == 0, f"muster {' '.join(map(str, arguments))}: exit {result.returncode}\n{result.stdout}{result.stderr}"
        return result

    def make_dataset(self, name="train", words=40_000, seed=1):
        text = self.root / f"{name}.txt"
        write_text(text, words, seed)
        self.succeed("data", "tokenize", "--tokenizer", "bytes", text, "-o", self.data / name)

    def submit(self, spec):
        """Submits a job (a dict; JSON is YAML too) and returns its id."""
        path = self.root / f"{spec['name']}.yaml"
        path.write_text(json.dumps(spec, indent=1), encoding="utf-8")
        return json.loads(self.succeed("submit", path, "-o", "json").stdout)["id"]

    def job(self, job):
        return json.loads(self.succeed("get", "job", job, "-o", "json").stdout)

    def wait_for_step(self, job, step, attempt=None, timeout_seconds=90):
        """Until the job has done `step` optimizer steps (in `attempt`, when that is given)."""

        def reached():
            now = self.job(job)
            assert now["state"] not in FINAL_STATES or int(now["progress"]["step"]) >= step, f"{job} is {now['state']}: {now['state_reason']}"
            return now if int(now["progress"]["step"]) >= step and (attempt is None or int(now["attempt"]) == attempt) else None

        return wait_until(reached, f"{job} at step {step}", timeout_seconds)

    def wait_for_state(self, job, *states, timeout_seconds=120):
        def reached():
            now = self.job(job)
            assert now["state"] in states or now["state"] not in FINAL_STATES, f"{job} is {now['state']}: {now['state_reason']}"
            if now["state"] == "COMPLETED":
                check_memory_as_planned(now)
            return now if now["state"] in states else None

        return wait_until(reached, f"{job} is {' or '.join(states)}", timeout_seconds)

    def page(self, port, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return reply.read().decode()

    # ---- what it left --------------------------------------------------------------------------------------------------------

    def checkpoint_tensors(self, job):
        """Tensor name -> bytes, over every shard of the job's newest checkpoint."""
        folder = self.checkpoints / self.job(job)["last_checkpoint"]["path"]
        tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            tensors.update(read_safetensors(path))
        assert tensors, f"no shards in {folder}"
        return tensors


def tiny_job(name, **training):
    """Four ranks, 2 stages x 2 replicas, some hundred steps a second of a fast machine."""
    return {
        "name": name,
        "model": {"family": "gpt2", "layers": 2, "hidden": 64, "heads": 2, "vocab": 257, "context": 64},
        "data": {"train": [{"path": "train"}], "validation": [{"path": "train"}], "seed": 7},
        "training": {
            "global_batch": 16, "micro_batch": 2, "sequence_length": 64, "steps": 60, "precision": "bf16",
            "optimizer": {"adamw": {"lr": 1e-3}}, "schedule": {"warmup_steps": 5},
            "validate_every_steps": 20, "validation_windows": 8, **training,
        },
        "parallelism": {"data": 2, "pipeline": 2},
        "resources": {"ranks": 4, "device": "cpu", "memory_per_rank": "512MiB"},
        "checkpoint": {"directory": name, "every_steps": 10, "keep": 3},
    }


class ClusterTest(unittest.TestCase):
    """One cluster with one dataset for all tests of a class."""

    words = 40_000

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close, failed=False)
        cls.cluster.make_dataset(words=cls.words)

    def submit_endless(self, name, checkpoint=None, **training):
        """A job that trains until it is cancelled, which it is at the latest when the test ends: one that fails must not keep the
        slots from those behind it."""
        spec = tiny_job(name, steps=1_000_000, **training)
        spec["checkpoint"].update(checkpoint or {})
        job = self.cluster.submit(spec)
        self.addCleanup(self.cluster.muster, "cancel", job)
        return job
