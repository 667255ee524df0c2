"""Truth: what is relevant to what, made in four ways, cut and fingerprinted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import coo_array, csr_array

from halation.data import Truth

CAPTIONS = ["a dog on grass", "a brown dog", "two cats", "a bus", "a red bus", "a bus at a stop"]
IMAGE_OF = [0, 0, 1, 2, 2, 2]
WAYS = ["i2t", "t2i"]


def small(**options: object) -> Truth:
    return Truth.from_captions(CAPTIONS, IMAGE_OF, image_ids=["dog.jpg", "cat.jpg", "bus.jpg"], **options)


@st.composite
def belongings(draw: st.DrawFn) -> list[int]:
    """image_of for a few images, each with one to four captions, in any order."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    return draw(st.permutations([image for image, count in enumerate(counts) for _ in range(count)]))


@given(belongings())
def test_a_caption_is_relevant_to_its_own_image_and_to_no_other(image_of: list[int]) -> None:
    truth = Truth.from_captions([f"caption {k}" for k in range(len(image_of))], image_of)
    loop = [[image_of[k] == image for k in range(len(image_of))] for image in range(max(image_of) + 1)]
    assert truth.positives("i2t").tolist() == loop
    assert truth.positives("t2i").tolist() == np.array(loop).T.tolist()
    assert truth.n_positives("i2t").tolist() == np.bincount(image_of).tolist()
    assert truth.binary


@given(belongings())
def test_captions_and_their_pairs_say_the_same(image_of: list[int]) -> None:
    captions = [f"caption {k}" for k in range(len(image_of))]
    by_caption = Truth.from_captions(captions, image_of)
    by_pair = Truth.from_pairs([(image, k) for k, image in enumerate(image_of)], captions=captions, image_of=image_of)
    by_class = Truth.from_classes(list(range(max(image_of) + 1)), image_of=image_of, captions=captions)
    assert by_caption.fingerprint() == by_pair.fingerprint() == by_class.fingerprint()


def test_pairs_by_id_equal_pairs_by_index_and_repeats_change_nothing() -> None:
    ids = Truth.from_pairs([("b", 7), ("a", 9), ("b", 7)], image_ids=["a", "b"], caption_ids=[7, 8, 9])
    indices = Truth.from_pairs(np.array([[1, 0], [0, 2]]), n_images=2, n_captions=3)
    assert np.array_equal(ids.gains("i2t"), indices.gains("i2t"))
    assert ids.pairs("t2i").tolist() == [[0, 1], [2, 0]]


def test_items_in_no_pair_stay_in_the_gallery_but_need_not_be_asked() -> None:
    truth = Truth.from_pairs([(0, 0), (1, 2)], n_images=3, n_captions=4)
    assert truth.queries("i2t").tolist() == [0, 1, 2]
    answerable = truth.answerable()
    assert answerable.queries("i2t").tolist() == [0, 1]
    assert answerable.queries("t2i").tolist() == [0, 2]
    assert (answerable.n_images, answerable.n_captions) == (3, 4)
    assert answerable.query_notes == (
        "1 i2t queries without a positive are left out",
        "2 t2i queries without a positive are left out",
    )
    assert small().answerable().image_queries is None


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(0, 1, width=32)),
    st.floats(0.0625, 1, width=32),
)
def test_graded_gains_survive_storage_and_positives_are_those_that_reach_the_threshold(
    gains: np.ndarray, threshold: float
) -> None:
    truth = Truth.from_graded(gains, threshold=threshold)
    assert np.array_equal(truth.gains("i2t"), gains)
    assert np.array_equal(truth.gains("t2i"), gains.T)
    loop = [[bool(value >= np.float32(threshold)) for value in row] for row in gains]
    assert truth.positives("i2t").tolist() == loop
    assert truth.n_positives("i2t").tolist() == [sum(row) for row in loop]
    assert truth.n_positives("t2i").tolist() == [sum(column) for column in zip(*loop, strict=True)]
    assert truth.pairs("i2t").tolist() == [[i, k] for i, row in enumerate(loop) for k, yes in enumerate(row) if yes]


def test_dense_sparse_and_torch_grades_are_one_truth() -> None:
    gains = np.array([[0.0, 0.5, 1.0], [0.25, 0.0, 0.0]])
    prints = {
        Truth.from_graded(matrix, threshold=0.5).fingerprint()
        for matrix in (gains, gains.tolist(), csr_array(gains), coo_array(gains), torch.tensor(gains))
    }
    assert len(prints) == 1
    assert not Truth.from_graded(gains).binary


def test_making_a_truth_leaves_the_callers_matrix_alone() -> None:
    gains = csr_array(np.array([[0.0, 1.0], [2.0, 0.0]], dtype=np.float32))
    gains.data[0] = 0  # a stored zero, which the truth's own copy drops
    Truth.from_graded(gains)
    assert gains.nnz == 2


