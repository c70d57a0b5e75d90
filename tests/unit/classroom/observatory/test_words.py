"""The paper's words in the reader's language. Issue 24, point 7."""

from __future__ import annotations

import pytest

from classroom.observatory.words import language, tooltips

LANGUAGES = ("en", "ar", "vi", "zh", "ko", "ru")


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("ru-RU,ru;q=0.9,en;q=0.8", "ru"),
        ("zh-CN", "zh"),
        ("de-DE,de;q=0.9,ko;q=0.5,en;q=0.4", "ko"),
        ("en;q=0.3,vi;q=0.7", "vi"),
        ("AR", "ar"),
        ("de", "en"),
        ("means", "en"),
        ("", "en"),
        (";;,q=,ru;q=x,,", "en"),
    ],
)
def test_the_dearest_language_of_the_table_is_taken(accepted: str, chosen: str) -> None:
    """Issue 24 point 7: the browser's language, by its weights; English otherwise, and for nonsense."""
    assert language(accepted) == chosen


def test_every_word_is_explained_in_every_language() -> None:
    """Issue 24 point 7: translation and meaning in six languages; in English the meaning alone."""
    in_english = tooltips("en")

    assert in_english["offset"].startswith("offset: where a message lies")
    for tag in LANGUAGES[1:]:
        says = tooltips(tag)
        assert says.keys() == in_english.keys()
        assert all(f"({word}): " in text and not text.startswith(" ") for word, text in says.items()), tag
    assert tooltips("ru")["topic"].startswith("тема (topic): ")
