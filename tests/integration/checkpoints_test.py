"""Checkpoints as a user handles them: written now, listed, kept, forked from, trained on from, damaged."""

import json
import unittest

import cluster


class CheckpointsTest(cluster.ClusterTest):
    def submit_unsaved(self, name, **checkpoint):
        return self.submit_endless(name, {"every_steps": 0, **checkpoint}, validate_every_steps=0)

    def submit_whole(self, name, steps, **training):
        job = self.cluster.submit(cluster.tiny_job(name, steps=steps, **training))
        return self.cluster.wait_for_state(job, "COMPLETED")

    def checkpoints(self, job):
        return json.loads(self.cluster.succeed("get", "checkpoints", job, "-o", "json").stdout)["checkpoints"]

    def cancel(self, job):
        self.cluster.succeed("cancel", job)
        self.cluster.wait_for_state(job, "CANCELLED")

    def test_checkpoint_is_written_now_and_listed(self):
        job = self.submit_unsaved("now")
        before = self.cluster.muster("checkpoint", job, "--now")
        if before.returncode != 0:  # it had not begun to train
            self.assertEqual(before.returncode, 4, before.stderr)
            self.assertRegex(before.stderr, "STARTING|QUEUED")
        step = int(self.cluster.wait_for_step(job, 5)["progress"]["step"])
        written = json.loads(self.cluster.succeed("checkpoint", job, "--now", "-o", "json").stdout)
        self.assertGreaterEqual(int(written["step"]), step)
        self.assertTrue((self.cluster.checkpoints / written["path"] / "manifest.json").exists(), written)
        listed = self.checkpoints(job)
        self.assertEqual(listed[0]["path"], written["path"], "one request is one checkpoint")
        self.assertTrue(listed[0]["on_lineage"])
        table = self.cluster.succeed("get", "checkpoints", job).stdout
        self.assertIn("LINEAGE", table)
        self.assertIn(written["path"], table)
        now = self.cluster.job(job)
        self.assertEqual((int(now["attempt"]), now["state"]), (1, "RUNNING"), "training goes on")
        again = json.loads(self.cluster.succeed("checkpoint", job, "--now", "-o", "json").stdout)
        self.assertGreaterEqual(int(again["step"]), int(written["step"]))
        self.cancel(job)
        ended = self.cluster.muster("checkpoint", job, "--now")
        self.assertEqual(ended.returncode, 4)
        self.assertIn("CANCELLED", ended.stderr)

    def test_completed_job_trains_on_when_it_gets_more_steps(self):
        job = self.submit_whole("more", 20, schedule={"warmup_steps": 5, "decay": "constant"})["id"]
        refused = self.cluster.muster("update", "job", job, "--steps", 20 - 1)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("training.steps", refused.stderr)
        said = self.cluster.succeed("update", "job", job, "--steps", 30, "--label", "kind=long").stdout
        self.assertIn("trains to step 30", said)
        done = self.cluster.wait_for_state(job, "COMPLETED")
        self.assertEqual(int(done["progress"]["step"]), 30)
        self.assertEqual((int(done["attempt"]), int(done["restarts"])), (2, 0))
        self.assertEqual(done["spec"]["labels"], {"kind": "long"})
        whole = self.submit_whole("whole", 30, schedule={"warmup_steps": 5, "decay": "constant"})
        self.assertEqual(self.cluster.checkpoint_tensors(job), self.cluster.checkpoint_tensors(whole["id"]),
                         "20 steps and 10 more are 30 steps")

    def test_running_job_learns_its_new_end_free_of_charge(self):
        job = self.submit_unsaved("shorter")
        step = int(self.cluster.wait_for_step(job, 5)["progress"]["step"])
        end = step + 150
        said = self.cluster.succeed("update", "job", job, "--steps", end).stdout
        self.assertIn("free of charge", said)
        done = self.cluster.wait_for_state(job, "COMPLETED")
        self.assertEqual(int(done["progress"]["step"]), end)
        self.assertEqual((int(done["attempt"]), int(done["restarts"])), (2, 0))

    def test_fork_begins_with_the_checkpoint_of_another_job(self):
        source = self.submit_whole("source", 30)
        fork = json.loads(self.cluster.succeed(
            "submit", "--from", f"{source['id']}@20", "--set", "training.optimizer.adamw.lr=1e-4", "--set", "name=forked",
            "-o", "json").stdout)
        self.assertEqual(fork["forked_from"]["job_id"], source["id"])
        done = self.cluster.wait_for_state(fork["id"], "COMPLETED")
        self.assertEqual(done["resolved_spec"]["training"]["optimizer"]["adamw"]["lr"], 1e-4)
        self.assertEqual(done["resolved_spec"]["training"]["steps"], source["resolved_spec"]["training"]["steps"])
        self.assertEqual(int(done["progress"]["tokens"]), 10 * 16 * 64, "of its own steps")
        self.assertEqual({int(entry["step"]) for entry in self.checkpoints(fork["id"])}, {30})
        same = json.loads(self.cluster.succeed("submit", "--from", f"{source['id']}@20", "-o", "json").stdout)["id"]
        self.cluster.wait_for_state(same, "COMPLETED")
        self.assertEqual(self.cluster.checkpoint_tensors(same), self.cluster.checkpoint_tensors(source["id"]),
                         "without a change it is the same run")

    def test_fork_with_another_model_is_refused_by_the_field(self):
        source = self.submit_whole("shape", 10)["id"]
        refused = self.cluster.muster("submit", "--from", source, "--set", "model.hidden=128", "--set", "training.steps=20")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("model.hidden", refused.stderr)
        missing = self.cluster.muster("submit", "--from", f"{source}@7")
        self.assertEqual(missing.returncode, 3, missing.stderr)
        no_steps = self.cluster.muster("submit", "--from", source)
        self.assertEqual(no_steps.returncode, 2, no_steps.stderr)
        self.assertIn("training.steps", no_steps.stderr)
        unknown = self.cluster.muster("submit", "--from", source, "--set", "training.stpes=20")
        self.assertEqual(unknown.returncode, 2, unknown.stderr)
        self.assertIn("training.steps", unknown.stderr)

    def test_checkpoint_that_a_waiting_fork_needs_outlives_keep(self):
        source = self.submit_unsaved("kept", every_steps=5, keep=1)
        self.cluster.wait_for_step(source, 6)
        fork = json.loads(self.cluster.succeed("submit", "--from", source, "--set", "training.steps=1000000", "-o", "json").stdout)
        self.assertEqual(fork["state"], "QUEUED", "the source has all slots")
        needed = self.cluster.checkpoints / fork["forked_from"]["path"]
        self.cluster.wait_for_step(source, int(fork["forked_from"]["step"]) + 20)
        self.assertTrue((needed / "manifest.json").exists())
        paths = [entry["path"] for entry in self.checkpoints(source)]
        self.assertIn(fork["forked_from"]["path"], paths)
        self.assertEqual(len(paths), 2, "keep 1 besides it")
        self.cancel(fork["id"])
        step = int(self.cluster.job(source)["progress"]["step"])
        self.cluster.wait_for_step(source, step + 10)
        self.cluster.succeed("pause", source)
        self.cluster.wait_for_state(source, "PAUSED")
        self.assertEqual(len(self.checkpoints(source)), 1, "it is needed no longer")
        self.cancel(source)

    def test_flipped_bit_is_found_and_the_checkpoint_before_is_used(self):
        job = self.submit_unsaved("flipped")
        self.cluster.wait_for_step(job, 3)
        self.cluster.succeed("checkpoint", job, "--now")
        first = self.checkpoints(job)[0]
        self.cluster.wait_for_step(job, int(first["step"]) + 5)
        self.cluster.succeed("pause", job)
        self.cluster.wait_for_state(job, "PAUSED")
        newest = self.checkpoints(job)[0]
        self.assertGreater(int(newest["step"]), int(first["step"]))
        shard = sorted((self.cluster.checkpoints / newest["path"]).glob("*.safetensors"))[0]
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
        self.cluster.succeed("resume", job)

        def resumed():
            now = self.cluster.job(job)
            return int(now["attempt"]) >= 3 and now["state"] == "RUNNING" and now

        now = cluster.wait_until(resumed, "attempt 3 trains", 30)
        self.assertEqual(int(now["attempt"]), 3)
        events = self.cluster.succeed("describe", "job", job, "--events").stdout
        self.assertRegex(events, rf"checkpoint of step {newest['step']}.* cannot be read; that of step {first['step']} takes its place")
        self.assertRegex(events, rf"attempt 2 -> 3 .*checkpoint of step {first['step']}")
        self.cancel(job)


if __name__ == "__main__":
    unittest.main()