def test_a_gain_of_zero_is_no_gain_however_it_is_stored() -> None:
    stored = csr_array((np.array([0.0, 1.0]), ([0, 1], [0, 1])), shape=(2, 2))
    assert Truth.from_graded(stored).fingerprint() == Truth.from_graded([[0.0, 0.0], [0.0, 1.0]]).fingerprint()
    assert Truth.from_graded(stored).binary


@given(hnp.arrays(np.bool_, st.tuples(st.integers(1, 8), st.just(4))), st.integers(0, 4), st.integers(0, 2**32))
def test_class_codes_match_within_their_hamming_distance(codes: np.ndarray, zeta: int, seed: int) -> None:
    captions = np.random.default_rng(seed).integers(0, 2, (5, 4)).astype(bool)
    truth = Truth.from_classes(codes, captions, zeta=zeta)
    loop = [[int((a != b).sum()) <= zeta for b in captions] for a in codes]
    assert truth.positives("i2t").tolist() == loop


def test_labels_match_when_equal_whatever_their_type() -> None:
    names = Truth.from_classes(["wren", "gull", "wren"], ["gull", "wren"])
    numbers = Truth.from_classes(torch.tensor([3, 1, 3]), [1, 3])
    assert names.positives("i2t").tolist() == [[False, True], [True, False], [False, True]]
    assert names.fingerprint() == numbers.fingerprint()


def test_class_names_become_codes_and_images_without_any_are_not_annotated() -> None:
    truth = small(classes=[["dog", "grass"], [], ["bus"]])
    assert truth.class_names == ("bus", "dog", "grass")
    assert truth.classes is not None
    assert truth.classes.tolist() == [[False, True, True], [False, False, False], [True, False, False]]
    assert truth.annotated is not None
    assert truth.annotated.tolist() == [True, False, True]
    assert truth.caption_classes is not None
    assert truth.caption_classes.tolist() == [truth.classes[image].tolist() for image in IMAGE_OF]
    assert small(classes=truth.classes, class_names=truth.class_names).class_names == truth.class_names


def test_annotated_images_may_be_named_apart_from_their_codes() -> None:
    truth = small(classes=np.ones((3, 2), dtype=int)).replace(annotated=np.array([True, False, True]))
    assert truth.annotated is not None
    assert truth.annotated.tolist() == [True, False, True]


def test_new_classes_bring_their_own_names_and_annotations() -> None:
    truth = small(classes=[["dog"], [], ["bus"]]).replace(classes=[["animal"], ["animal"], []])
    assert truth.class_names == ("animal",)
    assert truth.annotated is not None
    assert truth.annotated.tolist() == [True, True, False]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [[2, 0], np.array([1]), slice(0, 2)])
def test_a_block_of_rows_is_those_rows_of_the_whole(way: str, rows: object) -> None:
    truth = small()
    assert np.array_equal(truth.positives(way, rows), truth.positives(way)[rows])
    assert truth.gains(way, rows).dtype == np.float32


def test_a_mask_asks_for_the_rows_it_marks() -> None:
    assert np.array_equal(small().gains("i2t", np.array([True, False, True])), small().gains("i2t")[[0, 2]])


@given(belongings(), st.data())
def test_a_subset_keeps_names_texts_classes_and_relevance_of_what_it_keeps(
    image_of: list[int], data: st.DataObject
) -> None:
    n_images = max(image_of) + 1
    captions = [f"caption {k}" for k in range(len(image_of))]
    truth = Truth.from_captions(captions, image_of, classes=np.eye(n_images, dtype=int))
    images = data.draw(st.lists(st.integers(0, n_images - 1), min_size=1, unique=True))
    part, columns = truth.subset(images), truth.captions_of(images)
    assert part.image_ids == tuple(images)
    assert part.captions == tuple(captions[k] for k in columns)
    assert part.caption_ids == tuple(columns)
    assert part.image_of is not None
    assert [images[k] for k in part.image_of] == [image_of[k] for k in columns]
    assert np.array_equal(part.positives("i2t"), truth.positives("i2t")[np.ix_(images, columns)])
    assert np.array_equal(part.positives("t2i"), truth.positives("t2i")[np.ix_(columns, images)])
    assert part.classes is not None
    assert part.classes.argmax(axis=1).tolist() == images


@given(belongings())
def test_the_subset_of_everything_is_the_same_truth(image_of: list[int]) -> None:
    truth = Truth.from_captions([f"caption {k}" for k in range(len(image_of))], image_of)
    assert truth.subset(range(truth.n_images)).fingerprint() == truth.fingerprint()


