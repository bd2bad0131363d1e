"""The same top three on both databases: fixed texts in several scripts, against a ranking in plain Python."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import pytest

from agents.search.index import Match, best, put
from agents.search.words import asked_words, is_piece, words

pytestmark = pytest.mark.django_db

Row = tuple[str, str]
"""Its title and its text."""

ENGLISH = (
    "refund invoice customer parcel courier kettle warranty complaint discount receipt ledger audit budget salary"
    " holiday contract lawyer tenant meeting agenda minutes travel hotel flight passport laptop printer password"
    " firewall backup server release ticket newsletter survey recruit interview onboarding training safety"
)
ACCENTED = (
    "café naïve résumé façade jalapeño Zürich København Łódź Kündigung Müller Übergabe Straße señor garçon"
    " crème brûlée Ångström smörgåsbord coöperate Đà Nẵng İstanbul"
)
KANJI = "退款発票客戸会議議事録契約終了請求書経費精算出張申請有給休暇社内規程顧客対応在庫管理返品処理価格改定"
CHINESE = "怎么退款发票开具客户投诉处理流程合同审批报销差旅会议纪要员工入职培训库存盘点价格调整供应商付款期限"
KANA = (
    "おしらせかいぎがくしゅうパスワードプリンターカレンダーガイドサーバー"
    "バックアップしりょうさくせいぎじろくメールアドレス"
)
OTHER_WIDTH = "ﾊﾟｽﾜｰﾄﾞ ｶﾞｲﾄﾞ ﾌﾟﾘﾝﾀｰ " + "refund".translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
"""Words that are there in the normal width as well."""

CRAFTED = (
    ("", "zebra"),
    ("", "aardvark"),
    ("", "quokka wombat"),
    ("", "wombat"),
    ("refunds of tenants", "discount"),
)
"""Equal ones that share no word; what shares two words with an input, and one; and usual words alone."""

INPUTS = (
    "How do I refund a customer for a broken kettle?",
    "REFUNDS, refunding; Invoices & receipts!",
    "Cafe in Zurich: creme brulee for Senor Muller",
    "CAFE\N{COMBINING ACUTE ACCENT} Strasse kundigung Angstrom",
    "怎么退款?",
    "客户投诉处理流程和发票",
    "パスワードとプリンターのガイド",
    OTHER_WIDTH,
    "かいぎ がいど カイト",
    "請求書 refund für Müller, 経費精算, backup サーバー",
    "the of and to",
    "a common discount or refund of tenants",
    "an aardvark and a zebra",
    "quokka wombat numbat bilby possum glider",
    f"{ENGLISH} {ACCENTED}",
    f"{CHINESE} {KANA} {KANJI} {' '.join(f'noise{n}' for n in range(1500))} password firewall",
)
"""Short and long, with capitals, accents and widths of their own; with more words than are looked for; with none."""


def fixed_rows() -> list[tuple[int, Row]]:
    """Return 505 rows by their ids, in another order than that of the ids, and some of them with equal texts."""
    chance = random.Random(24)
    scripts: dict[str, Sequence[str]] = {
        "english": ENGLISH.split(),
        "accented": ACCENTED.split(),
        "width": OTHER_WIDTH.split(),
    }
    scripts |= {"chinese": pieces(CHINESE), "kanji": pieces(KANJI), "kana": pieces(KANA)}

    def some(least: int, most: int) -> str:
        kinds = chance.choices(list(scripts), (12, 6, 0.5, 6, 6, 6), k=chance.randint(least, most))
        return chance.choice([" ", ", ", "-"]).join(chance.choice(scripts[kind]) for kind in kinds)

    texts = [(some(0, 2), f"common {some(1, 7)}") for _ in range(450)]
    texts += [*chance.sample(texts, 50), *CRAFTED]
    rows = list(enumerate(texts, 1001))
    chance.shuffle(rows)
    return rows


def pieces(script: str) -> list[str]:
    """Return each two, three and four characters that stand side by side."""
    return [script[at : at + length] for length in (2, 3, 4) for at in range(len(script) - length + 1)]


def ranked(rows: Sequence[tuple[int, Row]], text: str, *, one_is_enough: bool = False) -> list[Match]:
    """Return the three that fit best by what `agents.search.index` says, worked out from all rows one by one."""
    titles = {row: set(words(title)) for row, (title, _) in rows}
    whole = {row: titles[row] | set(words(body)) for row, (_, body) in rows}
    rows_with = Counter(word for of_row in whole.values() for word in of_row)
    asked = asked_words(text)
    telling = [word for word in asked if rows_with[word] <= max(20, len(rows) / 20)]
    needed = math.ceil(min(6, sum(word in rows_with or not is_piece(word) for word in telling)) / 3)
    candidates, most = {word for word in telling if word in rows_with}, 6
    if one_is_enough:
        needed = 1
        if not candidates:  # all are usual
            candidates, most = {word for word in asked if word in rows_with}, 1
    rarest = sorted(candidates, key=lambda word: (rows_with[word], word))
    places = list(accumulate(rows_with[word] for word in rarest))
    looked_for = [word for at, word in enumerate(rarest) if at < most or places[at] <= 500]
    found = []
    for row, _ in rows:
        shared = [word for word in looked_for if word in whole[row]]
        if shared and sum(2 if word in titles[row] else 1 for word in shared) >= needed:
            idf = [math.log(1 + len(rows) / rows_with[word]) * (5 if word in titles[row] else 1) for word in shared]
            found.append(Match(row, math.fsum(idf)))
    return sorted(found, key=lambda match: (-match.score, match.row))[:3]


@pytest.mark.parametrize("one_is_enough", [False, True])
def test_the_top_three_are_those_of_a_ranking_without_a_database(one_is_enough: bool) -> None:
    """On whichever database the tests run: so both find the same three, in the same order."""
    rows = fixed_rows()
    for row, (title, text) in rows:
        put("fixed", row, title, text)
    expected = {text: ranked(rows, text, one_is_enough=one_is_enough) for text in INPUTS}
    assert {text: best("fixed", text, 3, one_is_enough=one_is_enough) for text in INPUTS} == expected
    assert sum(len(three) > 0 for three in expected.values()) >= len(INPUTS) - 2  # all but those that say nothing
