"""One training step of a toy model on a part of a batch; run once per process by test_distributed.py.

python two_processes.py RANK SIZES RENDEZVOUS OUT WHAT   # SIZES: how many items each process holds, e.g. 5,3;
                                                         # WHAT: losses, or misfits (parts that cannot be gathered)
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from halation import Gaussian, InputError, losses, similarity
from halation.similarity import gather, keyed_noise

DIM, HIDDEN = 6, 5


class Model(nn.Module):
    """Features (n, 6) of both sides to four tensors (n, 5); no dropout, no batch norm."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.image, self.text = nn.Linear(DIM, 2 * HIDDEN), nn.Linear(DIM, 2 * HIDDEN)
        self.scale, self.shift = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.tensor(1.0))

    def forward(self, images: Tensor, texts: Tensor) -> tuple[Tensor, ...]:
        both = (*self.image(images).tanh().chunk(2, dim=1), *self.text(texts).tanh().chunk(2, dim=1))
        return (*both, self.scale.clone(), self.shift.clone())


def global_losses(a: Gaussian, b: Gaussian, keys: Tensor, scale: Tensor, shift: Tensor) -> dict[str, Tensor]:
    """Every loss, over the global batch."""
    scores = similarity.cosine(a, b)
    relevance = torch.cos(keys[:, None] + 2.0 * keys[None, :])
    matches = losses.match_matrix(keys // 2, keys // 2)  # two captions of an image in one batch
    z, w = (g.sample_from(keyed_noise(2 * keys + side, 4, HIDDEN, seed=1)) for side, g in enumerate((a, b)))
    return {
        "daa": losses.DAA(0.05)(scores, relevance),
        "daa_released": losses.DAA(0.05, "released")(scores, relevance),
        "smooth_ap": losses.SmoothAP(0.05)(scores, matches),
        "soft_contrastive": losses.soft_contrastive(z, w, matches, scale=scale, shift=shift),
        "csd_contrastive": losses.csd_contrastive(a, b, matches.float(), scale=scale, shift=shift),
        "triplet": losses.triplet(scores, matches),
        "triplet_sum": losses.triplet(scores, matches, hardest=False),
        "info_nce": losses.info_nce(scores, matches),
        "sigmoid_pairwise": losses.sigmoid_pairwise(scores, matches, scale=scale, shift=shift),
        "mil": losses.mil(z, w, matches),
        "diversity": losses.diversity(z) + losses.diversity(w),
        "mmd": losses.mmd(a.mean, b.mean),
        "kl": losses.kl(a) + losses.kl(b),
        "uniformity": losses.uniformity(torch.cat([z, w])),
    }


def step(rank: int, sizes: list[int]) -> dict[str, Tensor]:
    """Gradients of every parameter under every loss, and the values, from this process's part of the batch."""
    total, start = sum(sizes), sum(sizes[:rank])
    mine = slice(start, start + sizes[rank])
    keys = torch.arange(100, 100 + total)
    data = torch.randn(2, total, DIM, generator=torch.Generator().manual_seed(1))
    model: nn.Module = Model()
    if dist.is_initialized():
        model = DistributedDataParallel(model, find_unused_parameters=True)
    result = {}
    for name in global_losses(*fake(), *[torch.tensor(1.0)] * 2):
        model.zero_grad()
        mean_a, log_var_a, mean_b, log_var_b, scale, shift = model(data[0, mine], data[1, mine])
        a, b = gather(Gaussian(mean_a, log_var_a)), gather(Gaussian(mean_b, log_var_b))
        loss = global_losses(a, b, gather(keys[mine]), scale, shift)[name]
        loss.backward()
        result[f"{name}/value"] = loss.detach()
        for key, parameter in model.named_parameters():
            if parameter.grad is not None:
                result[f"{name}/{key.removeprefix('module.')}"] = parameter.grad.clone()
    return result


def misfits(rank: int) -> dict[str, Tensor]:
    """The errors for parts that differ between the processes."""
    cases: list[tuple[Tensor | Gaussian, Tensor | Gaussian]] = [
        (torch.ones(2, 3), torch.ones(2, 4)),
        (torch.ones(2, 3), torch.ones(6)),
        (torch.tensor(1.0), torch.tensor(2.0)),
        (torch.ones(2, 3), torch.ones(2, 3).double()),
        (Gaussian.point(torch.ones(2, 3)), Gaussian(torch.ones(2, 3), torch.ones(2, 3))),
    ]
    errors = []
    for case in cases:
        try:
            gather(case[rank])
        except InputError as error:
            errors.append(str(error))
    return {"errors": torch.tensor(list("\n".join(errors).encode()), dtype=torch.uint8)}


def fake() -> tuple[Gaussian, Gaussian, Tensor]:
    """Something to read the names of the losses from."""
    g = Gaussian(torch.randn(4, HIDDEN), torch.zeros(4, HIDDEN))
    return g, g, torch.arange(4)


def main(rank: int, sizes: list[int], rendezvous: str, out: str, what: str) -> None:
    torch.set_num_threads(1)
    if len(sizes) > 1:
        dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=len(sizes))
    save_file(step(rank, sizes) if what == "losses" else misfits(rank), out)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(size) for size in sys.argv[2].split(",")], *sys.argv[3:])
