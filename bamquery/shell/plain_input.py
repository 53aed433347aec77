"""Lines from a terminal that can do no more, or that nobody looks at."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bamquery.shell.input_text import StatementEnd, is_command
from bamquery.shell.prompt_strings import CONTINUATION, PROMPT

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell


class PlainPrompt:
    """Asks for one input after the other, by lines; prompts only where they are seen."""

    def __init__(self, shell: Shell, *, prompts: bool) -> None:
        self._shell = shell
        self._prompts = prompts

    def ask(self) -> str:
        """The next input.

        Raises:
            EOFError: there is none. KeyboardInterrupt: it was given up.
        """
        self._shell.opening.start()
        lines: list[str] = []
        end = StatementEnd()
        while True:
            line = self._line(CONTINUATION if lines else PROMPT)
            if not line:
                if lines:
                    return "".join(lines)
                raise EOFError
            lines.append(line)
            if (len(lines) == 1 and (is_command(line) or not line.strip())) or end.add(line):
                return "".join(lines)

    def _line(self, prompt: str) -> str:
        if self._prompts:
            sys.stdout.write(prompt)
            sys.stdout.flush()
        return sys.stdin.readline()
