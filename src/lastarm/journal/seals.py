"""Seals: what in a journal was written by searches of this user.

The owner and the mode of a file do not say where it comes from: what is downloaded or unpacked is
a file of this user. But the command in a journal is executed, and a state is unpickled. So the
header, and each state with its arm, its level and its journal, get a seal: an HMAC that only who
has this user's secret can make. The checksum of a line only detects damage, and anybody can
compute it.

A journal of version 0.1 has no identity and no seals. Its states are judged by their files alone,
and those that are saved from then on are sealed. Where no secret can be kept, nothing is sealed
and files alone are judged as well. A seal decides nothing in a search, and is in no digest.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from hashlib import sha256
from secrets import token_hex
from typing import NamedTuple

from lastarm.events import Event, Loss, Opened, Pull, Saved
from lastarm.journal.lines import encode
from lastarm.journal.secret import Secret

_LENGTH = 32  # hexadecimal digits: 128 bits


class SealRule(Enum):
    """How it is decided whether a journal's command is run and its states are loaded."""

    OWN = "own"  # it has this user's seal
    FOREIGN = "foreign"  # it does not
    OLD = "old"  # it is from before there were seals
    UNSEALED = "unsealed"  # no secret can be kept here


class Seals:
    """The seals of one journal, as one user makes and verifies them.

    - `opened`: the header of the journal
    - `secret`: that of the user
    """

    def __init__(self, opened: Opened, secret: Secret) -> None:
        self._key, self.why_none = secret.key, secret.why
        header = _as_sealed(opened)
        self._journal = sha256(header).digest()
        if secret.why:
            self.rule = SealRule.UNSEALED
        elif not opened.identity:
            self.rule = SealRule.OLD
        else:
            own = _is_same(opened.seal, _seal(self._key, b"header", header))
            self.rule = SealRule.OWN if own else SealRule.FOREIGN

    @property
    def vouch_for_command(self) -> bool:
        """Whether the command is this user's, provided that the file is."""
        return self.rule in (SealRule.OWN, SealRule.UNSEALED)

    def vouch_for(self, pull: Pull, saved: Saved) -> bool:
        """Whether a state was saved by a search of this user, provided that its file is theirs."""
        if self.rule is SealRule.UNSEALED or (self.rule is SealRule.OLD and not saved.seal):
            return True
        return _is_same(saved.seal, self._seal_of(pull, saved))

    def sealed(self, loss: Loss) -> Loss:
        """The loss, with a seal on the state that was saved with it."""
        if not loss.saved or self.rule is SealRule.UNSEALED:
            return loss
        seal = self._seal_of(loss.pull, loss.saved)
        return loss._replace(saved=loss.saved._replace(seal=seal))

    def of_states(self, events: Iterable[Event]) -> StateSeals:
        """How many arms have a state, and of how many it is not vouched for."""
        latest = {
            event.pull.arm: (event.pull, event.saved)
            for event in events
            if isinstance(event, Loss) and event.saved
        }
        return StateSeals(len(latest), sum(not self.vouch_for(*one) for one in latest.values()))

    def _seal_of(self, pull: Pull, saved: Saved) -> str:
        what = f"{pull.arm} {pull.upto} {saved.digest} {saved.size}"
        return _seal(self._key, b"state", self._journal + what.encode("utf-8", "replace"))


class StateSeals(NamedTuple):
    """How many arms have a state, and of how many it has no seal of this user."""

    states: int
    foreign: int


def with_seal(opened: Opened, secret: Secret) -> Opened:
    """The header of a new journal: with an identity and, where there is a secret, a seal."""
    named = replace(opened, identity=token_hex(8))
    if secret.why:
        return named
    return replace(named, seal=_seal(secret.key, b"header", _as_sealed(named)))


def _as_sealed(opened: Opened) -> bytes:
    """All of the header but its seal, as it is written; one that was read is written the same."""
    return encode(replace(opened, seal=""), durable=0, after="")[0]


def _seal(key: bytes, kind: bytes, what: bytes) -> str:
    return hmac.digest(key, kind + b"\0" + what, "sha256").hex()[:_LENGTH]


def _is_same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())
