"""A committee: separate members, whose mean score is that of the joined points."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from halation._errors import InputError
from halation.data import Features
from halation.encoders import Committee, PointHead
from halation.similarity import Gaussian, cosine


def features(n: int = 3, seed: int = 0) -> Features:
    draw = torch.Generator().manual_seed(seed)
    return Features(torch.randn(n, 8, generator=draw), torch.randn(n, 5, 6, generator=draw))


def committee(members: int = 3, dropout: float = 0.0) -> Committee:
    return Committee(lambda: PointHead(8, 4, dropout, "attended", local_dim=6, heads=2), members)


def test_the_cosine_of_the_joined_points_is_the_mean_of_the_members() -> None:
    head = committee().eval()
    images, captions = features(seed=1), features(n=4, seed=2)
    each = [cosine(member(images), member(captions)) for member in head.members]
    torch.testing.assert_close(cosine(head(images), head(captions)), torch.stack(each).mean(0))
    torch.testing.assert_close(head(images).mean.norm(dim=1), torch.ones(3))


def test_the_members_come_out_of_the_joined_points_again() -> None:
    head = committee().eval()
    parts = Committee.split(head(features()), 3)
    for member, points in zip(head.members, parts, strict=True):
        torch.testing.assert_close(points.mean, member(features()).mean)
    for wrong in (5, 0, -2):
        with pytest.raises(InputError, match=f"12 numbers cannot be split equally among {wrong} members"):
            Committee.split(head(features()), wrong)
    with pytest.raises(InputError, match="these are Gaussians with a variance"):
        Committee.split(Gaussian(torch.zeros(2, 4), torch.zeros(2, 4)), 2)


def test_members_begin_and_drop_apart() -> None:
    head = committee(members=2, dropout=0.5).train()
    first, second = (member.fc.weight for member in head.members)  # type: ignore[union-attr]
    assert not torch.equal(first, second)  # type: ignore[arg-type]
    with torch.no_grad():
        for pair in zip(head.members[0].parameters(), head.members[1].parameters(), strict=True):
            pair[1].copy_(pair[0])
    one, other = Committee.split(head(features()), 2)
    assert not torch.allclose(one.mean, other.mean)  # the same weights, and what is left out is not the same


def test_every_members_attention_is_shown() -> None:
    attentions = committee(members=2).attentions(features())
    assert set(attentions) == {"means"} and attentions["means"].shape == (3, 4, 5)
    head = committee(members=2)
    each = [member.attentions(features())["means"] for member in head.members]  # type: ignore[operator]
    torch.testing.assert_close(head.attentions(features())["means"], torch.cat(each, dim=1))
    plain = Committee(lambda: PointHead(8, 4), 2)
    assert plain.attentions(features()) == {}


def test_one_member_is_its_head_and_none_is_refused() -> None:
    head = committee(members=1)
    torch.testing.assert_close(head(features()).mean, head.members[0](features()).mean)
    with pytest.raises(InputError, match="at least one member, not 0"):
        committee(members=0)


def test_a_gradient_reaches_every_member() -> None:
    head = committee()
    target = Gaussian.point(normalize(torch.randn(3, 12), dim=1))
    cosine(head(features()), target).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in head.parameters())
