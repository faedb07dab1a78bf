"""Who may include whom, as docs/architecture.md draws it. The rules are the two tables below; everything else is how to read a tree.

A library's link list says the same to CMake; headers can be included without linking, so this looks at the includes themselves.
"""

import pathlib
import re
from dataclasses import dataclass

COMMON = ("common/base", "common/plan", "common/formats")
SCHEMA = ("proto",)
SERVICES = COMMON + ("common/spec", "common/rpc") + SCHEMA
ENGINE = ("worker/engine", "worker/model", "worker/comm", "worker/data", "worker/checkpoint", "worker/kernels", "worker/tensor")

# Folder -> the folders that its files may include, besides itself. The longest folder that holds a file decides.
ALLOWED = {
    "proto": (),
    "common/base": (),
    "common/plan": ("common/base",),
    "common/formats": ("common/base", "common/plan"),
    "common/spec": SERVICES,
    "common/rpc": ("common/base",) + SCHEMA,
    "server": SERVICES,
    "client": SERVICES,
    "worker/tensor": COMMON,
    "worker/kernels": COMMON + ("worker/tensor",),
    "worker/comm": COMMON + ("worker/tensor",),
    "worker/model": COMMON + ("worker/kernels", "worker/tensor"),
    "worker/data": COMMON + ("worker/tensor",),
    "worker/checkpoint": COMMON + ("worker/tensor",),
    "worker/engine": COMMON + ENGINE,
    "worker/generate": COMMON + ENGINE,
    "worker/agent": SERVICES,
    "worker/rank": SERVICES + ENGINE,
}


@dataclass(frozen=True)
class Library:
    """Headers from outside that only some files may include."""

    name: str
    headers: str  # a regular expression on what stands between the brackets or quotes
    files: str  # a regular expression on the files that may


LIBRARIES = (
    Library("CUDA", r"cuda|cublas|cudnn|cub/|nvtx|nvToolsExt|cupti|thrust/",
            r"worker/kernels/cuda/|worker/tensor/[a-z_]*cuda|worker/comm/nccl_"),
    Library("NCCL", r"nccl\.h", r"worker/comm/nccl_"),
    Library("Gloo", r"gloo/", r"worker/comm/gloo_"),
    Library("oneDNN", r"dnnl|oneapi/", r"worker/kernels/cpu/"),
    Library("SQLite", r"sqlite3\.h", r"server/store/sqlite_store"),
    Library("civetweb", r"civetweb\.h|CivetServer\.h", r"common/rpc/"),
    Library("prometheus-cpp", r"prometheus/", r"common/rpc/|server/|worker/agent/|worker/rank/"),
    Library("yaml-cpp", r"yaml-cpp/", r"common/spec/|client/"),
    Library("gRPC", r"grpc/|grpcpp/|.*\.grpc\.pb\.h",
            r"proto/|common/rpc/|client/|server/(?!job/|scheduler/|store/)|worker/agent/|worker/rank/"),
    Library("Protobuf", r"google/|.*\.pb\.h", r"proto/|common/(spec|rpc)/|client/|server/|worker/agent/|worker/rank/"),
    Library("the clock", r"common/base/clock\.h", r"(?!server/scheduler/)"),
)

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
SOURCES = (".h", ".cc", ".cu", ".cuh")
TOP_FOLDERS = ("proto", "common", "server", "worker", "client")


def folder_of(path):
    """The longest folder with a rule that holds `path`, or None."""
    parts = pathlib.PurePosixPath(path).parts
    for length in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:length])
        if folder in ALLOWED:
            return folder
    return None


def check_include(path, target):
    """What is wrong with `path` including `target`; None when nothing is."""
    for library in LIBRARIES:
        if re.match(library.headers, target) and not re.match(library.files, path):
            return f"{path}: includes {library.name} ({target}); only {library.files} may"
    if target.split("/")[0] not in TOP_FOLDERS and not target.startswith("muster/"):
        return None  # from outside
    source, included = folder_of(path), "proto" if target.startswith("muster/") else folder_of(target)
    if source is None:
        return f"{path}: no rule for this folder; add it to ALLOWED in tests/style/include_rules.py"
    if included is None:
        return f"{path}: includes {target}, which is in no folder with a rule"
    if included != source and included not in ALLOWED[source]:
        return f"{path}: {source} may not include {included} ({target})"
    return None


def check_source(path, text):
    problems = []
    for line in text.splitlines():
        match = INCLUDE.match(line)
        if match is None:
            continue
        target = match.group(1) or match.group(2)
        if match.group(1) and "/" not in target and not path.startswith("proto/"):
            problems.append(f"{path}: \"{target}\" is not written from the top of the repository")
        problem = check_include(path, target)
        if problem is not None:
            problems.append(problem)
    if path.endswith((".h", ".cuh")) and "#pragma once" not in text:
        problems.append(f"{path}: has no #pragma once")
    return problems


def check_tree(root):
    """Every problem of the tree under `root`, and how many files were read."""
    problems, count = [], 0
    for top in TOP_FOLDERS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCES:
                count += 1
                problems += check_source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    return problems, count
