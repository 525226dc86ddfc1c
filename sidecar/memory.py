"""How the process deals with memory: what large answers free is kept for the next one, what the start left is not.

glibc gives freed memory at the end of its heap back to the system at once, as soon as it is more than two chunks of a
large answer, and the next chunk then costs a page fault every 4 kB: more than all the rest of its way through the
sidecar. Other C libraries are left as they are.
"""

import ctypes
import gc
from typing import Final

KEPT_BYTES: Final = 16 * 1024 * 1024
"""Most that is kept at the end of the heap."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_MMAP_THRESHOLD_BYTES: Final = 4 * 1024 * 1024
"""Smaller blocks come from the heap. A number of ours also stops glibc from finding its own."""


def keep_freed() -> bool:
    """Sets both limits for the process; False where the C library has no such thing."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    limits = ((_M_TRIM_THRESHOLD, KEPT_BYTES), (_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES))
    return all(mallopt(option, bytes_) == 1 for option, bytes_ in limits)


def settle() -> None:
    """Gives back what only the start needed; what is left then is there to stay, and the collector looks no more at it.

    To be called once, when the process is ready.
    """
    gc.collect()
    gc.freeze()
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
