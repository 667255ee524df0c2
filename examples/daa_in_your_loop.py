"""DAA inside a training loop of your own: a toy two-tower model learns to rank all captions by meaning.

    python examples/daa_in_your_loop.py

Each toy "image" and "caption" is a few numbers that lie near a hidden topic; a caption is as relevant to an image as
their topics are close. A contrastive loss alone pulls the one annotated caption up; with DAA the whole ranking follows
the meaning. Only the three marked lines are needed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import halation

TOPIC, WIDTH, BATCH, STEPS = 4, 32, 64, 100


def batch(generator: torch.Generator, world: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Features of images and captions (B, 16), and the relevance of every caption to every image (B, B)."""
    topic = torch.randn(BATCH, TOPIC, generator=generator)
    noise = torch.randn(2, BATCH, 16, generator=generator)
    images, captions = topic @ world[0] + 0.3 * noise[0], topic @ world[1] + 0.3 * noise[1]
    return images, captions, torch.exp(-torch.cdist(topic, topic))


class TwoTowers(nn.Module):
    """Your model: anything that gives a (B, B) matrix of scores."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.text = nn.Sequential(nn.Linear(16, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def similarity(self, images: Tensor, captions: Tensor) -> Tensor:
        unit = nn.functional.normalize
        return unit(self.image(images), dim=1) @ unit(self.text(captions), dim=1).T


def train(weight: float, seed: int = 0) -> tuple[float, float]:
    """R@1 and ASP (in %, unseen batches, image to text) of a model trained with `weight` × DAA beside its own loss."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    world = torch.randn(2, TOPIC, 16, generator=generator)
    my_model = TwoTowers()
    optimizer = torch.optim.AdamW(my_model.parameters(), lr=3e-3)
    daa = halation.losses.DAA(temperature=0.01)  # 1
    for _ in range(STEPS):
        images, captions, relevance = batch(generator, world)
        scores = my_model.similarity(images, captions)  # 2: (B, B), yours
        my_loss = nn.functional.cross_entropy(scores / 0.1, torch.arange(BATCH))
        loss = my_loss + weight * daa(scores, relevance)  # 3: relevance (B, B), from halation.semantics or anywhere
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    hits, asps = [], []
    with torch.no_grad():
        for _ in range(5):
            images, captions, relevance = batch(generator, world)
            scores = my_model.similarity(images, captions)
            hits.append(halation.metrics.hit_at(scores, torch.eye(BATCH, dtype=torch.bool), k=1).mean())
            asps.append(halation.metrics.asp(scores, relevance).mean())
    return 100 * float(sum(hits) / 5), 100 * float(sum(asps) / 5)


def main() -> None:
    print("weight of DAA    R@1    ASP")
    for weight in (0.0, 5.0):
        hit, asp = train(weight)
        print(f"{weight:13.1f}  {hit:5.1f}  {asp:5.1f}")


if __name__ == "__main__":
    main()
