import numpy as np

from bamquery.queries.generator.hashing import bits, key, random_words


def test_known_values_of_splitmix64() -> None:
    # The first outputs of SplitMix64 seeded with 0, as published with the algorithm; row 1 is the first step.
    words = random_words(0, np.arange(1, 4, dtype=np.uint64))
    assert [int(word) for word in words] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_rows_decide_not_their_company() -> None:
    rows = np.arange(1000, dtype=np.uint64)
    together = random_words(7, rows)
    np.testing.assert_array_equal(together[::-3], random_words(7, rows[::-3]))


def test_streams_and_seeds_differ() -> None:
    rows = np.arange(1000, dtype=np.uint64)
    keys = [key(seed, stream) for seed in (0, 1, -1, 2**70) for stream in ("a", "b", "ab", "")]
    assert len(set(keys)) == len(keys)
    first, second = (random_words(stream, rows) for stream in keys[:2])
    assert not np.any(first == second)
    share = bits(first, 0, 20) * 2.0**-20, bits(second, 0, 20) * 2.0**-20
    assert abs(np.corrcoef(*share)[0, 1]) < 0.1


def test_bits_are_uniform_everywhere_in_the_word() -> None:
    words = random_words(key(1, "x"), np.arange(100_000, dtype=np.uint64))
    for low in range(0, 64, 4):
        counts = np.bincount(bits(words, low, 4), minlength=16)
        assert np.all(np.abs(counts - 6250) < 5 * np.sqrt(6250)), low
