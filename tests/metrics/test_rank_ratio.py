"""The expected ratio of two ranks against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halation import InputError
from halation.metrics import asp, rank_ratio
from halation.metrics._rank_ratio import expected_ratio, harmonic_numbers

N = 30_000
SCALE = 1 << 200


@pytest.fixture(scope="module")
def exact_harmonic() -> list[int]:
    """H_0 … H_N times 2^200, to 180 bits and more."""
    numbers = [0]
    for k in range(1, N + 1):
        numbers.append(numbers[-1] + SCALE // k)
    return numbers


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    return harmonic_numbers(N)


def double_loop(a: int, b: int, c: int, d: int) -> Fraction:
    ratios = [Fraction(min(r, s), max(r, s)) for r in range(a, b + 1) for s in range(c, d + 1)]
    return sum(ratios, Fraction(0)) / len(ratios)


def single_loop(a: int, b: int, c: int, d: int, harmonic: list[int]) -> Fraction:
    total = 0  # times 2^200
    for r in range(a, b + 1):
        if r >= c:
            low = min(d, r)
            total += SCALE * ((low - c + 1) * (c + low) // 2) // r
        if r < d:
            total += r * (harmonic[d] - harmonic[max(c, r + 1) - 1])
    return Fraction(total, SCALE * (b - a + 1) * (d - c + 1))


ranges = st.tuples(st.integers(1, 25), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(deadline=None)
@given(ranges, ranges)
def test_the_closed_form_equals_the_double_sum(
    table: np.ndarray, exact_harmonic: list[int], one: tuple[int, int], other: tuple[int, int]
) -> None:
    expected = double_loop(*one, *other)
    assert abs(Fraction(expected_ratio(*one, *other, table)) - expected) < Fraction(1, 10**14)
    assert abs(single_loop(*one, *other, exact_harmonic) - expected) < Fraction(1, 10**50)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, N), (1, N)),
        ((1, N), (N, N)),
        ((1, N), (1, 1)),
        ((N - 1, N), (N - 1, N)),
        ((N - 32, N - 1), (N - 31, N)),
        ((N - 33, N), (N - 33, N)),
        ((N - 40, N), (N - 90, N - 3)),
        ((N - 5000, N), (N - 5000, N)),
        ((1, N - 1), (N, N)),
        ((1, 17), (N - 1, N)),
        ((20_000, 20_033), (20_001, 20_034)),
        ((5_000, 29_000), (4_999, 29_001)),
        ((12_345, 12_346), (1, N)),
    ],
)
def test_twelve_digits_are_right_at_rank_thirty_thousand(
    table: np.ndarray, exact_harmonic: list[int], one: tuple[int, int], other: tuple[int, int]
) -> None:
    expected = single_loop(*one, *other, exact_harmonic)
    for value in (expected_ratio(*one, *other, table), expected_ratio(*other, *one, table)):
        assert abs(Fraction(value) - expected) < Fraction(1, 10**12)


def test_ranks_without_ties_give_their_own_ratio(table: np.ndarray) -> None:
    assert expected_ratio(29_999, 29_999, 30_000, 30_000, table) == pytest.approx(29_999 / 30_000, abs=1e-15)
    assert expected_ratio(7, 7, 7, 7, table) == 1


def test_harmonic_numbers_are_right_to_twenty_five_digits(table: np.ndarray, exact_harmonic: list[int]) -> None:
    for k in (0, 1, 2, 3, 10, 999, 29_999, 30_000):
        value = Fraction(table[k, 0]) + Fraction(table[k, 1])
        assert abs(value - Fraction(exact_harmonic[k], SCALE)) < Fraction(1, 10**25)


@given(st.permutations(range(9)), st.permutations(range(9)))
def test_the_mean_ratio_of_two_rankings_is_their_asp(scores: list[int], relevance: list[int]) -> None:
    by_score, by_relevance = (np.argsort(np.argsort(-np.array(values))) + 1 for values in (scores, relevance))
    assert rank_ratio(by_score, by_relevance).mean() == pytest.approx(asp([scores], [relevance])[0])


@pytest.mark.parametrize(
    ("ranks", "message"),
    [([0, 1], "count from 1"), ([[3, 2], [1, 1]], "the first rank before the last"), ([0.5, 1], "whole numbers")],
)
def test_what_is_not_a_rank_is_refused(ranks: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rank_ratio(ranks, [1, 2])


def test_ranks_are_compared_item_by_item() -> None:
    with pytest.raises(InputError, match="2 ranks to compare with 3"):
        rank_ratio([1, 2], [1, 2, 3])
