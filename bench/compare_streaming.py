#!/usr/bin/env python3
"""Decoding speed against the memory budget: ours, the physical bound, and llama.cpp, in turn in every round.

    bench/compare_streaming.py MODEL --limit-tool TOOL [--budgets 75,50,33,25,20] [--runs 5] [-n 16] [--pack PACK]
        [--llama-completion PROGRAM [--peer-runs 2] [--peer-read-ahead 128,8192]] [--json FILE]

TOOL BYTES TIMEOUT_S COMMAND... runs COMMAND in a memory cgroup of BYTES and ends its stderr with a JSON object that has
oom_kills. Budgets are per cent of the file; ours runs at --memory of the budget inside a cgroup of budget + 64 MiB.

Each round sweeps the drive (bench_io_sweep: our pool on rings and threads, and plain O_DIRECT threads), runs the resident
engine, and every budget. The bound of a budget is what must come from the drive at least, bytes per token less (budget -
KV - 150 MB), over the best bandwidth of the same round's sweep; or the resident time where that is longer. Every run's text
must equal the resident run's. Prints medians, writes every sample to --json. Needs root for --peer-read-ahead.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMPT = "The quick brown fox"
OVERHEAD = 150_000_000
SLACK = 64 << 20


def call(command, timeout=900):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def limited(args, limit_bytes, command):
    """Runs under the limit; its text, stderr, and the limit tool's report."""
    code, out, err = call([args.limit_tool, limit_bytes, 600, *command])
    report = json.loads(err.strip().splitlines()[-1])
    if report["oom_kills"]:
        sys.exit(f"killed for memory at {limit_bytes} bytes: {command}")
    if code != 0:
        sys.exit(f"failed with {code}: {command}\n{err[-2000:]}")
    return out, err, report


def ours(args, model, budget):
    with tempfile.NamedTemporaryFile(suffix=".json") as stats_file:
        command = [args.leanstream, "run", "-m", model, "-p", PROMPT, "-n", args.n, "-c", 512, "-t", args.t, "--temp", 0,
                   "--ignore-eos", "--stats-json", stats_file.name]
        if budget:
            command += ["--memory", budget]
        text, _, _ = limited(args, budget + SLACK if budget else 0, command)
        stats = json.load(open(stats_file.name))
    if budget and stats["peak_rss_bytes"] > budget:
        sys.exit(f"peak of {stats['peak_rss_bytes']} bytes at a budget of {budget}")
    return text, stats


def sweep(args):
    """Best GB/s of our pool, and of plain threads, over all sizes and depths."""
    code, out, err = call([args.io_sweep, args.model, "--pattern", "seq", "--sizes", "256K,1M,2M,4M", "--depths", "4,8,16",
                           "--ms", 120, "--engines", "ring,threads,plain"])
    if code != 0:
        sys.exit(err)
    best = [float(x) for x in re.findall(r"[\d.]+", next(l for l in out.splitlines() if l.lstrip().startswith("best")))]
    return {"ring": best[0], "threads": best[1], "plain": best[2]}


