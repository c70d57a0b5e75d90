"""Messages from any bytes, with the warehouse behind the decoders: no night is lost (issue 20 A2)."""

from __future__ import annotations

from tests.property.etl.fuzz import fuzz


def test_no_sequence_of_messages_loses_a_night() -> None:
    """Exit code 0, the healthy topic is loaded, rows + dead = messages; longer by hand: ``make fuzz-etl``."""
    assert fuzz(seed=20, size=150, is_over=lambda total: total >= 6000) >= 6000
