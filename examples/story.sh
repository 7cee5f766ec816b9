#!/usr/bin/env bash
# The run that started lastwords, at a sixtieth of its time: "12 proofs, concurrency 3, partition-workers 16".
# It behaves as that daemon and benchmark did: the daemon's log names the cause, the benchmark only says that it failed.
# Usage: story.sh DAEMON_LOG [SECONDS]
set -euo pipefail
daemon_log=$1
seconds=${2:-10}
now() { date -u +%Y-%m-%dT%H:%M:%S.%6NZ; }
daemon() { printf '%s %s\n' "$(now)" "$1" >> "$daemon_log"; }

daemon ' INFO cuzk_daemon: cuzk-daemon starting'
daemon ' INFO cuzk_core::engine: memory budget initialized total_budget_gib=499'
daemon ' INFO cuzk_daemon: cuzk-daemon ready, serving on 127.0.0.1:9820'
printf '=== Batch Benchmark ===\nproof type:  porep\ncount:       12\nconcurrency: 3\n\n'
for ((step = 1; step <= seconds; step++)); do
  daemon " INFO cuzk_core::engine: partition synthesized partition=$step partition_workers=16"
  sleep 1
done
{
  printf "\nthread '<unnamed>' panicked at src/prover.rs:412:9:\n"
  printf '%s\n' 'GPU prove failed: cudaGetLastError()@sppark-0.1.14/ntt/kernels/gs_mixed_radix_wide.cu:220 failed: "an illegal memory access was encountered"'
} >> "$daemon_log"
daemon 'ERROR cuzk_server::service: prove failed job_id=7'
echo 'Error: Prove RPC failed' >&2
exit 1
