"""Become a Milvus standalone server in a folder: run with the Python of the environment that has `milvus==2.3.5`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import milvus

folder = Path(sys.argv[1]).absolute()
if not (folder / "configs" / "milvus.yaml").is_file():  # a second start keeps ports and paths
    config = milvus.MilvusServerConfig(data_dir=str(folder))
    for role in ("rootCoord", "proxy", "queryCoord", "queryNode", "indexNode", "dataCoord", "dataNode"):
        config.set(f"{role}.ip", "127.0.0.1")
    config.set("log.level", "warn")
    config.set("common.session.ttl", 5)  # a killed server's lease keeps the next one waiting
    config.resolve()
    milvus._initialize_data_files(str(folder))
binary = folder / "bin" / "milvus"
os.chdir(folder)
os.execve(
    binary,
    [str(binary), "run", "standalone"],
    os.environ
    | {"DEPLOY_MODE": "STANDALONE", "METRICS_PORT": "9091", "MILVUS_RUN_DIR": str(folder / "run")}
    | {"LD_LIBRARY_PATH": f"{folder / 'bin'}:{os.environ.get('LD_LIBRARY_PATH', '')}"},
)
