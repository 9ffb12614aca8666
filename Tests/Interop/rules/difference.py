"""One case that the emulator and Hearth see differently."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Difference:
    """The case and both answers, as texts."""

    kind: str
    case: str
    theirs: str
    ours: str

    def __str__(self):
        return f"{self.kind}: {self.case[:1500]}\n  emulator: {self.theirs[:700]}\n  hearth:   {self.ours[:700]}"
