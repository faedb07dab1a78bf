"""The files of deploy/ are accepted by the tools that read them, and name only flags that the programs have."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ.get("MUSTER_TOOLS", ROOT / "build" / "tools" / "usr" / "bin"))


def tool(name):
    """The program of that name, unpacked by deploy/install-packages or installed."""
    unpacked = TOOLS / name
    found = str(unpacked) if unpacked.exists() else shutil.which(name)
    assert found, f"{name} is not here; run: deploy/install-packages --unpack {TOOLS.parents[1]}"
    return found


def run(*command):
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, f"{' '.join(command)}: exit {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout


def flags_of(program):
    return set(re.findall(r"--[a-z][a-z-]*", run(str(cluster.BIN / program), "--help")))


class DeployFilesTest(unittest.TestCase):
    def test_kustomize_builds_the_base(self):
        manifests = run(tool("kubectl"), "kustomize", "deploy/kubernetes")
        kinds = sorted(re.findall(r"^kind: (\w+)", manifests, re.M))
        self.assertEqual(kinds, ["ConfigMap", "Namespace", "NetworkPolicy", "PersistentVolumeClaim", "PersistentVolumeClaim",
                                 "Service", "Service", "StatefulSet", "StatefulSet"])
        self.assertEqual(set(re.findall(r"image: (\S+)", manifests)), {"muster:0.1.0"})
        self.assertEqual(manifests.count("path: /healthz"), 4)

    def test_prometheus_accepts_its_configuration(self):
        self.assertIn("SUCCESS", run(tool("promtool"), "check", "config", "deploy/prometheus/prometheus.yml"))

    def test_dashboard_takes_a_jobs_throughput_from_the_job(self):
        """No figure of a rank is it: replicas process different tokens, stages of one replica the same."""
        dashboard = json.loads((ROOT / "deploy/grafana/job.json").read_text(encoding="utf-8"))
        panels = [panel for panel in dashboard["panels"] if panel["title"] == "Tokens per second"]
        self.assertTrue(panels)
        for panel in panels:
            self.assertEqual([target["expr"] for target in panel["targets"]], ['muster_job_tokens_per_second{job_id="$job"}'])

    def test_every_flag_in_the_files_exists(self):
        musterd, worker = flags_of("musterd"), flags_of("muster-worker")
        self.assertIn("--state-dir", musterd)
        self.assertIn("--slots", worker)
        files = {
            "deploy/kubernetes/musterd.yaml": musterd,
            "deploy/systemd/musterd.service": musterd,
            "deploy/docker/Dockerfile": musterd,
            "deploy/kubernetes/worker.yaml": worker,
            "deploy/systemd/muster-worker.service": worker,
        }
        for name, known in files.items():
            text = (ROOT / name).read_text(encoding="utf-8")
            if name.endswith("Dockerfile"):
                text = text[text.index("\nCMD "):]
            used = set(re.findall(r"--[a-z][a-z-]*", text))
            self.assertGreaterEqual(len(used), 3, name)
            self.assertEqual(used - known, set(), f"{name} uses flags that the program does not have")

    def test_every_job_fits(self):
        jobs = sorted((ROOT / "deploy/jobs").glob("*.yaml"))
        self.assertTrue(jobs)
        for job in jobs:
            with self.subTest(job.name):
                self.assertIn("fits", run(str(cluster.BIN / "muster"), "plan", str(job)))

    def test_the_image_has_the_release_that_the_manifests_name(self):
        version = re.search(r"project\(muster VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)
        self.assertIn(f"newTag: {version}", (ROOT / "deploy/kubernetes/kustomization.yaml").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
