# SPDX-License-Identifier: BSD-3-Clause
"""Text for the tokenizer goldens, all of it generated here: a corpus to train on, and strings to compare on."""
import random

CONSONANTS, VOWELS = "bcdfghklmnprstvwz", "aeiouy"
# (first, last) code points of letters that every Unicode version since 9 knows
SCRIPTS = {
    "latin-1": (0xE0, 0xF6), "latin extended": (0x100, 0x17F), "greek": (0x3B1, 0x3C9), "cyrillic": (0x430, 0x44F),
    "armenian": (0x561, 0x586), "hebrew": (0x5D0, 0x5EA), "arabic": (0x628, 0x63A), "devanagari": (0x915, 0x939),
    "bengali": (0x995, 0x9A8), "tamil": (0xBAE, 0xBB9), "thai": (0xE01, 0xE30), "georgian": (0x10D0, 0x10F0),
    "ethiopic": (0x1200, 0x1248), "khmer": (0x1780, 0x17A2), "hiragana": (0x3041, 0x3096), "katakana": (0x30A1, 0x30FA),
    "han": (0x4E00, 0x4EFF), "hangul": (0xAC00, 0xAD00), "gothic": (0x10330, 0x10340), "deseret": (0x10400, 0x1044F),
    "bold": (0x1D400, 0x1D433)}
MARKS = [chr(c) for c in (0x300, 0x301, 0x302, 0x303, 0x308, 0x30A, 0x316, 0x323, 0x327, 0x345, 0x591, 0x5B0, 0x64B,
                          0x93C, 0x94D, 0xE34, 0x20DD, 0x3099, 0xFE0F)]
BLANKS = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\t\t", "\v", "\f", "\u00a0", "\u0085",
          "\u1680", "\u180e", "\u2003", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff", " " * 9]
DIGITS = ["0", "7", "12", "345", "2024", "1234567890", "3.14159", "1,000,000", "0x1F", "1e-6", "²³", "½", "Ⅷ", "①", "٣٤٥",
          "१२३", "０１２", "𝟘𝟙", "〇一二"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'LL", "'ſ", "’s", "'x", "''s",
                "'llama", "'sd", "'K"]
EMOJI = ["😀", "👍🏽", "👩\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "🇩🇪", "❤\ufe0f", "1\ufe0f\u20e3", "👨🏿\u200d🚀", "☺", "🫥"]
CONTROL = [chr(c) for c in (0, 1, 7, 8, 0x1B, 0x1C, 0x1F, 0x7F, 0x80, 0x9F, 0xAD, 0x200C, 0x200D, 0x200E, 0x202E, 0x2060,
                            0xE000, 0xFFFD, 0xFFFF, 0x10FFFF, 0xE0041)]
MARKUP = list(".,;:!?-_()[]{}<>\"'`~@#$%^&*+=/\\|") + ["...", "--", "==", "!=", "->", "//", "«", "»", "…", "—", "€", "、", "。",
                                                       "▁", "▁▁", "<0x41>", "<0xZZ>", "Ġ", "Ċ", "№", "ﬁ", "ß", "İ", "ı"]
SPECIALS = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>",
            "<|left|>", "<|right|>", "<|word|>", "<think>", "<|endof", "<|im_start|", "Ördner"]


def word(rng, syllables=3):
    return "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) + rng.choice(["", "", "n", "r", "s", "t"])
                   for _ in range(rng.randint(1, syllables)))


def foreign(rng, script, most=6):
    first, last = SCRIPTS[script]
    return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, most)))


def corpus(seed=1, lines=1500):
    """Lines whose words come back often enough for merges to be worth learning."""
    rng = random.Random(seed)
    words = [word(rng) for _ in range(250)] + ["I", "we", "don't", "it's", "they'll", "2024", "100", "café", "naïve"]
    words += [foreign(rng, s, 3) for s in SCRIPTS for _ in range(4)]
    weights = [1.0 / (i + 3) for i in range(len(words))]
    rng.shuffle(words)
    out = []
    for _ in range(lines):
        line = rng.choices(words, weights, k=rng.randint(3, 12))
        if rng.random() < 0.3:
            line[0] = line[0].capitalize()
        out.append(" ".join(line) + rng.choice([".", "!", "?", "...", ":\n", " = 7;\n\n", "  \n\t", ""]))
    return out


def fragment(rng):
    kind = rng.randrange(12)
    if kind <= 2:
        w = word(rng, 4)
        return rng.choice([w, w, w.upper(), w.capitalize(), w + rng.choice(CONTRACTIONS)])
    if kind == 3:
        return foreign(rng, rng.choice(list(SCRIPTS)))
    if kind == 4:
        return "".join(rng.choice("aeinouAEcKg한ÅΩ") + "".join(rng.choices(MARKS, k=rng.randint(1, 3)))
                       for _ in range(rng.randint(1, 3)))
    return rng.choice([BLANKS, DIGITS, CONTRACTIONS, EMOJI, CONTROL, MARKUP, SPECIALS][kind - 5])


def strings(seed=2):
    rng = random.Random(seed)
    training = corpus(seed=3, lines=120)
    out = ["", " ", "  ", "\n", "\n\n1", "a", " a", "a ", "I like you.", "The capital of France is", "\u212b \u2126 \u0344 ａ"]
    for group in (BLANKS, DIGITS, CONTRACTIONS, EMOJI, CONTROL, MARKUP, SPECIALS, MARKS):
        for x in group:
            out += [x, "a" + x, x + "a", " " + x + " b", x + x]
    out += [foreign(rng, s) + rng.choice([" ", ""]) + foreign(rng, s) for s in SCRIPTS for _ in range(6)]
    out += training
    out += ["a" * 300, " " * 300 + "x", "ab" * 200, "\n" * 120, "9" * 100, "é" * 90, "e\u0301" * 60, "'s" * 60, "▁ " * 60,
            "<s>" * 20, "😀" * 30, "日本" * 40, " ".join(word(rng) for _ in range(120))]
    out += ["".join(fragment(rng) for _ in range(rng.randint(2, 7))) for _ in range(700)]
    out += [rng.choice(["", " "]).join(fragment(rng) for _ in range(rng.randint(2, 4))) for _ in range(500)]
    return list(dict.fromkeys(out))
