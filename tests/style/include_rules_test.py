"""The tree keeps the include rules, and the checker sees each kind of breach."""

import pathlib
import unittest

import include_rules

ROOT = pathlib.Path(__file__).resolve().parents[2]


class IncludeRulesTest(unittest.TestCase):
    def assert_refused(self, path, include, part):
        problems = include_rules.check_source(path, f"#pragma once\n#include {include}\n")
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(part, problems[0])

    def assert_allowed(self, path, include):
        self.assertEqual(include_rules.check_source(path, f"#pragma once\n#include {include}\n"), [])

    def test_the_tree_keeps_the_rules(self):
        problems, count = include_rules.check_tree(ROOT)
        self.assertGreater(count, 20, "the tree was not found")
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_server_and_worker_never_meet(self):
        self.assert_refused("server/coordinator.h", '"worker/agent/options.h"', "server may not include worker/agent")
        self.assert_refused("worker/agent/session.h", '"server/options.h"', "worker/agent may not include server")

    def test_the_engine_knows_no_protobuf_and_no_grpc(self):
        self.assert_refused("worker/engine/trainer.h", '"muster/v1/job.pb.h"', "Protobuf")
        self.assert_refused("worker/comm/gloo_communicator.cc", "<grpcpp/grpcpp.h>", "gRPC")
        self.assert_refused("common/plan/ledger.h", "<google/protobuf/message.h>", "Protobuf")
        self.assert_refused("worker/model/gpt2.h", '"common/spec/job_spec.h"', "may not include common/spec")

    def test_layers_of_the_engine_point_downwards(self):
        self.assert_refused("worker/kernels/kernels.h", '"worker/model/gpt2.h"', "may not include worker/model")
        self.assert_refused("worker/tensor/view.h", '"worker/kernels/kernels.h"', "may not include worker/kernels")
        self.assert_refused("worker/model/gpt2.h", '"worker/comm/communicator.h"', "may not include worker/comm")
        self.assert_allowed("worker/engine/trainer.cc", '"worker/comm/communicator.h"')

    def test_libraries_stay_in_their_place(self):
        self.assert_refused("worker/engine/trainer.cc", "<cuda_runtime.h>", "CUDA")
        self.assert_refused("worker/comm/communicator.h", "<gloo/context.h>", "Gloo")
        self.assert_refused("server/job/job.cc", "<sqlite3.h>", "SQLite")
        self.assert_refused("worker/model/gpt2.cc", "<oneapi/dnnl/dnnl.hpp>", "oneDNN")
        self.assert_allowed("worker/comm/gloo_communicator.cc", '"gloo/context.h"')
        self.assert_allowed("server/store/sqlite_store.cc", "<sqlite3.h>")

    def test_the_scheduler_is_pure(self):
        self.assert_refused("server/scheduler/scheduler.cc", '"common/base/clock.h"', "the clock")
        self.assert_refused("server/scheduler/scheduler.cc", "<grpcpp/server.h>", "gRPC")

    def test_includes_are_written_from_the_top(self):
        problems = include_rules.check_source("server/job/job.cc", '#include "job.h"\n')
        self.assertEqual(len(problems), 1)
        self.assertIn("not written from the top", problems[0])

    def test_a_header_is_guarded(self):
        self.assertIn("#pragma once", include_rules.check_source("server/job/job.h", "class Job;\n")[0])


if __name__ == "__main__":
    unittest.main()
