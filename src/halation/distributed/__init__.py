"""Training on several processes: gather a batch with its gradients, and noise that does not depend on who draws it.

    images, captions = gather(images), gather(captions)      # the global batch, on every process
    loss = daa(similarity.cosine(images, captions), relevance_of_the_global_batch)

Every process computes the loss of the global batch; DistributedDataParallel averages the gradients, and they are then
those of one process that holds the whole batch.
"""

from __future__ import annotations

from halation.distributed._gather import gather
from halation.distributed._noise import keyed_noise

__all__ = ["gather", "keyed_noise"]
