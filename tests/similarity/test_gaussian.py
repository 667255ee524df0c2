"""Gaussians: log-variance throughout, slicing that keeps items together, files that hold what was saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from halation import Gaussian, InputError


def clouds(n: int = 6, d: int = 4, seed: int = 0) -> Gaussian:
    g = torch.Generator().manual_seed(seed)
    return Gaussian(torch.randn(n, d, generator=g), torch.randn(n, d, generator=g))


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_uncertainty_is_the_geometric_mean_of_the_standard_deviations() -> None:
    g = clouds()
    by_hand = [float(np.prod(row) ** (1 / 4)) for row in g.std.double().numpy()]
    assert g.uncertainty().tolist() == pytest.approx(by_hand, rel=1e-6)


def test_uncertainty_orders_as_the_determinant_of_the_covariance() -> None:
    g = clouds(50)
    determinants = torch.stack([torch.linalg.det(torch.diag(v)) for v in g.var.double()])
    assert torch.equal(g.uncertainty().argsort(), determinants.argsort())


def test_samples_have_the_mean_and_variance_of_their_gaussian() -> None:
    g = clouds(3, 2)
    z = g.sample(40_000, seeded())
    assert z.shape == (3, 40_000, 2)
    assert torch.allclose(z.mean(1), g.mean, atol=0.06)
    assert torch.allclose(z.var(1), g.var, rtol=0.05)


def test_one_seed_draws_the_same_samples() -> None:
    assert torch.equal(clouds().sample(3, seeded(7)), clouds().sample(3, seeded(7)))
    assert not torch.equal(clouds().sample(3, seeded(7)), clouds().sample(3, seeded(8)))


def test_gradients_flow_through_samples_to_mean_and_log_variance() -> None:
    mean = torch.zeros(2, 3, requires_grad=True)
    log_var = torch.zeros(2, 3, requires_grad=True)
    noise = torch.full((2, 5, 3), 2.0)
    Gaussian(mean, log_var).sample_from(noise).sum().backward()
    assert mean.grad is not None
    assert log_var.grad is not None
    assert torch.equal(mean.grad, torch.full((2, 3), 5.0))
    assert torch.equal(log_var.grad, torch.full((2, 3), 5.0))  # d(σ·2)/d log σ² = ½·2, five times


def test_a_point_has_no_variance_no_uncertainty_and_one_sample() -> None:
    g = Gaussian.point(torch.randn(3, 2))
    assert g.is_point
    assert g.log_var is None
    assert g.uncertainty().tolist() == [0.0, 0.0, 0.0]
    assert torch.equal(g.var, torch.zeros(3, 2))
    z = g.sample(4, seeded())
    assert z.shape == (3, 4, 2)
    assert torch.equal(z[:, 2], g.mean)


def test_a_head_that_emits_log_std_is_doubled_on_entry() -> None:
    g = Gaussian.from_log_std(torch.zeros(1, 2), torch.tensor([[0.5, -1.0]]))
    assert g.std.tolist()[0] == pytest.approx(np.exp([0.5, -1.0]))


def test_arrays_of_any_kind_become_points_and_gaussians_stay_themselves() -> None:
    g = clouds()
    assert Gaussian.of(g) is g
    for values in ([[1, 2], [3, 4]], np.ones((2, 2)), np.float32([[1, 2]]), torch.ones(2, 2)):
        assert Gaussian.of(values).is_point
    assert Gaussian.of(np.ones((2, 2))).mean.dtype == torch.float64
    assert Gaussian.of([[1, 2]]).mean.dtype == torch.float32


def test_reading_a_read_only_array_neither_warns_nor_shares(recwarn: pytest.WarningsRecorder) -> None:
    array = np.ones((2, 2), dtype=np.float32)
    array.flags.writeable = False
    Gaussian.of(array).mean.zero_()
    assert array.sum() == 4
    assert not recwarn.list


@given(st.data())
def test_slicing_takes_mean_and_variance_of_the_same_items(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    g = clouds(n)
    start, stop = data.draw(st.integers(-n, n)), data.draw(st.integers(-n, n))
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    picks = data.draw(st.lists(st.integers(0, n - 1), max_size=5))
    for index, rows in [
        (slice(start, stop), torch.arange(n)[start:stop]),
        (mask, mask.nonzero()[:, 0]),
        (mask.numpy(), mask.nonzero()[:, 0]),
        (picks, torch.tensor(picks, dtype=torch.long)),
        (torch.tensor(picks, dtype=torch.long), torch.tensor(picks, dtype=torch.long)),
        (np.array(picks, dtype=np.int64), torch.tensor(picks, dtype=torch.long)),
    ]:
        part = g[index]
        assert len(part) == len(rows)
        assert torch.equal(part.mean, g.mean[rows])
        assert part.log_var is not None
        assert g.log_var is not None
        assert torch.equal(part.log_var, g.log_var[rows])


def test_one_number_takes_one_item_and_iteration_ends() -> None:
    g = clouds(3)
    assert torch.equal(g[-1].mean, g.mean[2:])
    assert [len(item) for item in g] == [1, 1, 1]
    with pytest.raises(IndexError, match="item 3 of 3"):
        g[3]


def test_cat_of_the_parts_is_the_whole() -> None:
    g = clouds(7)
    whole = Gaussian.cat([g[:3], g[3:3], g[3:]])
    assert torch.equal(whole.mean, g.mean)
    assert whole.log_var is not None
    assert g.log_var is not None
    assert torch.equal(whole.log_var, g.log_var)
    assert Gaussian.cat([Gaussian.point(g.mean), Gaussian.point(g.mean)]).is_point


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("point", [True, False])
def test_a_file_holds_exactly_what_was_saved(tmp_path: Path, dtype: torch.dtype, point: bool) -> None:
    g = clouds().to(dtype)
    g = Gaussian.point(g.mean) if point else g[::2]
    g.save(tmp_path / "clouds.safetensors")
    back = Gaussian.load(tmp_path / "clouds.safetensors")
    assert torch.equal(back.mean, g.mean)
    assert back.mean.dtype == dtype
    assert (back.log_var is None) == point
    if g.log_var is not None and back.log_var is not None:
        assert torch.equal(back.log_var, g.log_var)
    assert [p.name for p in tmp_path.iterdir()] == ["clouds.safetensors"]


def test_a_damaged_or_foreign_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "clouds.safetensors"
    clouds().save(path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match=r"clouds\.safetensors is not a readable safetensors"):
        Gaussian.load(path)
    with pytest.raises(InputError, match="does not exist"):
        Gaussian.load(tmp_path / "absent.safetensors")
    with pytest.raises(InputError, match="is a folder"):
        Gaussian.load(tmp_path)
    from safetensors.torch import save_file

    save_file({"weight": torch.ones(2)}, path)
    with pytest.raises(InputError, match=r"holds \['weight'\]"):
        Gaussian.load(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(torch.ones(3), None), r"\(n, d\)"),
        (lambda: Gaussian(torch.ones(3, 2), torch.ones(3, 1)), r"\(3, 1\) but mean has \(3, 2\)"),
        (lambda: Gaussian.of([[1.0], [1.0, 2.0]]), "array of numbers"),
        (lambda: Gaussian.of(["a dog"]), "array of numbers"),
        (lambda: Gaussian.of(torch.ones(1, 1, dtype=torch.complex64)), "real numbers"),
        (lambda: Gaussian.cat([]), "at least one"),
        (lambda: Gaussian.cat([clouds(), Gaussian.point(torch.ones(1, 4))]), "points"),
        (lambda: Gaussian.cat([clouds(), clouds(d=5)]), r"\[4, 5\]"),
        (lambda: clouds().sample(0, seeded()), "at least 1"),
        (lambda: clouds().sample_from(torch.ones(6, 4)), r"\(6, k, 4\)"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


def test_detach_and_to_reach_both_tensors() -> None:
    g = Gaussian(torch.zeros(1, 1, requires_grad=True), torch.zeros(1, 1, requires_grad=True))
    assert g.detach().mean.requires_grad is False
    assert g.to(torch.float64).var.dtype == torch.float64


def test_a_number_in_a_tensor_or_array_gives_one_item_as_a_plain_number_does() -> None:
    g = clouds()
    for index in (torch.tensor(2), np.array(2), np.int64(2), torch.tensor(-4)):
        assert torch.equal(g[index].mean, g[2].mean)
        assert len(g[index]) == 1
    with pytest.raises(IndexError, match="item 6 of 6"):
        g[torch.tensor(6)]
