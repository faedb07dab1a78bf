"""deploy/quickstart ends when it is told to, leaves no process behind, and says when its job has not learnt enough.

The whole of it, which trains for minutes, is the last test, and runs only with MUSTER_LONG_TESTS=1 (tests/run --long).
"""

import contextlib
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
        return processes_in(self.folder)


def processes_in(folder):
    """Everything that runs with the folder in its command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass  # it ended meanwhile
    return found


@contextlib.contextmanager
def folder_of_processes():
    """A temporary folder; what still runs in it at the end, which is a fault that the test has found, is killed."""
    with tempfile.TemporaryDirectory(prefix="muster-test-", ignore_cleanup_errors=True) as folder:
        try:
            yield folder
        finally:
            for pid in processes_in(folder):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def start_piped(folder, **environment):
    """The script with its output, and its complaints, in a pipe that the caller reads."""
    return subprocess.Popen(
        [ROOT / "deploy/quickstart", "--no-install"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, text=True,
        env={**os.environ, "MUSTER_BUILD_DIR": str(cluster.BIN.parent), "TMPDIR": str(folder), **environment})


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

    def test_it_outlives_neither_its_terminal_nor_its_reader(self):
        for send_hangup in (True, False):  # the terminal closes; `deploy/quickstart | head`
            with self.subTest("SIGHUP" if send_hangup else "broken pipe"), folder_of_processes() as folder:
                process = start_piped(folder)
                for line in process.stdout:
                    if "STARTING -> RUNNING" in line:
                        break
                self.assertGreaterEqual(len(processes_in(folder)), 6)
                process.stdout.close()
                if send_hangup:
                    os.killpg(process.pid, signal.SIGHUP)
                process.wait(timeout=60)
                self.assertNotEqual(process.returncode, 0)
                self.assertEqual(processes_in(folder), [])

    def test_terminate_stops_the_build(self):
        with folder_of_processes() as folder:
            # In the place of cmake and what it starts: both would work for ever.
            tools = pathlib.Path(folder) / "bin"
            tools.mkdir()
            (tools / "sleep").symlink_to("/bin/sleep")
            (tools / "cmake").write_text(f"#!/bin/sh\necho compiling\n{tools}/sleep 1000\nexit 1\n", encoding="utf-8")
            (tools / "cmake").chmod(0o755)
            process = start_piped(folder, PATH=f"{tools}:{os.environ['PATH']}", MUSTER_BUILD_DIR=f"{folder}/build")
            log = pathlib.Path(folder) / "build/quickstart/configure.log"
            cluster.wait_until(lambda: log.exists() and "compiling" in log.read_text(encoding="utf-8"), "the build runs", 30)
            self.assertNotEqual(processes_in(folder), [])
            process.terminate()
            self.assertEqual(process.wait(timeout=40), 143)
            process.stdout.close()
            self.assertEqual(processes_in(folder), [])

    def short_job(self):
        """A file of a job that cannot learn much."""
        job = (ROOT / "deploy/jobs/quickstart.yaml").read_text(encoding="utf-8")
        job = re.sub(r"steps: 300\b", "steps: 3", job)
        job = re.sub(r"warmup_steps: \d+", "warmup_steps: 1", job)
        file = tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8")
        self.addCleanup(file.close)
        file.write(job)
        file.flush()
        return file.name

    def test_keep_leaves_the_cluster_of_a_job_that_learns_too_little(self):
        run = self.start("--keep", "--job", self.short_job())
        run.wait_for("The cluster runs until Ctrl-C")
        self.assertIn("is not below the bigram entropy", run.output())
        self.assertEqual(len(run.processes()), 2)
        os.kill(run.program.pid, signal.SIGINT)
        self.assertEqual(run.program.process.wait(timeout=40), 1, run.output())
        self.assertEqual(run.processes(), [])

    def test_wrong_job_file_is_noticed_before_a_cluster_runs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            file.write("name: wrong\nmodle: {}\n")
            file.flush()
            run = self.start("--job", file.name)
            self.assertEqual(run.program.process.wait(timeout=120), 1)
        self.assertIn("modle", run.output())
        self.assertNotIn("starting musterd", run.output())

    def test_job_that_learns_too_little_fails_it(self):
        run = self.start("--job", self.short_job())
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
