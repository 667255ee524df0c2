"""The visible loop, its loss terms, checkpoints and resuming."""

from __future__ import annotations

from halation.training._adamp import AdamP
from halation.training._loop import Place, Tell, quiet, train
from halation.training._objective import Learnt, Objective
from halation.training._processes import Processes, processes
from halation.training._run import Run
from halation.training._settings import Settings
from halation.training._terms import (
    CSD,
    DAA,
    KL,
    MMD,
    ByMember,
    Diversity,
    InfoNCE,
    Learns,
    Scored,
    Sigmoid,
    SoftContrastive,
    Spread,
    Step,
    Triplet,
    Uniformity,
)
from halation.training._validate import Validation, encode, measure
from halation.training._watch import TrainingStopped

__all__ = [
    "CSD",
    "DAA",
    "KL",
    "MMD",
    "AdamP",
    "ByMember",
    "Diversity",
    "InfoNCE",
    "Learns",
    "Learnt",
    "Objective",
    "Place",
    "Processes",
    "Run",
    "Scored",
    "Settings",
    "Sigmoid",
    "SoftContrastive",
    "Spread",
    "Step",
    "Tell",
    "TrainingStopped",
    "Triplet",
    "Uniformity",
    "Validation",
    "encode",
    "measure",
    "processes",
    "quiet",
    "train",
]
