#!/usr/bin/env bash
# One node of 8 A100: calibrates it and measures rings of 1 to 8 GPUs. Follow docs/calibrate-a100.md.
#SBATCH --job-name=ringscope-a100
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --exclusive
#SBATCH --time=00:30:00
#SBATCH --output=ringscope-a100-%j.log
set -euo pipefail

ringscope=${RINGSCOPE:-ringscope}
folder=${RESULTS:-ringscope-results-${SLURM_JOB_ID:-local}}
mkdir -p "$folder"

# What the numbers depend on, kept beside them.
"$ringscope" env >"$folder/env.txt"
nvidia-smi -q >"$folder/nvidia-smi.txt"
nvidia-smi topo -m >"$folder/topology.txt"

problem=(--heads 32 --kv-heads 8 --head-dim 128 --dtype bf16 --seq 131072 --mask causal)
failed=0
# Copies and NCCL cost differently: a profile of each.
for carrier in copies exchanges; do
  machine=$folder/machine-$carrier.json
  "$ringscope" calibrate --device cuda --carrier "$carrier" --budget 120s --output "$machine"
  for ranks in 1 2 4 8; do
    [[ $ranks == 1 && $carrier == exchanges ]] && continue
    run=$folder/run-$ranks-$carrier
    # One run that fails is no reason not to make the others.
    "$ringscope" run --device cuda --carrier "$carrier" --machine "$machine" "${problem[@]}" \
      --ranks "$ranks" --block 4096 --check-rows 8 --output "$run.json" --trace "$run-trace.json.gz" \
      --json >"$run-report.json" || { printf 'FAILED: %s\n' "$run"; failed=1; }
  done
done
printf 'Results are in %s\n' "$folder"
exit "$failed"
