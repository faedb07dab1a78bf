#!/usr/bin/env python3
"""The last page of deploy/quickstart, and its verdict: 0 when the job is COMPLETED and the model beats the text's bigrams.

usage: quickstart_summary.py JOB.json ENTROPY.json COORDINATOR MUSTERD_HTTP WORKER_HTTP
JOB.json is `muster get job NAME -o json`, ENTROPY.json is `muster data entropy TRAIN VALIDATION -o json`.
"""

import json
import sys


def mib(count):
    return f"{int(count) / 2**20:.1f} MiB"


def main():
    job_path, entropy_path, coordinator, musterd_http, worker_http = sys.argv[1:]
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    with open(entropy_path, encoding="utf-8") as file:
        entropy = json.load(file)
    progress = job["progress"]
    first, last = progress["first_validation_loss"], progress["validation_loss"]
    unigram, bigram = entropy["unigram_nats"], entropy["bigram_nats"]

    print()
    print(f"{job['spec']['name']} ({job['id']}) {job['state']} at step {progress['step']} of {progress['steps']}")
    print()
    print("held-out text                    nats per byte")
    print(f"  before the first step          {first:8.3f}")
    print(f"  unigram statistics             {unigram:8.3f}   H(x_t), counted on the training text")
    print(f"  bigram statistics              {bigram:8.3f}   H(x_t | x_t-1), the same")
    print(f"  the model after {progress['validation_step']:>5} steps    {last:8.3f}")
    print()
    print(f"throughput  {progress['tokens_per_second']:,.0f} tokens/s, {int(progress['tokens']):,} tokens")
    print()
    print("memory      planned arena   used arena peak resident")
    for rank in job["ranks"]:
        planned = job["plan"]["ranks"][int(rank["rank"])]["arena_bytes"]
        print(f"  rank {rank['rank']}    {mib(planned):>13} {mib(rank['arena_bytes']):>12} {mib(rank['resident_bytes']):>13}")
    print()
    print(f"coordinator {coordinator}   metrics http://{musterd_http}/metrics (musterd), http://{worker_http}/metrics (worker-0)")

    if job["state"] != "COMPLETED":
        print(f"\nquickstart: the job is {job['state']}: {job['state_reason']}", file=sys.stderr)
        return 1
    if not last < bigram:
        print(f"\nquickstart: validation loss {last:.3f} is not below the bigram entropy {bigram:.3f}", file=sys.stderr)
        return 1
    print(f"\nThe model beats the bigrams by {bigram - last:.3f} nats per byte.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
