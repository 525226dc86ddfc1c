"""What large answers free serves the next ones, with glibc."""

import subprocess
import sys

PROGRAM = """
import resource
from sidecar.memory import keep_freed

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def churn():
    for _ in range(20):
        chunks = [bytes(262_144) for _ in range(4)]
        del chunks

assert keep_freed()
churn()
before = faults()
churn()
print(faults() - before)
"""


def test_chunks_that_come_and_go_take_the_same_memory_again() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=True)
    assert int(ended.stdout) < 64, "one of the eighty chunks alone has 64 pages"


def test_what_the_start_left_is_no_business_of_the_collector() -> None:
    program = "import gc; from sidecar.memory import settle; settle(); print(gc.get_freeze_count())"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert int(ended.stdout) > 1000
