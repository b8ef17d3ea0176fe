"""Gets {"sql": ".."} on standard input, and prints the rows that the query gives as lines of JSON."""

import json
import pathlib
import sqlite3
import sys

database = sqlite3.connect(":memory:")
database.executescript(pathlib.Path("shop.sql").read_text())
database.row_factory = sqlite3.Row
try:
    for row in database.execute(json.load(sys.stdin)["sql"]).fetchmany(200):
        print(json.dumps(dict(row)))
except sqlite3.Error as error:
    sys.exit(f"the query failed: {error}")
