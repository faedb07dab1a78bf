"""Every query of the Grafana dashboard, and of its variables, returns data from a real Prometheus that scrapes a running job."""

import json
import pathlib
import re
import unittest
import urllib.parse
import urllib.request

import cluster
from deploy_files_test import ROOT, tool


def prometheus_configuration(musterd_port, worker_port):
    """The one that is shipped, with the ports of this test and a scrape every second."""
    text = (ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8")
    changed = (text.replace("scrape_interval: 5s", "scrape_interval: 1s")
               .replace("127.0.0.1:7071", f"127.0.0.1:{musterd_port}").replace("127.0.0.1:7072", f"127.0.0.1:{worker_port}"))
    assert "7071" not in changed.replace(str(musterd_port), "") and "interval: 1s" in changed, "prometheus.yml has changed its shape"
    return changed


class Prometheus:
    def __init__(self, folder: pathlib.Path, configuration):
        folder.mkdir()
        (folder / "prometheus.yml").write_text(configuration, encoding="utf-8")
        self.port = cluster.free_port()
        self.program = cluster.Program(
            "prometheus",
            [tool("prometheus"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            folder / "prometheus.log")

    def get(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        with urllib.request.urlopen(url, timeout=5) as reply:
            return json.load(reply)["data"]

    def query(self, expression):
        try:
            return self.get("query", query=expression)["result"]
        except OSError:
            return []  # still starting, or the query is wrong: the caller gives up at its deadline and names it


class DashboardTest(unittest.TestCase):
    def test_every_query_returns_data(self):
        dashboard = json.loads((ROOT / "deploy/grafana/job.json").read_text(encoding="utf-8"))
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertGreaterEqual(len(expressions), 15)

        with cluster.Cluster() as muster:
            muster.make_dataset()
            prometheus = Prometheus(
                muster.root / "prometheus", prometheus_configuration(muster.http_port, muster.worker_http_ports["worker-0"]))
            try:
                # As many steps as it takes: it is cancelled when every query has answered.
                job = muster.submit(cluster.tiny_job("dashboard", steps=1_000_000))
                muster.wait_for_step(job, 25)

                def fill(expression):
                    return (expression.replace("$job", job).replace("$rank", "0").replace("[$__rate_interval]", "[10s]"))

                for expression in expressions:
                    with self.subTest(expression):
                        cluster.wait_until(lambda: prometheus.query(fill(expression)), f"an answer to {fill(expression)}", 30)

                for variable in dashboard["templating"]["list"]:
                    if variable["type"] != "query":
                        continue
                    series, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
                    with self.subTest(variable["name"]):
                        values = {entry["metric"][label] for entry in prometheus.query(fill(series))}
                        self.assertIn({"job": job, "rank": "0"}[variable["name"]], values)
                phases = prometheus.query(f'sum by (rank) (rate(muster_rank_phase_seconds_total{{job_id="{job}"}}[10s]))')
                self.assertEqual(len(phases), 4)
                muster.succeed("cancel", job)
                muster.wait_for_state(job, "CANCELLED")
            finally:
                prometheus.program.terminate()


if __name__ == "__main__":
    unittest.main()
