#!/usr/bin/env python3
"""Parts of the report of scripts/gpu-check.
  gpu_report.py ring NAME FILE   a row of the table of rings, from what `ringscope run --json` wrote
  gpu_report.py targets REPORT   which targets were met, from the tables of a report"""
import json
import sys

# TFLOP/s of FlashAttention-2 on H100-class cards at head dim 128 and 16384 tokens, as its
# repository publishes them (assets of the FlashAttention-3 paper, figure 5).
FLASH2_H100 = {"full": 370, "causal": 335}
SHARE, RING_ERROR = 0.8, 0.1


def ring_row(name, path):
    with open(path) as file:
        run = json.load(file)
    predicted = run.get("prediction", {}).get("makespan_ps")
    shown = f"{predicted / 1e9:.2f} ms" if predicted else "none"
    error = f"{run['error']:+.1%}" if "error" in run else ""
    right = run.get("verification", {}).get("is_right")
    result = "not checked" if right is None else "right" if right else "WRONG"
    return f"| {name} | {shown} | {run['median_ps'] / 1e9:.2f} ms | {error} | {result} |"


def tables(lines):
    """Rows of all Markdown tables, as dictionaries by the words of their heads."""
    head, rows = None, []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells
        elif not cells[0].startswith("---"):
            rows.append(dict(zip(head, cells)))
    return rows


def number(text):
    try:
        return float(text.rstrip("%"))
    except (AttributeError, ValueError):
        return None


def verdict(name, have, want):
    share = have / want
    return f"| {name} | {have:.0f} | {want:.0f} | {share:.0%} | {'yes' if share >= SHARE else 'NO'} |"


def kernel_targets(rows, is_h100):
    own = {(r["head dim"], r["mask"], r["tokens"]): r for r in rows if "forward, mma" in r}
    peers = {(r["head dim"], r["mask"], r["tokens"]): number(r["forward"]) for r in rows
             if r.get("backend") == "cudnn"}
    lines = []
    for mask, published in FLASH2_H100.items():
        have = number(own.get(("128", mask, "16384"), {}).get("forward, mma"))
        if have and is_h100:
            lines.append(verdict(f"mma of FlashAttention-2, {mask}", have, published))
    for key, row in own.items():
        have = number(row.get("forward, wgmma"))
        want = number(row.get("forward, cudnn")) or peers.get(key)
        if have and want and key[2] == "16384":
            lines.append(verdict(f"wgmma of cuDNN, head dim {key[0]}, {key[1]}", have, want))
    return lines


def targets(path):
    with open(path) as file:
        lines = file.read().splitlines()
    rows = tables(lines)
    is_h100 = any(word in line for line in lines[:4] for word in ("H100", "H200"))
    kernels = kernel_targets(rows, is_h100)
    out = []
    if kernels:
        out += ["| target at 16384 tokens, >= 80 % | TFLOP/s | of | share | met |",
                "|---|---|---|---|---|", *kernels, ""]
    else:
        out += ["Targets of kernels: nothing to compare with on this card in this run", ""]
    errors = [number(row["error"]) for row in rows if "ring of 4 on one card" in row]
    errors = [abs(error) for error in errors if error is not None]
    if errors:
        met = "yes" if max(errors) <= 100 * RING_ERROR else "NO"
        out.append(f"Rings on one card predicted within 10 %: {met}, at most {max(errors):.1f} % off")
    else:
        out.append("Rings on one card predicted within 10 %: not judged, none was predicted")
    return "\n".join(out)


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "ring":
        print(ring_row(arguments[1], arguments[2]))
    elif len(arguments) == 2 and arguments[0] == "targets":
        print(targets(arguments[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
