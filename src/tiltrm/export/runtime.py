"""onnxruntime-web, the runtime of the page: a folder that is given, or the npm package, kept here.

`npm pack` fetches the package once and its checksum is checked; a site loads nothing from there.
"""

import base64
import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tiltrm.errors import DataError
from tiltrm.folders import replacing

VERSION = "1.30.0"
SHA512 = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
PACKAGE = f"onnxruntime-web@{VERSION}"
TIMEOUT = 300  # seconds of the download
BUILDS = {  # the files of each build: script, loader, WebAssembly
    "wasm": (
        "ort.wasm.min.mjs",
        "ort-wasm-simd-threaded.mjs",
        "ort-wasm-simd-threaded.wasm",
    ),
    "jspi": (
        "ort.jspi.min.mjs",
        "ort-wasm-simd-threaded.jspi.mjs",
        "ort-wasm-simd-threaded.jspi.wasm",
    ),
}
FILES = tuple(name for files in BUILDS.values() for name in files)


def find(given: Path | None = None) -> Path:
    """A folder with the FILES: the given one, else the one kept here, else a new download."""
    folder = given or cached_folder()
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing and given is not None:
        raise DataError(
            f"{given}: expected the folder `dist` of the npm package onnxruntime-web {VERSION}, "
            f"got one without {missing[0]}"
        )
    if missing:
        _download(folder)
    return folder


def cached_folder() -> Path:
    """Where a downloaded runtime is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tiltrm" / f"onnxruntime-web-{VERSION}"


def _download(folder: Path) -> None:
    """Fetch the package with npm, as it is configured here, and keep the FILES."""
    try:
        with tempfile.TemporaryDirectory() as place:
            subprocess.run(
                ["npm", "pack", PACKAGE, "--silent"], cwd=place, check=True, timeout=TIMEOUT,
                capture_output=True,
            )  # fmt: skip
            (packed,) = Path(place).glob("*.tgz")
            content = packed.read_bytes()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise DataError(
            f"expected npm to fetch {PACKAGE}, the page's runtime, got: {type(error).__name__}; "
            "fetch it elsewhere and give its folder `dist` with --runtime"
        ) from error
    found = base64.b64encode(hashlib.sha512(content).digest()).decode("ascii")
    if found != SHA512:
        raise DataError(f"{PACKAGE}: expected the checksum {SHA512[:16]}..., got {found[:16]}...")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive, replacing(folder) as fresh:
        for name in FILES:
            member = archive.extractfile(f"package/dist/{name}")
            assert member is not None  # the checksum says so
            (fresh / name).write_bytes(member.read())
