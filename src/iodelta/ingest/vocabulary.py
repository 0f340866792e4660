"""The words of result tables as data: units, and the measures, directions and units of other languages in English."""

from __future__ import annotations

import re
from functools import lru_cache

RATES = {
    "b/s": 1.0,
    **{f"{prefix}b/s": 1000.0**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib/s": 1024.0**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}bps": 1000.0**power for power, prefix in enumerate("kmg", 1)},
}
"""Bytes per second of a unit in small letters."""
TIMES = {
    **dict.fromkeys(("s", "sec", "secs"), 1e9),
    **dict.fromkeys(("ms", "msec"), 1e6),
    **dict.fromkeys(("us", "µs", "μs", "usec"), 1e3),
    **dict.fromkeys(("ns", "nsec"), 1.0),
}
"""Nanoseconds of a unit in small letters."""

_MEANT = {
    "bandwidth": (
        "bandbreite durchsatz datenrate debit débit bande_passante ancho_de_banda largura_de_banda velocidad vitesse "
        "velocità velocita larghezza_di_banda prędkość przepustowość rychlost propustnost geschwindigkeit doorvoer "
        "genomströmning скорость пропускная_способность throughput_rate 带宽 帶寬 吞吐量 吞吐 速度 帯域幅 帯域 "
        "スループット 대역폭 처리량"
    ),
    "latency": (
        "latenz latenzzeit verzögerung latence latencia latência latenza opóźnienie zpoždění latens vertraging задержка "
        "латентность 延迟 延遲 时延 レイテンシー レイテンシ 遅延 지연_시간 지연"
    ),
    "mean": (
        "durchschnittlich durchschnitt mittelwert mittlere mittel moyenne moyen media promedio médio média середина "
        "среднее средняя сред. średnia średni průměr gemiddeld gemiddelde medel 平均值 平均 평균"
    ),
    "read": (
        "lesen lesend lectura leitura lecture lettura odczyt čtení lezen läsning чтение чтения 读取 讀取 读 読み取り "
        "読み込み 読込 읽기"
    ),
    "write": (
        "schreiben schreibend écriture ecriture escritura escrita gravação scrittura zapis zápis schrijven skrivning запись "
        "записи 写入 寫入 写 書き込み 書込 쓰기"
    ),
    "random": "zufällig aléatoire aleatorio aleatória casuale losowy losowe náhodné случайное случайная случ. 随机 隨機 ランダム",
    "sequential": "sequentiell sequenziell séquentiel séquentielle secuencial sequencial sequenziale последовательное 顺序 順序 シーケンシャル",
    "IOPS": "оп/с опер/с операций/с ввода-вывода/с e/a-ops es/s",
    "ms": "мс мсек миллисекунд 毫秒 ミリ秒 밀리초 millisekunden millisecondes milisegundos",
    "us": "мкс мксек микросекунд 微秒 マイクロ秒 마이크로초 mikrosekunden microsecondes microsegundos",
    "ns": "нс нсек наносекунд 纳秒 ナノ秒 나노초 nanosekunden nanosecondes nanosegundos",
    "B/s": "б/с байт/с o/s octets/s",
    "KB/s": "кб/с kbyte/s ko/s kb/sek kb/seg",
    "MB/s": "мб/с mbyte/s mo/s mb/sek mb/seg mb/sn mb/秒 兆/秒 m/秒",
    "GB/s": "гб/с gbyte/s go/s gb/sek gb/seg gb/sn gb/秒",
    "KiB/s": "киб/с kio/s kib/sek kib/seg",
    "MiB/s": "миб/с mio/s mib/sek mib/seg mib/秒",
    "GiB/s": "гиб/с gio/s gib/sek gib/seg gib/秒",
}
"""English words and the words that mean them, with _ for a space."""
_ENGLISH = {
    word.replace("_", " "): english
    for english, words in _MEANT.items()
    for word in words.split()
}
_FOREIGN = re.compile(
    "|".join(
        f"(?<![^\\W\\d_]){re.escape(word)}(?![^\\W\\d_])"
        if ord(word[-1]) < 0x2E80
        else re.escape(word)
        for word in sorted(_ENGLISH, key=len, reverse=True)
    ),
    re.I,
)
_BITS = re.compile(r"(?<![^\W\d_])([КМГ])б(?:ит)?/с(?:ек)?(?![^\W\d_])")
"""``Мб/с``: megabits to some and megabytes to others, as ``Mb/s`` is."""


@lru_cache(maxsize=4096)
def english(text: str) -> str:
    """``text`` with the known words and units of other languages in English."""
    text = _BITS.sub(lambda match: f"{'KMG'['КМГ'.index(match[1])]}b/s", text)

    def meant(match: re.Match[str]) -> str:
        word = _ENGLISH[match[0].lower()]
        return word if ord(match[0][-1]) < 0x2E80 else f" {word} "

    return _FOREIGN.sub(meant, text)
