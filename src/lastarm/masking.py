r"""Secrets: which parts of a command and of a text are not written down.

A secret is the value of an option or variable whose name contains key, token, secret, password or
credential, in any case, and the user and password in an address:

    --api-key VALUE    --api-key=VALUE    API_KEY=VALUE    "token": "VALUE"    https://VALUE@host

In its place stands `***`. In a command, a salted hash follows, which tells whether a value is the
same again (`masked_words`, `is_same`). In texts and data there is no hash (`masked_text`,
`masked_data`).

Some names only look like that, and are left alone: keyword, keyboard, keypoint, keyframe,
tokenizer, and classes of exceptions such as KeyError. Some values cannot be secrets: True, False,
None, a `{placeholder}`, and numbers if the name goes on after key or token, as in key_size=256 and
max_tokens=512. To hide too much of a text costs little, so an unquoted value ends at a space only.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import pbkdf2_hmac
from typing import Any

MASK = "***"
ROUNDS = 100_000  # of the hash, some 50 ms: a short password cannot be found by trying them all

_WORD = (
    r"(?:key(?!word|board|point|frame)|token(?!i[sz])|secret|password|credential)"
    r"(?!\w{0,40}(?:error|exception|warning|interrupt)\b)"
)
# Of such a name even a number is a secret, and so is that of a numbered one, as in API_KEY_2.
_OF_A_SECRET = r"secret|password|credential|(?:key|token)[-_.v\d]*\Z"
_AT_ITS_END = r"""(?=[\s,;:&)\]}'"\\]|\Z)"""
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?" + _AT_ITS_END, re.IGNORECASE)
_HARMLESS = re.compile(
    r"(?:true|false|none|null|\{[^{}\s]*\}|\*\*\*)" + _AT_ITS_END, re.IGNORECASE
)
_ANNOTATED = r":[ \t]{0,3}(?:str|bytes|SecretStr|Any|int)(?:[ ]?\|[ ]?None)?[ \t]{0,3}="

# What stands before a secret: an option, a variable, or the scheme of an address. A variable is
# looked for from the word on, because its name may begin with anything.
_BEFORE = re.compile(
    rf"(?<![\w-])(?P<option>--?(?=[\w.-]{{0,60}}?{_WORD})[\w.-]{{1,80}})"
    r"""(?:['"]?[ \t]+|['"],[ ]*)(?!--)(?=\S)"""
    rf"|(?P<variable>{_WORD}[\w.-]{{0,60}})"
    rf"""[\\"'\]]{{0,4}}[ \t]{{0,3}}(?:{_ANNOTATED}|=>|->|[=!:]=|=|:)[ \t]{{0,3}}(?=\S)"""
    r"|\w://(?=[^\s/:@]*:[^\s/]*@)",
    re.IGNORECASE,
)
# A quote that is never closed is in a text that was cut off.
_QUOTED = re.compile(
    r"""[bruf]{0,2}(?:(?P<three>'{3}|"{3})(?s:.*?)(?:(?P=three)|\Z)"""
    r"""|'(?:[^'\\]|\\(?s:.)?)*(?:'|\Z)|"(?:[^"\\]|\\(?s:.)?)*(?:"|\Z))""",
    re.IGNORECASE,
)
_BARE = re.compile(r"(?:(?:bearer|basic|token)[ ]+)?\S+", re.IGNORECASE)
_BRACKET = re.compile(
    r"""[()\[\]{}\n]|'(?:[^'\\\n]|\\.?)*(?:'|(?=\n)|\Z)|"(?:[^"\\\n]|\\.?)*(?:"|(?=\n)|\Z)"""
)
_MORE = re.compile(r"""[^\s,;:.)\]}'"]\S*""")
_USER = re.compile(r"[^\s/]*(?=@)")
_NAME_AND_VALUE = re.compile(r"([-+]{0,2}[\w./-]+)=(.+)", re.DOTALL)
_HASHED = re.compile(r"\*\*\*([0-9a-f]{16}):([0-9a-f]{32})")


def masked_text(text: str, instead: Callable[[str], str] = lambda secret: MASK) -> str:
    """A text without the secrets in it; `instead` gives what stands in place of each.

    >>> masked_text("cannot log in: api_key='sk-1', retries=3, at https://me:pw@host/path")
    'cannot log in: api_key=***, retries=3, at https://***@host/path'
    >>> masked_text("KeyError: 'lr', key_size=256, of ./train --token abc --lr 0.1")
    "KeyError: 'lr', key_size=256, of ./train --token *** --lr 0.1"
    """
    parts, at = [], 0
    while found := _BEFORE.search(text, at):
        name, start = found["option"] or found["variable"], found.end()
        shown = _may_be_shown(name, text, start) if name else ""
        secret = "" if shown else _secret(text, start, in_address=not name)
        parts.append(text[at:start] + (shown or instead(secret)))
        at = start + len(shown or secret)
    return "".join([*parts, text[at:]])


