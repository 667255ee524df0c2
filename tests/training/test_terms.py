"""The terms of a training loss: what they compare, how they are normalised, what they refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from halation import losses, similarity, training
from halation._errors import InputError
from halation.encoders import MultiEmbedding, best_cosine
from halation.similarity import Gaussian
from halation.training._terms import ByMember, Learnt


def step(n: int = 6, d: int = 4, number: int = 3, clouds: bool = True, seed: int = 0) -> training.Step:
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: torch.nn.functional.normalize(torch.randn(n, d, generator=generator), dim=1)  # noqa: E731
    sides = [Gaussian(draw(), torch.full((n, d), -4.0) if clouds else None) for _ in range(2)]
    matches = torch.eye(n, dtype=torch.bool)
    relevance = torch.rand(n, n, generator=generator)
    return training.Step(sides[0], sides[1], similarity.cosine, matches, lambda: relevance, 7, number)


def test_daa_adds_its_directions_and_weighs_the_second() -> None:
    s = step()
    rows, columns = (losses.daa(x, r, 0.05) for x, r in ((s.scores, s.relevance), (s.scores.T, s.relevance.T)))
    assert torch.isclose(training.DAA(temperature=0.05).build()(s), rows + columns)
    assert torch.isclose(training.DAA(temperature=0.05, t2i=3.0).build()(s), rows + 3 * columns)


def test_the_triplet_is_per_match_and_takes_all_negatives_first() -> None:
    s = step(n=8)
    term = training.Triplet(margin=0.2, sum_steps=4).build()
    summed = losses.triplet(s.scores, s.matches, 0.2, hardest=False)
    assert torch.isclose(term(s), summed / 64)
    late = step(n=8, number=4)
    assert torch.isclose(term(late), losses.triplet(late.scores, late.matches, 0.2) / 8)


def test_monte_carlo_noise_depends_on_seed_and_step_and_differs_between_sides() -> None:
    one, again, later, other = step(), step(), step(number=4), step()
    a, b = one.samples(5)
    assert torch.equal(a, again.samples(5)[0]) and not torch.equal(a, later.samples(5)[0])
    assert isinstance(other.images, Gaussian) and isinstance(other.captions, Gaussian)
    noise = [
        (x - g.mean[:, None]) / g.std[:, None] for x, g in zip((a, b), (other.images, other.captions), strict=True)
    ]
    assert not torch.allclose(noise[0], noise[1])


def test_soft_contrastive_and_csd_are_summed_over_an_images_pairs() -> None:
    s = step()
    a, b = s.samples(7)
    assert torch.isclose(
        training.SoftContrastive(scale=5.0, shift=5.0).build()(s),
        6 * losses.soft_contrastive(a, b, s.matches, scale=5.0, shift=5.0),
    )
    clouds = s.gaussians()
    assert torch.isclose(training.CSD().build()(s), 6 * losses.csd_contrastive(*clouds, s.matches.float()))


def test_csd_labels_an_unannotated_pair_by_a_share_of_its_probability() -> None:
    s = replace(step(), find_probability=lambda: torch.full((6, 6), 0.5))
    labels = torch.full((6, 6), 0.2).fill_diagonal_(1.0)
    soft = training.CSD(unannotated=0.4).build()(s)
    assert torch.isclose(soft, 6 * losses.csd_contrastive(*s.gaussians(), labels))
    assert not torch.isclose(soft, training.CSD().build()(s))


def test_soft_labels_need_a_probability_and_a_share_of_at_most_one() -> None:
    with pytest.raises(InputError, match="must know the probability that people accept a caption"):
        training.CSD(unannotated=0.4).build()(step())
    with pytest.raises(InputError, match=r"loss\.csd\.unannotated is 1\.5; it must be at most 1"):
        training.CSD(unannotated=1.5)


def test_regularisers_look_at_both_sides() -> None:
    s = step()
    images, captions = s.gaussians()
    assert torch.isclose(training.KL().build()(s), losses.kl(images) + losses.kl(captions))
    together = torch.cat([images.mean, captions.mean])
    assert torch.isclose(training.Uniformity().build()(s), losses.uniformity(together))
    sides = [MultiEmbedding(torch.randn(5, 2, 4), torch.randn(5, 2, 4)) for _ in range(2)]
    several = training.Step(sides[0], sides[1], best_cosine, torch.eye(5, dtype=torch.bool), lambda: torch.eye(5), 0, 0)
    both = losses.diversity(sides[0].residuals) + losses.diversity(sides[1].residuals)
    assert torch.isclose(training.Diversity().build()(several), both)
    assert torch.isclose(training.MMD().build()(several), losses.mmd(sides[0].points, sides[1].points))


def test_a_term_that_does_not_fit_the_model_says_which_head_would() -> None:
    with pytest.raises(InputError, match="take the head pvse"):
        training.Diversity().build()(step())
    sides = MultiEmbedding(torch.randn(5, 2, 4), torch.randn(5, 2, 4))
    several = training.Step(sides, sides, best_cosine, torch.eye(5, dtype=torch.bool), lambda: torch.eye(5), 0, 0)
    with pytest.raises(InputError, match="needs Gaussians"):
        training.KL().build()(several)


def test_infonce_keeps_its_temperature_above_a_hundredth() -> None:
    term = training.InfoNCE(temperature=1e-4).build()
    s = step()
    assert torch.isclose(term(s), losses.info_nce(s.scores, s.matches, 0.01))


def joined(members: list[training.Step]) -> training.Step:
    """The step of a committee of these."""
    first, m = members[0], len(members)
    sides = [
        Gaussian.point(torch.cat([side.mean for side in part], dim=1) / m**0.5)
        for part in zip(*(member.gaussians() for member in members), strict=True)
    ]
    return training.Step(sides[0], sides[1], similarity.cosine, first.matches, first.find_relevance, 7, first.number)


@pytest.mark.parametrize("settings", [training.InfoNCE(), training.Triplet(), training.Sigmoid()])
def test_each_member_of_a_committee_has_a_loss_of_its_own(settings: training.Term) -> None:
    term = settings.build()
    alone = [step(clouds=False, seed=seed) for seed in range(3)]
    together = ByMember(term, 3)
    assert torch.isclose(together(joined(alone)), torch.stack([term(member) for member in alone]).mean())
    assert not torch.isclose(together(joined(alone)), term(joined(alone)))
    assert together.learnt() == (term.learnt() if isinstance(term, Learnt) else {})
