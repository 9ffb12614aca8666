"""What the programs with the official clients have in common."""


def refused(kind, call, text=""):
    """Asserts that the call fails with this exception, whose message holds the text."""
    try:
        call()
    except kind as error:
        assert text in str(error), f"{error} lacks {text!r}"
        return
    raise AssertionError(f"{kind.__name__} was not raised")
