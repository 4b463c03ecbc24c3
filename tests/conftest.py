"""What every test shares: one compiler cache, so that each temporary home does not compile the harness anew."""

import os
from pathlib import Path

os.environ.setdefault("CCACHE_DIR", str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "ccache"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
