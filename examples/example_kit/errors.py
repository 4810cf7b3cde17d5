"""Why an example cannot go on: one sentence for a person, with what would help."""


class ExampleError(Exception):
    """Something that the person at the keyboard can put right; `millstream example run` prints it and exits."""

    def __init__(self, sentence: str, exit_code: int = 1) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
