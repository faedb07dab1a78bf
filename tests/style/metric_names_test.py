"""Every documented metric is exported by the program that the page names, and nothing else is.

docs/metrics.md is compared with the catalog by tests/common/rpc/metric_catalog_test.cc; this compares it with the exporters.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPORTERS = {"muster-worker": "worker/agent", "musterd": "server"}


def documented():
    """Name -> program."""
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    return {row[0]: row[1] for row in re.findall(r"^\| `(muster_\w+)` \| \w+ \| [^|]* \| [^|]* \| ([\w-]+) \|", page, re.M)}


# Series of QueryMetrics, which no exporter has: docs/runs.md names them.
HISTORY = ("metric_history.cc", "metric_store.cc")


def names_in(paths):
    names = set()
    for path in paths:
        names |= set(re.findall(r'"(muster_\w+)"', path.read_text(encoding="utf-8")))
    return names


def exported(folder):
    return names_in(path for path in (ROOT / folder).rglob("*.cc") if path.name not in HISTORY)


class MetricNamesTest(unittest.TestCase):
    def test_every_documented_metric_is_exported_and_the_reverse(self):
        metrics = documented()
        self.assertGreaterEqual(len(metrics), 15)
        for program, folder in EXPORTERS.items():
            with self.subTest(program):
                wanted = {name for name, owner in metrics.items() if owner == program}
                self.assertEqual(exported(folder), wanted)

    def test_every_series_of_the_history_is_documented_and_the_reverse(self):
        page = (ROOT / "docs/runs.md").read_text(encoding="utf-8")
        documented_series = set(re.findall(r"`(muster_job_\w+)(?:\{\w+\})?`", page))
        self.assertEqual(names_in(ROOT / "server/job" / name for name in HISTORY), documented_series)


if __name__ == "__main__":
    unittest.main()
