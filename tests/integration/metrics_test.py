"""What comes out of a run: its history as files, two runs side by side, and a timeline of its ranks."""

import csv
import json
import os
import struct
import unittest

import cluster

STEPS = 40


def tf_records(data):
    """Payloads of a TFRecord file; the checksums are tested where they are made."""
    payloads = []
    while data:
        (size,) = struct.unpack_from("<Q", data)
        payloads.append(data[12:12 + size])
        data = data[16 + size:]
    return payloads


class MetricsTest(cluster.ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.first = cls.train("first", 1e-3)
        cls.second = cls.train("second", 1e-4)

    @classmethod
    def train(cls, name, rate):
        job = cls.cluster.submit(cluster.tiny_job(name, steps=STEPS, optimizer={"adamw": {"lr": rate}}))
        return cls.cluster.wait_for_state(job, "COMPLETED")

    def export(self, job, form, name):
        path = self.cluster.root / name
        said = self.cluster.succeed("metrics", "export", job["id"], "--format", form, "-o", path).stdout
        self.assertIn("every step", said)
        return path

    def test_csv_has_every_step(self):
        with open(self.export(self.first, "csv", "run.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        trained = [row for row in rows if row["loss"]]
        self.assertEqual([int(row["step"]) for row in trained], list(range(1, STEPS + 1)))
        self.assertAlmostEqual(float(trained[-1]["loss"]), self.first["progress"]["loss"], places=6)
        validated = {int(row["step"]): float(row["validation_loss"]) for row in rows if row["validation_loss"]}
        self.assertEqual(sorted(validated), [0, 20, STEPS])
        self.assertAlmostEqual(validated[STEPS], self.first["progress"]["validation_loss"], places=6)
        # Phases are means over the ranks' newest steps, of which some are a step behind: over the run they agree.
        steps = sum(float(row["step_seconds"]) for row in trained)
        phases = sum(float(value) for row in trained for name, value in row.items() if name.startswith("phase_seconds/"))
        self.assertGreater(phases, 0.5 * steps)
        self.assertLess(phases, 2 * steps)

    def test_history_outlives_the_coordinator(self):
        before = self.export(self.first, "csv", "before.csv").read_text(encoding="utf-8")
        self.cluster.coordinator.kill()
        self.cluster.start_coordinator()
        self.cluster.wait_for_workers(1)
        self.assertEqual(self.export(self.first, "csv", "after.csv").read_text(encoding="utf-8"), before)

    def test_tensorboard_file_has_an_event_for_each_step(self):
        folder = self.export(self.first, "tensorboard", "board")
        (file,) = folder.iterdir()
        self.assertTrue(file.name.startswith("events.out.tfevents."))
        payloads = tf_records(file.read_bytes())
        self.assertIn(b"brain.Event:2", payloads[0])
        self.assertEqual(len(payloads), 1 + STEPS + 1, "the version, and step 0 with its validation")
        self.assertIn(b"phase_seconds/forward", payloads[-1])

    def test_compare_says_what_differs_and_which_is_ahead(self):
        text = self.cluster.succeed("compare", self.first["id"], self.second["id"]).stdout
        self.assertRegex(text, r"training\.optimizer\.adamw\.lr +0\.001 +0\.0001")
        self.assertRegex(text, rf"{self.first['id']} first has the lower validation loss at step {STEPS}")
        self.assertNotIn("training.steps", text)
        comparison = json.loads(self.cluster.succeed("compare", self.first["id"], self.second["id"], "-o", "json").stdout)
        self.assertEqual([entry["field"] for entry in comparison["differences"]], ["training.optimizer.adamw.lr"])
        last = comparison["steps"][-1]
        self.assertEqual(last["step"], STEPS)
        self.assertAlmostEqual(last["validation_loss"]["left"], self.first["progress"]["validation_loss"], places=9)

    def test_timeline_nests_and_adds_up(self):
        job = self.submit_endless("traced", validate_every_steps=0)
        self.cluster.wait_for_step(job, 5)
        path = self.cluster.root / "trace.json"
        said = self.cluster.succeed("trace", job, "--steps", 3, "-o", path).stdout
        self.assertIn("of 4 ranks", said)
        trace = json.loads(path.read_text(encoding="utf-8"))
        names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
        self.assertEqual(sorted(names), [0, 1, 2, 3])
        self.assertIn("rank 3: tensor 0, data 1, pipeline 1 on worker-0", names[3])
        for rank in names:
            self.check_rank([event for event in trace["traceEvents"] if event["pid"] == rank and event["ph"] == "X"])
        steps = {event["args"]["step"] for event in trace["traceEvents"] if event["ph"] == "X"}
        self.assertEqual(len(steps), 3)
        late = self.cluster.muster("trace", self.first["id"], "-o", path)
        self.assertEqual(late.returncode, 4)
        self.assertIn("COMPLETED", late.stderr)
        self.cluster.succeed("cancel", job)
        self.cluster.wait_for_state(job, "CANCELLED")

    def check_rank(self, events):
        """Spans lie one within another or apart, and what lies within a step fills it but for what is named other."""
        events.sort(key=lambda event: (event["ts"], -event["dur"]))
        open_spans = []
        within_steps = covered = 0.0
        for event in events:
            end = event["ts"] + event["dur"]
            while open_spans and open_spans[-1]["end"] <= event["ts"] + 1e-6:
                open_spans.pop()
            if open_spans:
                self.assertLessEqual(end, open_spans[-1]["end"] + 1e-6, f"{event['name']} in {open_spans[-1]['name']}")
            if event["cat"] == "step":
                within_steps += event["dur"]
            elif len(open_spans) == 1:
                covered += event["dur"]
            open_spans.append({"end": end, "name": event["name"]})
        self.assertEqual(sum(event["cat"] == "step" for event in events), 3)
        self.assertGreater(covered, 0.8 * within_steps)
        self.assertLessEqual(covered, within_steps)
        forwards = sorted(event["args"]["micro_batch"] for event in events if event["name"] == "forward")
        self.assertEqual(forwards, sorted(list(range(4)) * 3))
        self.assertTrue(any(event["cat"] == "unit" for event in events))

    def test_rank_is_started_under_nsys_where_it_is_installed(self):
        job = self.submit_endless("profiled", validate_every_steps=0)
        self.cluster.wait_for_step(job, 3)
        refused = self.cluster.muster("trace", job, "--nsys", "--rank", 1)
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertIn("nsys is not installed on worker-0", refused.stderr)
        self.cluster.succeed("cancel", job)
        self.cluster.wait_for_state(job, "CANCELLED")

        tools = self.cluster.root / "tools"
        tools.mkdir()
        nsys = tools / "nsys"
        nsys.write_text("""#!/bin/sh
# Takes nsys's own options, writes what it was asked and becomes the program.
while [ "$#" -gt 0 ]; do
  case "$1" in
    profile) ;;
    --output=*) output="${1#--output=}" ;;
    --*) seen="$seen $1" ;;
    *) break ;;
  esac
  shift
done
echo "$seen" > "$output.nsys-rep"
exec "$@"
""", encoding="utf-8")
        nsys.chmod(0o755)
        self.cluster.workers["worker-0"].terminate()
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{tools}:{path}"
        try:
            self.cluster.start_worker("worker-0")
        finally:
            os.environ["PATH"] = path
        job = self.submit_endless("profiled-now", validate_every_steps=0)
        self.cluster.wait_for_step(job, 3)
        said = self.cluster.succeed("trace", job, "--nsys", "--rank", 1, "-o", "profiles/mine", "--seconds", 5).stdout
        self.assertIn("attempt 2", said)
        now = self.cluster.wait_for_step(job, 1, attempt=2)
        self.assertEqual(int(now["restarts"]), 0)
        report = self.cluster.checkpoints / "profiles" / "mine" / f"{job}.attempt-2.rank-1.nsys-rep"
        cluster.wait_until(report.exists, "the profiler ran", 20)
        self.assertIn("--duration=5", report.read_text(encoding="utf-8"))
        self.cluster.succeed("cancel", job)
        self.cluster.wait_for_state(job, "CANCELLED")


if __name__ == "__main__":
    unittest.main()
