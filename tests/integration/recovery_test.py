"""Processes are killed at any moment; the job completes with the bits of an undisturbed run."""

import os
import re
import signal
import time
import unittest

import cluster

STEPS = 120
RECOVERY_SECONDS = 3.0  # on this size of model


class RecoveryTest(cluster.ClusterTest):
    """One cluster and one undisturbed run for all of them."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        calm = cls.cluster.submit(cls.spec("calm"))
        cls.calm = cls.cluster.wait_for_state(calm, "COMPLETED")
        cls.calm_tensors = cls.cluster.checkpoint_tensors(calm)

    @staticmethod
    def spec(name):
        return cluster.tiny_job(name, steps=STEPS, validate_every_steps=10)

    def pids(self, job):
        return [int(rank["pid"]) for rank in self.cluster.job(job)["ranks"]]

    def assert_same_as_calm(self, job):
        done = self.cluster.wait_for_state(job, "COMPLETED")
        self.assertEqual(done["progress"]["loss"], self.calm["progress"]["loss"])
        self.assertEqual(done["progress"]["validations"], self.calm["progress"]["validations"])
        tensors = self.cluster.checkpoint_tensors(job)
        self.assertEqual(sorted(tensors), sorted(self.calm_tensors))
        for name, data in tensors.items():
            self.assertEqual(data, self.calm_tensors[name], f"{name} differs from the undisturbed run's")
        return done

    def test_two_runs_are_bit_identical(self):
        again = self.cluster.submit(self.spec("again"))
        done = self.assert_same_as_calm(again)
        self.assertEqual(int(done["attempt"]), 1)

    def test_killed_rank_is_replaced_within_seconds(self):
        job = self.cluster.submit(self.spec("killed"))
        self.cluster.wait_for_step(job, 35)
        old = self.pids(job)
        begin = time.monotonic()
        os.kill(old[2], signal.SIGKILL)

        def training_again():
            """last_recovery is set by attempt 2's first step."""
            now = self.cluster.job(job)
            return int(now["attempt"]) == 2 and now.get("last_recovery") is not None

        cluster.wait_until(training_again, "attempt 2 trains", 20)
        seconds = time.monotonic() - begin
        self.assertEqual([pid for pid in old if cluster.is_alive(pid)], [], "ranks of the old attempt still live")
        done = self.assert_same_as_calm(job)
        measured = float(done["last_recovery"].rstrip("s"))
        print(f"after SIGKILL of a rank, attempt 2's first step was seen after {seconds:.2f} s; the coordinator measured {measured:.2f} s")
        self.assertLess(measured, RECOVERY_SECONDS)
        self.assertLess(seconds, RECOVERY_SECONDS)
        self.assertEqual(int(done["attempt"]), 2)
        self.assertEqual(int(done["restarts"]), 1)

    def test_killed_coordinator_disturbs_nothing(self):
        job = self.cluster.submit(self.spec("headless"))
        self.cluster.wait_for_step(job, 25)
        before = self.pids(job)
        self.cluster.coordinator.kill()
        checkpoints = set((self.cluster.checkpoints / "headless").rglob("step-*[0-9]"))
        cluster.wait_until(lambda: set((self.cluster.checkpoints / "headless").rglob("step-*[0-9]")) - checkpoints,
                           "ranks train on without a coordinator", 20)
        # Held, so that the job cannot end before the new coordinator is seen with the same ranks.
        os.kill(before[0], signal.SIGSTOP)
        self.cluster.start_coordinator()
        self.cluster.wait_for_workers(1)
        self.assertEqual(self.pids(job), before)
        os.kill(before[0], signal.SIGCONT)
        done = self.assert_same_as_calm(job)
        self.assertEqual(int(done["attempt"]), 1)
        self.assertEqual(int(done["restarts"]), 0)

    def test_stopped_worker_leaves_a_checkpoint_to_resume_from(self):
        job = self.cluster.submit(self.spec("stopped"))
        stopped_at = int(self.cluster.wait_for_step(job, 33)["progress"]["step"])
        old = self.pids(job)
        self.assertEqual(self.cluster.workers["worker-0"].terminate(), 0)
        self.assertEqual([pid for pid in old if cluster.is_alive(pid)], [])
        self.cluster.start_worker("worker-0")
        done = self.assert_same_as_calm(job)
        self.assertEqual(int(done["attempt"]), 2)
        starts = [re.search(r"attempt 1 -> 2 on .* from the checkpoint of step (\d+)", event) for event in self.events(job)]
        resumed_at = [int(start.group(1)) for start in starts if start]
        self.assertEqual(len(resumed_at), 1)
        # Not from the last one written at an interval, step 30: no step was lost.
        self.assertGreaterEqual(resumed_at[0], stopped_at)

    def test_killed_worker_takes_its_ranks_with_it(self):
        job = self.cluster.submit(self.spec("orphaned"))
        self.cluster.wait_for_step(job, 25)
        old = self.pids(job)
        self.cluster.workers["worker-0"].kill()
        cluster.wait_until(lambda: not any(cluster.is_alive(pid) for pid in old), "ranks die with their agent", 10)
        self.cluster.start_worker("worker-0")
        done = self.assert_same_as_calm(job)
        self.assertEqual(int(done["attempt"]), 2)

    def test_worker_that_stands_still_for_seconds_loses_no_report(self):
        job = self.cluster.submit(self.spec("frozen"))
        before = self.cluster.wait_for_step(job, 25)
        old = self.pids(job)
        agent = self.cluster.workers["worker-0"].pid
        os.kill(agent, signal.SIGSTOP)
        last = (self.cluster.checkpoints / before["last_checkpoint"]["path"]).parent / f"step-{STEPS}"
        cluster.wait_until(last.exists, "the ranks train to the end without their agent", 60)
        # By then a rank that gives its last reports up has ended, unseen by the agent.
        done_at = time.monotonic()
        cluster.wait_until(lambda: time.monotonic() > done_at + 3, "three seconds", 10)
        os.kill(agent, signal.SIGCONT)
        done = self.assert_same_as_calm(job)
        self.assertEqual(int(done["progress"]["step"]), STEPS)
        self.assertEqual(int(done["last_checkpoint"]["step"]), STEPS)
        self.assertEqual(int(done["attempt"]), 1)
        self.assertEqual([pid for pid in old if cluster.is_alive(pid)], [])

    def test_work_that_no_coordinator_saw_outlives_the_agent(self):
        job = self.cluster.submit(self.spec("unseen"))
        self.cluster.wait_for_step(job, 25)
        ranks = self.pids(job)
        self.cluster.coordinator.kill()
        cluster.wait_until(lambda: not any(cluster.is_alive(pid) for pid in ranks), "the ranks train to the end", 60)
        self.assertEqual(self.cluster.workers["worker-0"].terminate(), 0)
        self.cluster.start_worker("worker-0")
        self.cluster.start_coordinator()
        self.cluster.wait_for_workers(1)
        done = self.assert_same_as_calm(job)
        self.assertEqual(int(done["progress"]["step"]), STEPS)
        self.assertEqual(int(done["last_checkpoint"]["step"]), STEPS)
        self.assertEqual(int(done["attempt"]), 1)

    def test_damaged_checkpoint_is_passed_over_for_an_older_one(self):
        job = self.cluster.submit(self.spec("damaged"))
        self.cluster.wait_for_step(job, 35)
        ranks = self.pids(job)
        for pid in ranks:  # so that no newer checkpoint is written
            os.kill(pid, signal.SIGSTOP)
        newest = self.cluster.checkpoints / self.cluster.job(job)["last_checkpoint"]["path"]
        shard = sorted(newest.glob("*.safetensors"))[-1]
        os.truncate(shard, 100)
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(int(self.assert_same_as_calm(job)["attempt"]), 3)

    def events(self, job):
        return self.cluster.succeed("describe", "job", job, "--events").stdout.splitlines()


if __name__ == "__main__":
    unittest.main()
