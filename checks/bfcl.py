"""Prints the questions of the Berkeley Function Calling Leaderboard that have one turn and known answers, as `agent-checks
tool-check` reads them: a JSON object a line with a question, the functions that were offered, and the calls that answer it.

    pip install --no-deps bfcl-eval && python3 checks/bfcl.py > bfcl.jsonl
"""

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

CATEGORIES = [f"{live}{kind}" for live in ("", "live_") for kind in ("multiple", "parallel", "parallel_multiple")]
CATEGORIES += ["simple_python", "live_simple"]

# Types that the data names as Python does.
TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array"}


def name(text):
    """A name that models of all providers may call; the data has dots in some."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)[:64]


def schema(value):
    """A JSON Schema: the data's own types are renamed, and `any` is no type at all."""
    if not isinstance(value, dict):
        return value
    known = {key: schema(inner) for key, inner in value.items() if key in ("items", "additionalProperties")}
    if isinstance(value.get("properties"), dict):
        known["properties"] = {key: schema(inner) for key, inner in value["properties"].items()}
    for key in ("description", "enum", "required"):
        if key in value:
            known[key] = value[key]
    kind = TYPES.get(value.get("type"), value.get("type"))
    return known if kind in (None, "any") else {"type": kind, **known}


def first(value):
    """The first of the answers that would do; `""` among them says that a parameter may be left out."""
    if isinstance(value, dict):
        inner = {key: first_of(choices) for key, choices in value.items()}
        return {key: one for key, one in inner.items() if one is not None}
    return [first(one) for one in value] if isinstance(value, list) else value


def first_of(choices):
    return first(choices[0]) if isinstance(choices, list) and choices and choices[0] != "" else None


def lines(folder):
    for category in CATEGORIES:
        asked = (folder / f"BFCL_v4_{category}.json").read_text().splitlines()
        answers = (folder / "possible_answer" / f"BFCL_v4_{category}.json").read_text().splitlines()
        answers = {one["id"]: one["ground_truth"] for one in map(json.loads, answers)}
        for one in map(json.loads, asked):
            turns = [turn["content"] for turn in one["question"][0] if turn["role"] == "user"]
            yield {
                "id": one["id"],
                "question": turns[-1],
                "tools": [
                    {"name": name(f["name"]), "description": f["description"], "parameters": schema(f["parameters"])}
                    for f in one["function"]
                ],
                "calls": [
                    {"name": name(function), "arguments": first(arguments)}
                    for call in answers[one["id"]]
                    for function, arguments in call.items()
                ],
            }


def main():
    package = find_spec("bfcl_eval")
    if package is None:
        sys.exit("the package bfcl-eval is not installed: pip install --no-deps bfcl-eval")
    for line in lines(Path(package.origin).parent / "data"):
        print(json.dumps(line, ensure_ascii=False))


main()
