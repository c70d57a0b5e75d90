"""How far a reader of committed records may see: transactions that are open, or ended beyond the high watermark.

Pure. An ended transaction counts until its marker is below the high watermark: a reader must not see records whose end
could still be taken back by another leader.
"""

from __future__ import annotations

from since2011.log.producer_state import ProducerState


class UnstableOffsets:
    """First offsets of transactions a reader of committed records has to wait for. Thread: one."""

    def __init__(self, producers: ProducerState) -> None:
        self._producers = producers
        self._ended: dict[int, int] = {}
        """First offset of an ended transaction to its marker's offset."""

    @property
    def first(self) -> int | None:
        """The earliest of them; None if there is none."""
        starts = list(self._ended)
        opened = self._producers.first_open_offset
        if opened is not None:
            starts.append(opened)
        return min(starts) if starts else None

    def ended(self, first_offset: int, marker_offset: int) -> None:
        """A marker was appended."""
        self._ended[first_offset] = marker_offset

    def replicated(self, high_watermark: int) -> None:
        """Everything below is safe."""
        if self._ended:
            self._ended = {first: marker for first, marker in self._ended.items() if marker >= high_watermark}

    def clear(self) -> None:
        """Forget what ended: the log was cut or loaded anew."""
        self._ended = {}
