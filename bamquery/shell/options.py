"""What commands change and statements look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from bamquery.output.display_options import DisplayOptions

PAGER_CHOICES: Final = ("auto", "on", "off")
EDITING_MODES: Final = ("emacs", "vi")


@dataclass
class ShellOptions:
    """The shell's state that is not the database's.

    Attributes:
        display: how answers are written.
        pager: `auto` where an answer is wider or longer than the screen, `on` for each, `off`, or a command
            that reads them.
        editing: whose keys the prompt has, `emacs` or `vi`.
        completing: whether completions come while one types, and not only by TAB.
    """

    display: DisplayOptions = field(default_factory=lambda: DisplayOptions(statistics=True))
    pager: str = "auto"
    editing: str = "emacs"
    completing: bool = True
