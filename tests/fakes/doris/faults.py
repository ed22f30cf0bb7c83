# SPDX-License-Identifier: Apache-2.0
"""The fault script: rules that hit requests, once or several times.

    {"at": "fe"|"be", "op": "load"|"state"|"schema"|"health"|"2pc"|"query", "fault": NAME, "arg": ...,
     "label": REGEX, "skip": N, "times": N (default 1; -1 always)}

README.md lists the names.
"""
import re
import threading


class Faults:
    def __init__(self):
        self.rules, self.lock, self.hits = [], threading.Lock(), []

    def add(self, rules):
        with self.lock:
            self.rules += [{"times": 1, "skip": 0, "label": "", **rule} for rule in rules]

    def clear(self):
        with self.lock:
            self.rules = []

    def take(self, at, op, label="", names=None):
        """The first rule that hits this request, used up by one; names: only these faults."""
        with self.lock:
            for rule in self.rules:
                if rule["at"] != at or rule["op"] != op or rule["times"] == 0:
                    continue
                if names is not None and rule["fault"] not in names:
                    continue
                if rule["label"] and not re.search(rule["label"], label):
                    continue
                if rule["skip"] > 0:
                    rule["skip"] -= 1
                    continue
                rule["times"] -= rule["times"] > 0
                self.hits.append(rule["fault"])
                return rule["fault"], rule.get("arg")
        return None, None
