"""The app for an ASGI server: `uvicorn deploy.asgi:app`. Answers the first screen before anybody asks."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

# One process must not start a pool of BLAS threads a worker; NumPy reads this when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@contextlib.asynccontextmanager
async def _lifespan(_: st.App) -> AsyncIterator[dict[str, Any]]:
    warming = asyncio.create_task(_warm_up())
    yield {}
    warming.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await warming


async def _warm_up() -> None:
    """Run the first page once, as the start-up probe does: pages get known, modules imported, its answer computed."""
    from streamlit.runtime import Runtime

    await Runtime.instance().does_script_run_without_error()


app = st.App(ROOT / "app.py", lifespan=_lifespan)
