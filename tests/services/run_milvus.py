"""Become a Milvus standalone server in a folder: run with the Python of the environment that has `milvus==2.3.5`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SERVER = Path(sys.prefix) / "milvus-server"  # the unpacked binaries, beside the package they come in


def unpack() -> None:
    """Unpack the server, once for all folders."""
    import milvus

    milvus._initialize_data_files(str(SERVER))


def configure(folder: Path) -> None:
    """Write the configuration; a second start keeps ports and paths."""
    import milvus

    if (folder / "configs" / "milvus.yaml").is_file():
        return
    config = milvus.MilvusServerConfig(data_dir=str(folder))
    for role in ("rootCoord", "proxy", "queryCoord", "queryNode", "indexNode", "dataCoord", "dataNode"):
        config.set(f"{role}.ip", "127.0.0.1")
    config.set("log.level", "warn")
    config.set("common.session.ttl", 5)  # a killed server's lease keeps the next one waiting
    config.resolve()


def become(folder: Path) -> None:
    """Run the server in this process, so that killing the one kills the other."""
    os.chdir(folder)
    binary = SERVER / "bin" / "milvus"
    own = {"DEPLOY_MODE": "STANDALONE", "METRICS_PORT": "9091", "MILVUS_RUN_DIR": str(folder / "run")}
    libraries = f"{binary.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    os.execve(binary, [str(binary), "run", "standalone"], os.environ | own | {"LD_LIBRARY_PATH": libraries})


if __name__ == "__main__":
    unpack()
    if len(sys.argv) > 1:
        here = Path(sys.argv[1]).absolute()
        configure(here)
        become(here)