def peer(args, budget, read_ahead):
    device = next(d for d in Path("/sys/block").iterdir() if (d / "device").exists() or d.name.startswith("vd"))
    setting = device / "queue/read_ahead_kb"
    before = setting.read_text()
    setting.write_text(str(read_ahead))
    try:
        command = [args.llama_completion, "-m", args.model, "-t", args.t, "-c", 512, "-n", 7, "-nr", "-lm", "mmap", "--no-warmup",
                   "-p", "The quick", "-no-cnv", "--ignore-eos", "--temp", 0]
        _, err, _ = limited(args, budget + SLACK, command)
    finally:
        setting.write_text(before)
    return float(re.search(r"eval time.*?runs.*?([\d.]+) tokens per second", err).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--limit-tool", required=True)
    parser.add_argument("--budgets", default="75,50,33,25,20")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--pack")
    parser.add_argument("--llama-completion")
    parser.add_argument("--peer-runs", type=int, default=2)
    parser.add_argument("--peer-read-ahead", default="128,8192")
    parser.add_argument("--leanstream", default=ROOT / "build/release/bin/leanstream")
    parser.add_argument("--io-sweep", default=ROOT / "build/dev/bench/bench_io_sweep")
    parser.add_argument("-n", type=int, default=16)
    parser.add_argument("-t", type=int, default=2)
    parser.add_argument("--json")
    args = parser.parse_args()

    file_bytes = Path(args.model).stat().st_size
    budgets = [int(b) for b in args.budgets.split(",")]
    plan = json.loads(call([args.leanstream, "plan", "-m", args.model, "-c", 512, "--state-dir", "", "--json"])[1])
    samples = []

    def note(**sample):
        samples.append(sample)
        if args.json:
            Path(args.json).write_text(json.dumps(samples, indent=1))

    def one(round_number, kind, model, percent, expected, drive, resident_tps):
        budget = file_bytes * percent // 100
        text, stats = ours(args, model, budget)
        if text != expected:
            sys.exit(f"other text than resident at {percent} %")
        must_come = plan["bytes_per_token"] - (budget - plan["kv_bytes"] - OVERHEAD)
        best = max(drive["ring"], drive["threads"]) * 1e9
        bound = min(best / must_come, resident_tps) if must_come > 0 else resident_tps
        note(round=round_number, kind=kind, percent=percent, tps=stats["decode_tps"], bound=bound, gbps=stats["read_gbps"],
             best_gbps=best / 1e9, plain_gbps=drive["plain"], wait_ms=stats["io_wait_ms"], peak=stats["peak_rss_bytes"],
             budget=budget, ttft_ms=stats["ttft_ms"])
        print(f"round {round_number}: {kind:5} {percent:3} %: {stats['decode_tps']:.3f} of at most {bound:.3f} tok/s "
              f"({stats['decode_tps'] / bound:.2f}), {stats['read_gbps']:.2f} of {best / 1e9:.2f} GB/s, "
              f"peak {stats['peak_rss_bytes'] / budget:.3f} of the budget", flush=True)

    for number in range(1, args.runs + 1):
        expected, stats = ours(args, args.model, 0)
        resident_tps = stats["decode_tps"]
        note(round=number, kind="resident", percent=100, tps=resident_tps)
        for percent in budgets:
            drive = sweep(args)
            one(number, "file", args.model, percent, expected, drive, resident_tps)
            if args.pack:
                one(number, "pack", args.pack, percent, expected, drive, resident_tps)
            if args.llama_completion and number <= args.peer_runs:
                for read_ahead in args.peer_read_ahead.split(","):
                    tps = peer(args, file_bytes * percent // 100, read_ahead)
                    note(round=number, kind=f"llama.cpp {read_ahead} KiB", percent=percent, tps=tps)
                    print(f"round {number}: llama.cpp, read-ahead {read_ahead} KiB, {percent} %: {tps:.3f} tok/s", flush=True)

    kinds = list(dict.fromkeys(s["kind"] for s in samples))
    print(f"\nmedians of {args.runs} rounds, tok/s\n\n| budget | bound | " + " | ".join(kinds) + " | file / bound | GB/s | best GB/s |")
    print("|---" * (len(kinds) + 5) + "|")
    for percent in budgets:
        mine = [s for s in samples if s["percent"] == percent and s["kind"] == "file"]
        cells = []
        for kind in kinds:
            values = [s["tps"] for s in samples if s["kind"] == kind and (s["percent"] == percent or kind == "resident")]
            cells.append(f"{statistics.median(values):.2f}" if values else "")
        def of(key):
            return statistics.median(s[key] for s in mine)
        print(f"| {percent} % | {of('bound'):.2f} | " + " | ".join(cells) +
              f" | {statistics.median(s['tps'] / s['bound'] for s in mine):.2f} | {of('gbps'):.2f} | {of('best_gbps'):.2f} |")


if __name__ == "__main__":
    main()
