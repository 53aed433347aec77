import numpy as np

from bamquery.queries.measuring.footprint import footprint


def test_memory_of_its_own_is_counted() -> None:
    before = footprint("cpu")
    held = np.ones(8 << 20)
    after = footprint("cpu")
    # Other threads of this process may give back a little meanwhile.
    assert after["anonymous_bytes"] - before["anonymous_bytes"] > 0.7 * held.nbytes
    assert set(after) == {"anonymous_bytes", "shared_bytes"}
