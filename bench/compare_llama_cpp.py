#!/usr/bin/env python3
"""Speed beside llama.cpp on the same file: whole benchmark programs, in turn, so that a drift of the machine meets both.

    bench/compare_llama_cpp.py MODEL --llama-bench /path/to/llama-bench [--runs 5] [-p 512] [-n 32] [-t 2]

Each round runs ours, llama-bench, and a read-bandwidth loop over more memory than the caches hold. Prints medians, the
median of the rounds' ratios, and decode's share of the bandwidth read in the same round. Needs nothing but Python 3.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def speeds(output):
    """Tokens per second of the prefill row and of the decode row."""
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    prefill = [row["avg_ts"] for row in rows if row["n_prompt"] > 0 and row["n_gen"] == 0]
    decode = [row["avg_ts"] for row in rows if row["n_prompt"] == 0 and row["n_gen"] > 0]
    return prefill[0], decode[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--leanstream", default=ROOT / "build/release/bin/leanstream")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("-p", type=int, default=512)
    parser.add_argument("-n", type=int, default=32)
    parser.add_argument("-t", type=int, default=2)
    args = parser.parse_args()

    workload = ["-m", args.model, "-p", args.p, "-n", args.n, "-r", 1, "-t", args.t, "-o", "jsonl"]
    plan = [args.leanstream, "plan", "-m", args.model, "-c", 512, "-t", args.t, "--measure", "--json"]
    rounds = []
    for number in range(args.runs):
        # Who goes first alternates.
        order = [("ours", args.leanstream, ["bench"]), ("peer", args.llama_bench, [])]
        result = {}
        for name, program, first in order if number % 2 == 0 else reversed(order):
            result[name] = speeds(run([program, *first, *workload]))
        measured = json.loads(run(plan))
        result["read_gbps"] = measured["memory_read_gbps"]
        result["gb_per_token"] = measured["bytes_per_token"] / 1e9
        rounds.append(result)
        print(f"round {number + 1}: prefill {result['ours'][0]:.2f} against {result['peer'][0]:.2f}, "
              f"decode {result['ours'][1]:.3f} against {result['peer'][1]:.3f} tok/s, "
              f"memory reads at {result['read_gbps']:.1f} GB/s", flush=True)

    def median(value):
        return statistics.median(value(r) for r in rounds)

    print(f"\n| {args.runs} rounds, {args.t} threads | LeanStream | llama.cpp | ratio |\n|---|---|---|---|")
    for column, title in ((0, f"prefill {args.p}, tok/s"), (1, f"decode {args.n}, tok/s")):
        print(f"| {title} | {median(lambda r: r['ours'][column]):.2f} | {median(lambda r: r['peer'][column]):.2f} | "
              f"{median(lambda r: r['ours'][column] / r['peer'][column]):.2f} |")
    share = median(lambda r: r["ours"][1] * r["gb_per_token"] / r["read_gbps"])
    print(f"\nDecode reads its weights at {100 * share:.0f} % of the measured read bandwidth "
          f"({median(lambda r: r['read_gbps']):.1f} GB/s).")


if __name__ == "__main__":
    main()
