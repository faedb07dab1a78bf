"""deploy/quickstart ends when it is told to, leaves no process behind, and says when its job has not learnt enough.

The whole of it, which trains for minutes, is the last test, and runs only with MUSTER_LONG_TESTS=1 (tests/run --long).
"""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Quickstart:
    """One run of the script in a session of its own, as a terminal would give it."""

    def __init__(self, folder, *arguments):
        self.folder = pathlib.Path(folder)
        self.program = cluster.Program(
            "quickstart", [ROOT / "deploy/quickstart", "--no-install", *arguments], self.folder / "output.log",
            {"MUSTER_BUILD_DIR": str(cluster.BIN.parent), "TMPDIR": str(self.folder)})

    def output(self):
        return self.program.log_text()

    def wait_for(self, text, timeout_seconds=120):
        def seen():
            assert text in self.output() or self.program.running(), f"ended without {text!r}:\n{self.output()}"
            return text in self.output()

        cluster.wait_until(seen, f"the quickstart prints {text!r}", timeout_seconds)

    def processes(self):
        """Everything that runs with this run's folder in its command line."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.folder).encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                pass  # it ended meanwhile
        return found


class QuickstartTest(unittest.TestCase):
    def start(self, *arguments):
        """In a folder of its own; ended and deleted when the test is over, however that goes."""
        folder = tempfile.TemporaryDirectory(prefix="muster-test-")
        self.addCleanup(folder.cleanup)
        run = Quickstart(folder.name, *arguments)
        self.addCleanup(lambda: run.program.running() and run.program.terminate(timeout_seconds=40))
        return run

    def test_interrupt_stops_all_that_it_started(self):
        for send in (os.kill, os.killpg):  # to the script alone; to its whole group, as Ctrl-C in a terminal does
            with self.subTest(send.__name__):
                run = self.start()
                run.wait_for("STARTING -> RUNNING")
                self.assertGreaterEqual(len(run.processes()), 6)  # musterd, the worker, four ranks
                send(run.program.pid, signal.SIGINT)
                self.assertEqual(run.program.process.wait(timeout=40), 130, run.output())
                self.assertEqual(run.processes(), [])
                self.assertEqual(list(run.folder.glob("muster-quickstart*")), [])

    def test_job_that_learns_too_little_fails_it(self):
        job = (ROOT / "deploy/jobs/quickstart.yaml").read_text(encoding="utf-8")
        job = re.sub(r"steps: 300\b", "steps: 3", job)
        job = re.sub(r"warmup_steps: \d+", "warmup_steps: 1", job)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            file.write(job)
            file.flush()
            run = self.start("--job", file.name)
            run.program.process.wait(timeout=120)
        self.assertEqual(run.program.process.returncode, 1, run.output())
        self.assertRegex(run.output(), r"validation loss \d\.\d+ is not below the bigram entropy 2\.\d+")
        self.assertIn("COMPLETED at step 3 of 3", run.output())
        self.assertEqual(run.processes(), [])

    def test_unknown_argument_is_refused(self):
        result = subprocess.run([ROOT / "deploy/quickstart", "--fast"], capture_output=True, text=True, timeout=10, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--fast", result.stderr)


if os.environ.get("MUSTER_LONG_TESTS"):

    class WholeQuickstartTest(unittest.TestCase):
        def test_it_beats_the_bigrams(self):
            with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
                run = Quickstart(folder)
                self.assertEqual(run.program.process.wait(timeout=900), 0, run.output())
                self.assertRegex(run.output(), r"The model beats the bigrams by 0\.\d+ nats per byte")
                self.assertEqual(run.processes(), [])


if __name__ == "__main__":
    unittest.main()
