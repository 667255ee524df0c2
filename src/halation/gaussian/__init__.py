"""Waist 1: every image and every caption is a Gaussian with a diagonal covariance."""

from __future__ import annotations

from halation.gaussian._gaussian import Gaussian

__all__ = ["Gaussian"]
