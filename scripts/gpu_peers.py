#!/usr/bin/env python3
"""Times PyTorch's scaled_dot_product_attention on the shapes of ring_gpu_bench, by backend, and
prints them as a table in TFLOP/s. Needs PyTorch with CUDA; used by scripts/gpu-check."""
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

TOKENS, WIDTH, WARMUPS, REPEATS = 16384, 2048, 3, 11
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def seconds(call):
    for _ in range(WARMUPS):
        call()
    times = []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def row(backend, dim, is_causal, seq):
    heads, batch = WIDTH // dim, max(TOKENS // seq, 1)
    q, k, v = (torch.randn(batch, heads, seq, dim, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True) for _ in range(3))
    flops = 4 * seq * seq * dim * heads * batch * (0.5 if is_causal else 1)
    with sdpa_kernel(BACKENDS[backend]):
        run = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        with torch.no_grad():
            forward = seconds(run)
        out = run()
        grad = torch.randn_like(out)
        backward = seconds(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))
    mask = "causal" if is_causal else "full"
    print(f"| {backend} | {dim} | {mask} | {seq} | {flops / forward * 1e-12:.0f} | "
          f"{2.5 * flops / backward * 1e-12:.0f} |")


def main():
    print(f"PyTorch {torch.__version__}, bf16, TFLOP/s\n")
    print("| backend | head dim | mask | tokens | forward | backward |\n|---|---|---|---|---|---|")
    for backend in BACKENDS:
        for dim in (64, 128):
            for is_causal in (False, True):
                for seq in (1024, 4096, 16384):
                    try:
                        row(backend, dim, is_causal, seq)
                    except RuntimeError as error:
                        print(f"| {backend} | {dim} | {is_causal} | {seq} | {str(error)[:40]} | |")


if __name__ == "__main__":
    main()
