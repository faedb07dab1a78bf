"""The smaller builds configure, and say what they are: without the CUDA toolkit, and the engine alone."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def configure(*options):
    with tempfile.TemporaryDirectory(prefix="muster-configure-") as build:
        return subprocess.run(["cmake", "-S", str(ROOT), "-B", build, *options], capture_output=True, text=True, check=False)


class ConfigureTest(unittest.TestCase):
    def test_a_build_without_cuda_says_that_it_is_for_the_cpu_only(self):
        result = configure("-DMUSTER_CUDA=OFF")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("CPU-only build", result.stdout)

    def test_cuda_that_is_asked_for_and_missing_is_an_error_that_says_what_to_do(self):
        result = configure("-DMUSTER_CUDA=ON", "-DCMAKE_CUDA_COMPILER=/nonexistent/nvcc")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("nvcc", result.stderr)

    def test_the_engine_configures_alone(self):
        result = configure("-DMUSTER_ENGINE_ONLY=ON", "-DMUSTER_CUDA=OFF")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("gRPC", result.stdout)


if __name__ == "__main__":
    unittest.main()
