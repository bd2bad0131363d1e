"""The languages of a search: those with a stemmer and a list of words that say nothing of what a text is about."""

LANGUAGES = (
    "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "english", "finnish", "french", "german",
    "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "norwegian", "persian", "polish",
    "portuguese", "romanian", "russian", "spanish", "swedish", "turkish",
)  # fmt: skip
NO_LANGUAGE = "none"
"""Every word as it stands: nothing is left out, and endings count."""
