#!/usr/bin/env bash
# Two nodes of 8 A100: one process a GPU, messages over NCCL. Follow docs/calibrate-a100.md.
#SBATCH --job-name=ringscope-a100x2
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --exclusive
#SBATCH --time=00:30:00
#SBATCH --output=ringscope-a100x2-%j.log
set -euo pipefail

ringscope=${RINGSCOPE:-ringscope}
folder=${RESULTS:-ringscope-results-${SLURM_JOB_ID:-local}}
launch=${LAUNCH:-srun --mpi=pmix}
mkdir -p "$folder"

# What the numbers depend on, once a node.
$launch --ntasks-per-node=1 --ntasks=2 bash -c \
  "nvidia-smi -q >'$folder/nvidia-smi-'\$(hostname).txt; nvidia-smi topo -m >'$folder/topology-'\$(hostname).txt"
export NCCL_DEBUG=${NCCL_DEBUG:-INFO} NCCL_DEBUG_FILE="$folder/nccl-%h-%p.log"

problem=(--heads 32 --kv-heads 8 --head-dim 128 --dtype bf16 --mask causal)
failed=0
for seq in 131072 524288; do
  for block in 4096 16384; do
    run=$folder/run-16-$seq-$block
    # One run that fails is no reason not to make the others.
    $launch "$ringscope" run --device cuda --carrier exchanges "${problem[@]}" --seq "$seq" \
      --ranks 16 --block "$block" --check-rows 8 --output "$run.json" --json \
      >"$run-report.json" || { printf 'FAILED: %s\n' "$run"; failed=1; }
  done
done
printf 'Results are in %s\n' "$folder"
exit "$failed"
