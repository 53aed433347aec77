"""`python -m bamquery` and the `bamquery` command."""

import gc


def main() -> None:
    """Run the command line."""
    # Imports make many objects and next to no garbage: to look for it meanwhile takes a tenth of the start.
    # `collect_garbage` of the command line ends this.
    gc.disable()
    from bamquery.command_line.main import run  # noqa: PLC0415 (an error in it should not hide in an import)

    run()


if __name__ == "__main__":
    main()
