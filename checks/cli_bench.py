"""How long `agent` takes to start, against a program of clap's that does nothing, and to its first output on the offline model.

    cargo build --release -p agent-cli --bins --example bare
    python3 checks/cli_bench.py target/release/agent target/release/examples/bare

Ends with 1 if a bar is missed. Starts are made in turn; medians are compared, since other work on the machine moves single ones.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FILE = "name: bench\nmodel: offline:any\nstore: memory\ntools: [{workspace: {root: ., read_only: true}}]\n"


def first_output(command, folder, environment):
    """Milliseconds until the command has written something."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    child.stdout.read(1)
    took = (time.perf_counter() - begun) * 1000
    child.stdout.close()
    child.wait()
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent")
    parser.add_argument("bare")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--help-ms", type=float, default=15, help="bar of `agent --help`")
    parser.add_argument("--first-ms", type=float, default=100, help="bar of the first output of a run")
    wanted = parser.parse_args()
    agent, bare = (os.path.abspath(program) for program in (wanted.agent, wanted.bare))
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "bench.yaml").write_text(FILE)
        environment = {"HOME": folder, "PATH": os.environ["PATH"]}
        rows = {
            "bare --help": ([bare, "--help"], None),
            "agent --help": ([agent, "--help"], wanted.help_ms),
            "agent run, a store in SQLite": ([agent, "run", "--store", "bench.db", "Why?"], wanted.first_ms),
            "agent run, a file and a store in memory": ([agent, "run", "bench.yaml", "Why?"], wanted.first_ms),
        }
        times = {name: [] for name in rows}
        for _ in range(wanted.rounds):
            for name, (command, _) in rows.items():
                pathlib.Path(folder, "bench.db").unlink(missing_ok=True)
                times[name].append(first_output(command, folder, environment))
    missed = False
    for name, (_, bar) in rows.items():
        median = statistics.median(times[name])
        is_missed = bar is not None and median > bar
        missed |= is_missed
        print(f"{median:8.1f} ms  {name}" + (f"  (bar {bar:.0f} ms{', MISSED' if is_missed else ''})" if bar else ""))
    sys.exit(1 if missed else 0)


main()
