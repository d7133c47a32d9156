"""Findings a team has decided to live with for a while, each at one site and until a day."""

import datetime
import fnmatch
import json

_KEYS = {"rule", "site", "until", "why"}
# A wrong or faulting call is not a matter of taste: it cannot be allowed, only fixed.
_SEVERITIES = ("policy", "slow")


class BadAllowList(Exception):
    """The allow list does not read; the text names the entry."""


class AllowList:
    """Entries {"rule", "site", "until", "why"}: rule and site are shell patterns, until a date.

    An entry whose day has passed allows nothing, and says so in the finding it no longer covers.
    """

    def __init__(self, entries=(), today=None):
        self._today = today or datetime.date.today
        self.entries = [self._read(i, entry) for i, entry in enumerate(entries)]

    @classmethod
    def load(cls, path):
        try:
            with open(path, encoding="utf-8") as file:
                entries = json.load(file)
        except (OSError, ValueError) as error:
            raise BadAllowList(f"{path}: {error}") from None
        if not isinstance(entries, list):
            raise BadAllowList(f"{path}: expected a list of entries")
        return cls(entries)

    @staticmethod
    def _read(index, entry):
        place = f"allow list entry {index}"
        if not isinstance(entry, dict) or set(entry) != _KEYS:
            raise BadAllowList(f"{place}: needs exactly {', '.join(sorted(_KEYS))}")
        if not all(isinstance(value, str) and value for value in entry.values()):
            raise BadAllowList(f"{place}: every value is a text that is not empty")
        try:
            until = datetime.date.fromisoformat(entry["until"])
        except ValueError:
            raise BadAllowList(f"{place}: until {entry['until']!r} is no date YYYY-MM-DD") from None
        return {**entry, "until": until}

    def split(self, site, findings):
        """(findings that count, findings that are allowed at `site` today)."""
        counted, allowed = [], []
        for finding in findings:
            entry = self._match(site, finding)
            if entry is None:
                counted.append(finding)
            elif entry["until"] < self._today():
                expired = f"{finding['expected']} (allowed until {entry['until']}: {entry['why']})"
                counted.append({**finding, "expected": expired})
            else:
                allowed.append(finding)
        return counted, allowed

    def _match(self, site, finding):
        if finding["severity"] not in _SEVERITIES:
            return None
        matching = [
            entry
            for entry in self.entries
            if fnmatch.fnmatchcase(finding["rule"], entry["rule"])
            and fnmatch.fnmatchcase(site, entry["site"])
        ]
        return max(matching, key=lambda entry: entry["until"], default=None)
