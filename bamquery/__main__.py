"""`python -m bamquery` and the `bamquery` command."""


def main() -> None:
    """Run the command line."""
    from bamquery.command_line import run  # noqa: PLC0415 (an error in it should not hide in an import)

    run()


if __name__ == "__main__":
    main()
