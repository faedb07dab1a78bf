"""Reads a folder that `muster metrics export --format tensorboard` wrote with TensorBoard's own reader, where `pip install
tensorboard` was done, and prints what it found: for people, beside the golden bytes of tests/client/metrics_files_test.cc.

    muster metrics export JOB --format tensorboard -o runs/job && python3 tensorboard_check.py runs/job
"""

import sys

from tensorboard.backend.event_processing import event_accumulator


def main():
    reader = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={event_accumulator.SCALARS: 0})
    reader.Reload()
    tags = reader.Tags()["scalars"]
    assert tags, "no scalars"
    for tag in tags:
        points = reader.Scalars(tag)
        print(f"{tag}: {len(points)} points, step {points[0].step} to {points[-1].step}, last {points[-1].value:.6g}")


if __name__ == "__main__":
    main()
