"""What a user does with a job from submission to its end, and what the ranks report meanwhile."""

import json
import re
import unittest

import cluster


class LifecycleTest(cluster.ClusterTest):
    def test_job_completes_and_learns(self):
        path = self.cluster.root / "learns.yaml"
        path.write_text(json.dumps(cluster.tiny_job("learns", steps=80)), encoding="utf-8")
        result = self.cluster.succeed("submit", path, "--wait", timeout_seconds=120)
        self.assertIn("COMPLETED", result.stdout + result.stderr)
        job = self.cluster.job("learns")
        self.assertEqual(job["state"], "COMPLETED")
        self.assertEqual(int(job["progress"]["step"]), 80)
        self.assertLess(job["progress"]["validation_loss"], 0.7 * job["progress"]["first_validation_loss"])
        self.assertEqual(int(job["progress"]["tokens"]), 80 * 16 * 64)

    def test_planned_and_used_memory_are_equal_on_every_rank(self):
        job = self.submit_endless("memory")
        now = self.cluster.wait_for_step(job, 5)
        self.assertEqual([int(rank["rank"]) for rank in now["ranks"]], [0, 1, 2, 3])
        for rank in now["ranks"]:
            self.assertEqual(rank["planned"], rank["used"])
            self.assertEqual(rank["arena_bytes"], now["plan"]["ranks"][int(rank["rank"])]["arena_bytes"])
            self.assertGreater(int(rank["arena_bytes"]), 0)
        page = self.cluster.page(self.cluster.worker_http_ports["worker-0"], "/metrics")
        planned = sorted(re.findall(r'muster_rank_memory_bytes\{(.*)kind="planned"(.*)\} (\S+)', page))
        used = sorted(re.findall(r'muster_rank_memory_bytes\{(.*)kind="used"(.*)\} (\S+)', page))
        self.assertGreaterEqual(len(planned), 4 * 7)
        self.assertEqual(planned, used)
        self.cluster.succeed("cancel", job)
        self.cluster.wait_for_state(job, "CANCELLED")

    def test_cancelled_job_leaves_no_process_and_frees_its_slots(self):
        job = self.submit_endless("cancelled")
        now = self.cluster.wait_for_step(job, 5)
        pids = [int(rank["pid"]) for rank in now["ranks"]]
        self.assertTrue(all(cluster.is_alive(pid) for pid in pids))
        self.cluster.succeed("cancel", job)
        self.cluster.wait_for_state(job, "CANCELLED")
        self.assertEqual([pid for pid in pids if cluster.is_alive(pid)], [])
        workers = json.loads(self.cluster.succeed("get", "workers", "-o", "json").stdout)["workers"]
        self.assertEqual(workers[0]["uses"], [])
        again = self.cluster.muster("cancel", job)
        self.assertEqual(again.returncode, 4, again.stderr)
        self.assertIn("CANCELLED", again.stderr)

    def test_the_same_file_can_be_submitted_again_and_a_job_comes_back_as_a_file(self):
        spec = cluster.tiny_job("again", steps=20)
        first = self.cluster.submit(spec)
        self.cluster.wait_for_state(first, "COMPLETED")
        second = self.cluster.submit(spec)
        self.cluster.wait_for_state(second, "COMPLETED")
        self.assertEqual(self.cluster.checkpoint_tensors(first), self.cluster.checkpoint_tensors(second))
        again = self.cluster.root / "again.out.yaml"
        again.write_text(self.cluster.succeed("get", "job", first, "--job-file").stdout, encoding="utf-8")
        third = json.loads(self.cluster.succeed("submit", again, "-o", "json").stdout)["id"]
        self.cluster.wait_for_state(third, "COMPLETED")
        self.assertEqual(self.cluster.checkpoint_tensors(first), self.cluster.checkpoint_tensors(third))

    def test_second_job_waits_its_turn_and_says_why(self):
        first = self.submit_endless("first")
        self.cluster.wait_for_step(first, 2)
        second = self.cluster.submit(cluster.tiny_job("second", steps=5))
        waiting = self.cluster.job(second)
        self.assertEqual(waiting["state"], "QUEUED")
        self.assertEqual(int(waiting["queue_status"]["position"]), 1)
        self.assertRegex(waiting["queue_status"]["reason"], r"4 .*(slot|device)")
        self.cluster.succeed("cancel", first)
        self.assertEqual(int(self.cluster.wait_for_state(second, "COMPLETED")["attempt"]), 1)

    def test_queued_job_is_cancelled_without_having_run(self):
        first = self.submit_endless("holder")
        self.cluster.wait_for_step(first, 2)
        second = self.cluster.submit(cluster.tiny_job("waiting"))
        self.cluster.succeed("cancel", second)
        self.assertEqual(int(self.cluster.wait_for_state(second, "CANCELLED")["attempt"]), 0)
        self.cluster.succeed("cancel", first)
        self.cluster.wait_for_state(first, "CANCELLED")

    def test_logs_of_a_rank_are_served_through_the_coordinator(self):
        job = self.cluster.submit(cluster.tiny_job("logged", steps=5))
        self.cluster.wait_for_state(job, "COMPLETED")
        first = self.cluster.succeed("logs", job, "--rank", "0").stdout
        self.assertIn("rank 0 of 4, attempt 1", first)
        self.assertIn("all steps are done", first)
        leader = self.cluster.succeed("logs", job, "--rank", "2").stdout
        self.assertIn("validation after step 0", leader)
        self.assertIn("step 1  loss", leader)
        everything = self.cluster.succeed("logs", job).stdout
        self.assertEqual(everything.count("all steps are done"), 4)

    def test_programs_end_cleanly_on_sigterm(self):
        with cluster.Cluster() as other:
            self.assertEqual(other.workers["worker-0"].terminate(), 0)
            self.assertEqual(other.coordinator.terminate(), 0)


if __name__ == "__main__":
    unittest.main()
