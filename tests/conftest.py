"""Fixtures that every ring of tests shares."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bamquery.storage.read_planner import processor_profile
from bamquery.storage.read_planner.corrections import Corrections
from bamquery.storage.read_planner.device_profile import ASSUMED, DeviceProfile
from tests.devices.kernels import waiting_for_kernels
from tests.forced_forms import FORMS, forced_form
from tests.selection.choice import CHOICES, Choice
from tests.selection.effort import go_far
from tests.selection.recorded_seconds import Recorder

# No test asserts on a clock, and every run draws the same examples.
settings.register_profile(
    "house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

REPOSITORY = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """What processes inherit where tests run, for these and for those that they start.

    Ctrl-C means something, which background jobs ignore; and modules are compiled once, which containers
    turn off: a command that is started then takes twice as long.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--long"):
        go_far()
    if config.getoption("--take"):
        config.pluginmanager.register(Choice(config.getoption("--take")))
    if config.getoption("--record-seconds") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep modules and tests away from the collector of garbage: they live as long as the process does.

    It would walk hundreds of thousands of objects while tests are collected, and whenever one of them asks
    for it.
    """
    gc.disable()
    try:
        result = yield
    finally:
        gc.enable()
        gc.freeze()
    return result


def pytest_unconfigure() -> None:
    """Let the process end as others do: libraries say what they find alive then."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device", default="cpu", help="where what is tested on every device runs: cpu (the default), cuda:0"
    )
    parser.addoption(
        "--form", choices=FORMS, help="tables are packed, all vectors in this form where it can hold them"
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="what is marked `long` goes on for longer: tests/selection/effort.py",
    )
    parser.addoption(
        "--take",
        choices=CHOICES,
        help="tests that take little; not much; some cases of each that takes more; the cases beyond those"
        " (tests/selection/choice.py)",
    )
    parser.addoption("--guests", action="store_true", help="boot QEMU guests: tests/guests/README.md")
    parser.addoption("--record-seconds", action="store_true", help="write down which tests take long")
    parser.addoption("--site", help="the folder of the built site, for tests that look at its pages")
    parser.addoption(
        "--pictures", help="a folder for the pictures that docs show, made by tests that look at them"
    )


@pytest.fixture(scope="session", autouse=True)
def assumed_volumes() -> Iterator[None]:
    """Tests count bytes: on every machine the same are written, and the same reads are planned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeviceProfile, "measure", classmethod(lambda cls, path, kind: ASSUMED[kind]))
        patch.setattr(processor_profile, "_known", [processor_profile.ASSUMED_PROCESSOR])
        patch.setattr(Corrections, "learn", lambda *_: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def form_of_vectors(request: pytest.FixtureRequest) -> Iterator[None]:
    """The form that `--form` asks for."""
    form = request.config.getoption("--form")
    with nullcontext() if form is None else forced_form(form):
        yield


@pytest.fixture(scope="session", autouse=True)
def kernels_are_awaited(device_name: str) -> Iterator[None]:
    """On a GPU programs compute what they can, from the first chunk on."""
    with waiting_for_kernels() if device_name.startswith("cuda") else nullcontext():
        yield


@pytest.fixture(scope="session")
def device_name(request: pytest.FixtureRequest) -> str:
    """The device that `--device` names, for tests of what every device does."""
    name = str(request.config.getoption("--device"))
    return "cuda:0" if name == "cuda" else name


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest) -> Path | None:
    """The folder that `--pictures` names."""
    folder = request.config.getoption("--pictures")
    return None if folder is None else Path(str(folder))


@pytest.fixture(scope="session")
def shared_taxi() -> Path:
    """Folder of real TLC files beside the checkout; the tests that want it are skipped without it."""
    folder = REPOSITORY.parent / "shared" / "data" / "taxi"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there: no full set of real taxi files on this machine")
    return folder