def test_declared_queries_follow_into_a_subset_and_leave_when_their_answers_do() -> None:
    # caption 3 of the bus answers the dog only; caption 5 answers the bus
    t2i = csr_array(np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]))
    truth = small().replace(t2i=t2i, caption_queries=[0, 3, 5], image_queries=[2])
    part = truth.subset([1, 2])
    assert [part.caption_ids[k] for k in part.queries("t2i")] == [5]
    assert [part.image_ids[k] for k in part.queries("i2t")] == ["bus.jpg"]
    assert part.query_notes == ("1 t2i queries without a positive are left out",)


def test_captions_may_be_chosen_apart_from_the_images() -> None:
    part = small().subset([0, 2], captions=[0, 3, 2])
    assert part.positives("i2t").tolist() == [[True, False, False], [False, True, False]]
    assert part.image_of is None
    assert small().subset([0, 2], captions=[0, 3]).image_of is not None


def test_positives_lost_to_the_gallery_count_only_in_the_whole_gallery() -> None:
    truth = small().replace(lost_i2t=[0, 2, 0])
    assert truth.lost("i2t").tolist() == [0, 2, 0]
    assert truth.lost("t2i").tolist() == [0] * 6
    assert truth.subset([2, 1, 0]).lost("i2t").tolist() == [0, 2, 0]
    assert truth.subset([1, 0]).lost("i2t").tolist() == [0, 0]


def test_two_directions_may_disagree() -> None:
    truth = small().replace(t2i=csr_array(np.ones((6, 3))))
    assert truth.n_positives("i2t").sum() == 6
    assert truth.n_positives("t2i").sum() == 18


def test_a_new_image_to_text_relevance_brings_its_transpose_along() -> None:
    truth = small().replace(i2t=csr_array(np.ones((3, 6))))
    assert truth.positives("t2i").all()


def test_the_fingerprint_changes_with_everything_that_is_measured_against_and_with_nothing_else() -> None:
    truth = small()
    same = [
        small(),
        truth.replace(name="other", notes=("note",), query_notes=("note",)),
        truth.replace(caption_queries=range(6)),
    ]
    same.append(truth.replace(kind="pairs"))
    other = [
        Truth.from_captions(CAPTIONS, IMAGE_OF),  # other image ids
        small(caption_ids=list("abcdef")),
        truth.replace(caption_queries=[0, 1]),
        truth.replace(threshold=0.5),
        truth.replace(lost_i2t=[1, 0, 0]),
        truth.replace(i2t=truth.i2t * 0.5),
        truth.replace(t2i=csr_array(np.ones((6, 3)))),
        truth.replace(captions=["another dog", *CAPTIONS[1:]]),
        truth.replace(captions=None),
        truth.replace(image_of=[0, 1, 1, 2, 2, 2]),
        truth.replace(image_of=None),
        truth.replace(classes=np.eye(3)),
        truth.replace(classes=np.eye(3)[::-1]),
        truth.replace(classes=np.eye(3), class_names=("bus", "cat", "dog")),
        truth.replace(classes=np.eye(3), annotated=np.array([True, True, False])),
        truth.replace(classes=np.zeros((3, 2)), annotated=np.ones(3, dtype=bool)),
        truth.replace(classes=np.zeros((3, 2))),
    ]
    assert {each.fingerprint() for each in same} == {truth.fingerprint()}
    assert len({each.fingerprint() for each in [truth, *other]}) == len(other) + 1


def test_the_order_of_the_classes_does_not_matter_to_the_fingerprint() -> None:
    codes = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 1]])
    one = small(classes=codes, class_names=["a", "b", "c"])
    assert small(classes=codes[:, ::-1], class_names=["c", "b", "a"]).fingerprint() == one.fingerprint()
    assert small(classes=codes, class_names=["c", "b", "a"]).fingerprint() != one.fingerprint()


def test_a_truth_knows_what_kind_of_relevance_it_carries_whatever_its_name() -> None:
    kinds = {
        "captions": small(name="cxc"),
        "pairs": Truth.from_pairs([(0, 0), (1, 1)], n_captions=3, image_of=[0, 1, 1], name="x"),
        "graded": Truth.from_graded([[1.0, 0.2], [0.0, 0.6]], image_of=[0, 1], name="x"),
        "classes": Truth.from_classes(["wren", "gull"], image_of=[0, 1, 1], name="x"),
    }
    for kind, truth in kinds.items():
        assert truth.kind == kind
        assert truth.subset([1]).kind == truth.answerable().kind == truth.replace(name="eccv").kind == kind


def test_the_fingerprint_is_the_same_on_every_machine() -> None:
    assert small().fingerprint() == "bc7a5b964388f2b11ab4e58e61e8ad598e955a93f64ca291ef59722b5a3620bb"


def test_a_truth_introduces_itself_with_its_numbers() -> None:
    assert repr(small()) == "Truth('captions': 3 images, 6 captions, 6 positives i2t, 6 t2i, 3 + 6 queries)"
