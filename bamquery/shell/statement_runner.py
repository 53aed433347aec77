"""Statements of one input, run one after the other; what fails or is stopped ends them, not the shell."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bamquery.engine.human_units import human_seconds, plural
from bamquery.errors import BamQueryError, CancelledError
from bamquery.shell.input_text import statements

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell


def run_statements(shell: Shell, text: str, *, by_command: bool = False) -> bool:
    """Run them and write their answers; returns whether all of them were run.

    `by_command`: whether a command wrote them, so that they are not the latest statement of the user.
    """
    listed = statements(text)
    done = 0
    begun = started = time.perf_counter()
    changed = False
    try:
        connection = shell.connection
        answers = shell.answers
        profile = answers.profile
        for relation in connection.statements(text):
            if not by_command:
                shell.latest = listed[done] if done < len(listed) else text
            changed = changed or not relation.is_answer
            answers.write(relation, started)
            if by_command:
                answers.profile = profile
            done += 1
            started = time.perf_counter()
        return True
    except (KeyboardInterrupt, CancelledError):
        shell.console.error(f"cancelled after {human_seconds(time.perf_counter() - begun)}")
    except BamQueryError as error:
        shell.complain(error)
    except BrokenPipeError:
        raise
    except Exception as error:  # a bug must not take the session along
        shell.complain(error)
    finally:
        if changed:
            shell.opening.refresh_device()
            shell.changed()
    rest = len(listed) - done - 1
    if rest > 0:
        shell.console.note(f"{plural(rest, 'statement')} after it {'was' if rest == 1 else 'were'} not run")
    return False
