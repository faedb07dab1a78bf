"""The bytes planned are the bytes allocated: what the allocation guard (tests/support/allocation_guard) sees of real ranks above 1 MiB is
their arenas, of the device and, for a checkpoint on its way, of the host, of the planned sizes, and nothing else. That there is nothing else is checked after every other test as well (cluster.py).
"""

import unittest

import cluster


def job_of_size(name, precision):
    """Large enough that several of its tensors are above 1 MiB each, in the arena."""
    spec = cluster.tiny_job(name, steps=6, global_batch=32, micro_batch=4, sequence_length=128, precision=precision,
                            validate_every_steps=3)
    spec["model"] = {"family": "gpt2", "layers": 4, "hidden": 192, "heads": 6, "vocab": 257, "context": 128}
    spec["checkpoint"]["every_steps"] = 3
    return spec


class MemoryTest(unittest.TestCase):
    def check(self, precision):
        with cluster.Cluster() as muster:
            muster.make_dataset()
            done = muster.wait_for_state(muster.submit(job_of_size(precision, precision)), "COMPLETED")
            rows = muster.check_allocations()
        arenas = {}  # by process
        for _, program, pid, _, size, name, _ in rows:
            self.assertEqual(program, "muster-rank")
            self.assertEqual(name, "arena", "an allowance that no rank needs but for the arena")
            arenas[int(pid)] = arenas.get(int(pid), 0) + int(size)
        planned = [sum(int(rank[space]) for space in ("arena_bytes", "pinned_bytes", "host_bytes")) for rank in done["plan"]["ranks"]]
        self.assertEqual(sorted(arenas.values()), sorted(planned))
        self.assertEqual([rank["arena_bytes"] for rank in done["ranks"]], [rank["arena_bytes"] for rank in done["plan"]["ranks"]])

    def test_a_bf16_job_allocates_its_arena_and_nothing_else_that_is_large(self):
        self.check("bf16")

    def test_an_fp32_job_allocates_its_arena_and_nothing_else_that_is_large(self):
        self.check("fp32")


if __name__ == "__main__":
    unittest.main()