def masked_data(value: Any, *, secret: bool = False) -> Any:
    """Plain data without the secrets in its texts. Numbers stay.

    >>> masked_data({"api_key": "sk-1", "tokens": 512, "notes": ["token=abc"]})
    {'api_key': '***', 'tokens': 512, 'notes': ['token=***']}
    """
    if isinstance(value, str):
        return MASK if secret and value else masked_text(value)
    if isinstance(value, Mapping):
        return {
            name: masked_data(item, secret=secret or _is_secret(name, item))
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [masked_data(item, secret=secret) for item in value]
    return value


def masked_words(words: Sequence[str], *, hashes: bool = True) -> list[str]:
    """The words of a command without the secrets in them; with `hashes`, a hash of each is kept.

    What may vary in a search by `lastarm tune`, `--param NAME=DOMAIN`, is not a secret.

    >>> masked_words(["lastarm", "tune", "--param", "key=int:1:5", "--", "./train", "--key={key}"])
    ['lastarm', 'tune', '--param', 'key=int:1:5', '--', './train', '--key={key}']
    >>> masked_words(["./train", "--api-key", "sk-1", "PASSWORD=abc", "--lr=0.1"], hashes=False)
    ['./train', '--api-key', '***', 'PASSWORD=***', '--lr=0.1']
    """
    salt = secrets.token_hex(8)

    def hashed(secret: str) -> str:
        return f"{MASK}{salt}:{_hash(secret, salt)}" if hashes else MASK

    def masked(word: str, before: str) -> str:
        option = before.startswith("-") and "=" not in before and not word.startswith("--")
        if option and _is_secret(before, word):
            return hashed(word)
        names = ""  # those in a word such as --env=API_KEY=VALUE that are not of secrets
        while assigned := _NAME_AND_VALUE.fullmatch(word):
            name, word = assigned[1], assigned[2]
            if _is_secret(name, word):
                return f"{names}{name}={hashed(word)}"
            names += f"{name}="
        return names + masked_text(word, hashed)

    ours = 0  # how many words are options of ours, which have no secrets but in what they name
    if words and words[0] == "lastarm":
        ours = words.index("--") if "--" in words else len(words)
    return [
        word
        if place < ours and (before == "--param" or word.startswith("--param="))
        else masked(word, before)
        for place, (before, word) in enumerate(zip(["", *words], words, strict=False))
    ]


def without_hashes(words: Sequence[str]) -> list[str]:
    """Masked words as people read them."""
    return [_HASHED.sub(MASK, word) for word in words]


def is_masked(words: Sequence[str]) -> bool:
    """Whether a command has words that are not known any more."""
    return any(_HASHED.search(word) for word in words)


def is_same(written: Any, now: Any) -> bool:
    """Whether a value is what was written; where a secret was masked, by its hash.

    >>> written = masked_words(["./train", "--api-key=sk-1"])
    >>> is_same(written, ["./train", "--api-key=sk-1"])
    True
    >>> is_same(written, ["./train", "--api-key=sk-2"])
    False
    """
    if isinstance(written, list) and isinstance(now, list):
        return len(written) == len(now) and all(map(is_same, written, now))
    if written == now or not (isinstance(written, str) and isinstance(now, str)):
        return bool(written == now)
    # The rule may be another one day, so the written word says where its secrets are.
    around = re.split(_HASHED.pattern.replace("(", "(?:"), written)
    first, last = around[0], around[-1]
    at, ends = len(first), len(now) - len(last)
    if len(around) == 1 or ends < at or not (now.startswith(first) and now.endswith(last)):
        return False
    for (salt, digest), after in zip(_HASHED.findall(written), [*around[1:-1], None], strict=True):
        end = ends if after is None else now.find(after, at, ends)
        if end < at or _hash(now[at:end], salt) != digest:
            return False
        at = end + len(after or "")
    return True


def _is_secret(name: Any, value: Any) -> bool:
    named = isinstance(name, str) and re.search(_WORD, name, re.IGNORECASE)
    return bool(named) and not (isinstance(value, str) and _may_be_shown(name, value) == value)


def _may_be_shown(name: str, text: str, at: int = 0) -> str:
    """The value at this place of a text, if it cannot be a secret; else nothing."""
    found = _HARMLESS.match(text, at)
    if not found and not re.search(_OF_A_SECRET, name, re.IGNORECASE):
        found = _NUMBER.match(text, at)
    return found[0] if found else ""


def _secret(text: str, at: int, *, in_address: bool) -> str:
    """The value at this place of a text. Without quotes it ends before a space."""
    found = (_USER if in_address else _QUOTED).match(text, at)
    if found:
        return found[0]
    if text[at] in "([{" and not in_address:
        return _bracketed(text, at)
    bare = _BARE.match(text, at)
    assert bare, "it does not begin with a space"
    return bare[0].rstrip(",;:.)]}'\"") or bare[0]


def _bracketed(text: str, at: int) -> str:
    """A list, tuple or dict at this place of a text; to the end of its line if it has no end."""
    depth = 0
    for found in _BRACKET.finditer(text, at):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(found[0], 0)
        if depth == 0:
            more = _MORE.match(text, found.end())  # it was a password that begins with a bracket
            return text[at : more.end() if more else found.end()]
        if found[0] == "\n":
            break
    return text[at:].partition("\n")[0]


def _hash(secret: str, salt: str) -> str:
    written = secret.encode("utf-8", "surrogatepass")
    return pbkdf2_hmac("sha256", written, bytes.fromhex(salt), ROUNDS, dklen=16).hex()
