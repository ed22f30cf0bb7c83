# SPDX-License-Identifier: Apache-2.0
"""The program as the writer."""
import os

import pyarrow.parquet as pq

from history import filters
from history import values as V


class Knut:
    name = "knut"

    def __init__(self, history):
        self.h = history

    def choose(self, h):
        dice = h.dice
        if len(h.rows) < 8:
            return "append", self.append
        return dice.choice([("append", self.append), ("append", self.append), ("delete", self.delete), ("overwrite", self.overwrite),
                            ("delete", self.delete), ("overwrite", self.overwrite)])

    def file(self, rows):
        """A Parquet file beside the warehouse with these rows."""
        folder = self.h.table.lake.folder.parent / "new"
        folder.mkdir(exist_ok=True)
        path = folder / f"{os.urandom(6).hex()}.parquet"
        pq.write_table(V.to_arrow([row.values for row in rows], self.h.schema), path)
        return path

    def knut(self, *words):
        return self.h.table.knut(*words).ok().row

    def append(self):
        rows = self.h.fresh(self.h.dice.randrange(1, 20))
        self.knut("append", self.file(rows))
        return [self.h.rows + rows]

    def delete(self):
        chosen = filters.some_filter(self.h.dice, self.h.schema, self.h.rows)
        self.h.log[-1] += f" {chosen}"
        self.knut("delete", "--where", chosen)
        return [self.h.kept(chosen)]

    def overwrite(self):
        chosen = filters.some_filter(self.h.dice, self.h.schema, self.h.rows)
        self.h.log[-1] += f" {chosen}"
        kept = self.h.kept(chosen)
        rows = self.h.fresh(self.h.dice.randrange(1, 12))
        self.knut("overwrite", "--where", chosen, self.file(rows))
        return [kept + rows]
