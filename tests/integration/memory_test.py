"""The bytes planned are the bytes allocated: real ranks train under a preloaded guard that refuses every allocation above
1 MiB which is neither the arena nor on the list of allowances (tests/support/allocation_guard)."""

import pathlib
import unittest

import cluster

GUARD = cluster.BIN.parent / "tests" / "libmuster_allocation_guard.so"
ALLOWANCES = pathlib.Path(__file__).resolve().parents[1] / "support" / "allocation_guard" / "allowances.txt"


def job_of_size(name, precision):
    """Large enough that several of its tensors are above 1 MiB each, in the arena."""
    spec = cluster.tiny_job(name, steps=6, global_batch=32, micro_batch=4, sequence_length=128, precision=precision,
                            validate_every_steps=3)
    spec["model"] = {"family": "gpt2", "layers": 4, "hidden": 192, "heads": 6, "vocab": 257, "context": 128}
    spec["checkpoint"]["every_steps"] = 3
    return spec


class MemoryTest(unittest.TestCase):
    def train_guarded(self, precision):
        with cluster.Cluster() as muster:
            report = muster.root / "allocations.tsv"
            muster.restart_worker("worker-0", environment={
                "LD_PRELOAD": str(GUARD),
                "MUSTER_ALLOCATION_PROGRAM": "muster-rank",
                "MUSTER_ALLOCATION_ALLOWANCES": str(ALLOWANCES),
                "MUSTER_ALLOCATION_REPORT": str(report),
                "MUSTER_ALLOCATION_ENFORCE": "1",
            })
            muster.make_dataset()
            done = muster.wait_for_state(muster.submit(job_of_size(precision, precision)), "COMPLETED")
            rows = [line.split("\t") for line in report.read_text(encoding="utf-8").splitlines()]
        return done, rows

    def check(self, precision):
        done, rows = self.train_guarded(precision)
        findings = [row for row in rows if row[0] != "ALLOWED"]
        self.assertEqual(findings, [], "allocations above 1 MiB that nobody planned")
        arenas = {}  # by process
        for _, program, pid, _, size, name, _ in rows:
            self.assertEqual(program, "muster-rank")
            self.assertEqual(name, "arena", "an allowance that no rank needs but for the arena")
            arenas[int(pid)] = arenas.get(int(pid), 0) + int(size)
        self.assertEqual(sorted(arenas.values()), sorted(int(rank["arena_bytes"]) for rank in done["ranks"]))

    def test_a_bf16_job_allocates_its_arena_and_nothing_else_that_is_large(self):
        self.check("bf16")

    def test_an_fp32_job_allocates_its_arena_and_nothing_else_that_is_large(self):
        self.check("fp32")


if __name__ == "__main__":
    unittest.main()
