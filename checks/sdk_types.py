#!/usr/bin/env python3
"""Holds requests against the types of the providers' own SDKs.

    agent-checks requests exchanges.jsonl.gz --out requests.jsonl
    pip install openai anthropic google-genai cohere botocore ollama
    python3 checks/sdk_types.py requests.jsonl

Reads lines of JSON as `agent-checks requests` writes them: `api` names the wire, `body` is the request, and `sent` the recorded one
that it was made of. Of the bodies that the types refuse it prints what is refused, how often, and one example. What the recorded
request has in the same place was its client's wish and goes along as it is; it is counted apart. Ends with 1 if anything else is
refused that EXCEPTIONS does not have.
"""

import base64
import collections
import collections.abc
import functools
import inspect
import json
import re
import sys
import types
import typing

import anthropic.types.beta.message_create_params
import anthropic.types.message_create_params
import botocore.session
import botocore.validate
import cohere.v2.client
import ollama._types as ollama
import openai.types.chat.completion_create_params
import openai.types.responses.response_create_params
import pydantic
from google.genai import types as gemini
from typing_extensions import Annotated, Literal, NotRequired, ReadOnly, Required, get_args, get_origin, get_type_hints, is_typeddict

# What the types refuse and the provider takes all the same: wire, in which requests, and what is said. Each has a row, with the
# reason, in src/requests/SDK_TYPES.md.
BACK = ("followed up", "edited")  # an answer goes back to who gave it
ANY = (*BACK, "as it came", "continued", "listed")
EXCEPTIONS = [
    ("openai-chat", BACK, r"\.messages\[\]\.annotations is unknown in .*"),
    (
        "openai-chat",
        BACK,
        r"\.messages\[\]\.(reasoning(_content|_details|_encrypted)?|extra_content|thought_signature|channel|padding) is unknown in .*",
    ),
    ("openai-chat", BACK, r"\.messages\[\]\.(tool_calls|audio|name) is no.* (NoneType|null)"),
    ("openai-chat", BACK, r"\.messages\[\]\.tool_calls\[\]\.index is unknown in .*"),
    ("openai-responses", BACK, r"\.input\[\] lacks id of .*"),
    ("openai-responses", BACK, r"\.input\[\]\.content\[\]\.(annotations is unknown in|type is none of) .*"),
    ("openai-responses", BACK, r"\.input\[\]\.content\[\] lacks annotations of .*"),
    ("anthropic-messages", ANY, r"\.(temperature|top_p|top_k) is unknown in .*"),
    ("anthropic-messages", BACK, r"\.messages\[\]\.content\[\]\.content\.abort_reason is unknown in .*"),
]

UNIONS = (typing.Union, types.UnionType)
LISTS = (list, collections.abc.Iterable, collections.abc.Sequence)
PLAIN = {str: (str,), int: (int,), float: (int, float)}


def unwrapped(kind):
    """A type without what is said about it, and whether it says that a field must be there."""
    must = None
    while True:
        origin = get_origin(kind)
        if origin in (Required, NotRequired, ReadOnly, Annotated):
            must = {Required: True, NotRequired: False}.get(origin, must)
            kind = get_args(kind)[0]
        elif hasattr(kind, "__value__"):
            kind = kind.__value__
        else:
            return kind, must


def is_model(kind):
    return isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def is_record(kind):
    return is_typeddict(kind) or is_model(kind)


@functools.lru_cache(maxsize=None)
def fields(kind):
    """The fields of a record: what each holds, and whether it must be there."""
    if is_typeddict(kind):
        out = {}
        for name, hint in get_type_hints(kind, include_extras=True).items():
            inner, must = unwrapped(hint)
            out[name] = (inner, name in kind.__required_keys__ if must is None else must)
        return out
    return {
        field.alias or name: (field.annotation, field.is_required()) for name, field in kind.model_fields.items()
    }


def refusals(value, kind, path=""):
    """What is wrong with the value, as pairs of a place and words."""
    kind, _ = unwrapped(kind)
    origin = get_origin(kind)
    if kind in (typing.Any, object):
        return []
    if kind is None or kind is type(None):
        return [] if value is None else [(path, "is not null")]
    if origin in UNIONS:
        return best(value, get_args(kind), path)
    if origin is Literal:
        return [] if value in get_args(kind) else [(path, f"is none of {list(get_args(kind))[:8]}: {value!r:.40}")]
    if is_record(kind):
        return of_record(value, kind, path)
    if origin in LISTS:
        if not isinstance(value, list):
            return [(path, f"is no list but {type(value).__name__}")]
        inner = get_args(kind)[0]
        return [found for item in value for found in refusals(item, inner, f"{path}[]")]
    if origin in (dict, collections.abc.Mapping):
        if not isinstance(value, dict):
            return [(path, f"is no object but {type(value).__name__}")]
        inner = get_args(kind)[1]
        return [found for key, item in value.items() for found in refusals(item, inner, f"{path}.{key}")]
    if kind is bool:
        return [] if isinstance(value, bool) else [(path, "is neither true nor false")]
    if kind in PLAIN:
        fits = isinstance(value, PLAIN[kind]) and not isinstance(value, bool)
        return [] if fits else [(path, f"is no {kind.__name__} but {type(value).__name__}")]
    if isinstance(kind, type):
        return [] if isinstance(value, kind) else [(path, f"is no {kind.__name__} but {type(value).__name__}")]
    raise TypeError(f"the type {kind} is not known here")


def of_record(value, kind, path):
    if not isinstance(value, dict):
        return [(path, f"is no {kind.__name__} but {type(value).__name__}")]
    known, out = fields(kind), []
    for name, (inner, must) in known.items():
        if name in value:
            out += refusals(value[name], inner, f"{path}.{name}")
        elif must:
            out.append((path, f"lacks {name} of {kind.__name__}"))
    out += [(f"{path}.{name}", f"is unknown in {kind.__name__}") for name in value if name not in known]
    return out


def best(value, kinds, path):
    """What the alternative complains of that the value was meant for."""
    found = []
    for kind in kinds:
        kind, _ = unwrapped(kind)
        if get_origin(kind) in UNIONS:
            complaints = best(value, get_args(kind), path)
        else:
            complaints = refusals(value, kind, path)
        if not complaints:
            return []
        found.append((not is_meant(value, kind), len(complaints), complaints))
    return min(found, key=lambda entry: entry[:2])[2]


def is_meant(value, kind):
    if isinstance(value, list):
        return get_origin(kind) in LISTS
    if not is_record(kind) or not isinstance(value, dict):
        return is_record(kind) == isinstance(value, dict)
    tags = [(value[tag], fields(kind)[tag][0]) for tag in ("type", "role") if tag in value and tag in fields(kind)]
    untyped = "type" in value and "type" not in fields(kind)
    return bool(tags) and not untyped and not any(refusals(tag, inner) for tag, inner in tags)


def of_gemini(body):
    return of_fields(body, {
        "contents": list[gemini.Content],
        "systemInstruction": gemini.Content,
        "tools": list[gemini.Tool],
        "toolConfig": gemini.ToolConfig,
        "safetySettings": list[gemini.SafetySetting],
        "generationConfig": gemini.GenerationConfig,
        "cachedContent": str,
        "labels": dict[str, str],
    })


def of_ollama(body):
    request = ollama.ChatRequest.model_fields
    # The SDK takes mappings as well: held against its own message, they are checked.
    own = {"messages": list[ollama.Message], "tools": list[ollama.Tool], "options": ollama.Options}
    return of_fields(body, {name: own.get(name, field.annotation) for name, field in request.items()})


def of_fields(body, known):
    out = []
    for name, value in body.items():
        if name not in known:
            out.append((f".{name}", "is unknown"))
            continue
        try:
            pydantic.TypeAdapter(known[name]).validate_python(value)
        except AttributeError as error:  # of an enumeration that is given a number
            out.append((f".{name}", str(error)[:100]))
        except pydantic.ValidationError as error:
            for found in error.errors():
                place = "".join("[]" if isinstance(at, int) else f".{at}" for at in found["loc"])
                out.append((f".{name}{place}", found["msg"][:100]))
    return out


@functools.lru_cache(maxsize=None)
def cohere_fields():
    signature = inspect.signature(cohere.v2.client.V2Client.chat).parameters.items()
    return {name: parameter for name, parameter in signature if name not in ("self", "request_options")}


def of_cohere(body):
    known, out = cohere_fields(), []
    for name, value in body.items():
        if name == "stream":
            out += refusals(value, bool, ".stream")
        elif name not in known:
            out.append((f".{name}", "is unknown"))
        else:
            out += refusals(value, known[name].annotation, f".{name}")
    must = [name for name, parameter in known.items() if parameter.default is inspect.Parameter.empty]
    return out + [("", f"lacks {name}") for name in must if name not in body]


@functools.lru_cache(maxsize=None)
def converse():
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    return service.operation_model("Converse").input_shape


def bytes_of(value, shape):
    """The value with bytes where the model has some: they travel in base64."""
    if shape.type_name == "blob" and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            return None  # which is refused
    if shape.type_name == "structure" and isinstance(value, dict) and not getattr(shape, "is_document_type", False):
        return {k: bytes_of(v, shape.members[k]) if k in shape.members else v for k, v in value.items()}
    if shape.type_name == "list" and isinstance(value, list):
        return [bytes_of(item, shape.member) for item in value]
    return value


def of_converse(body):
    shape = converse()
    value = bytes_of({"modelId": "m", **body}, shape)
    report = botocore.validate.ParamValidator().validate(value, shape).generate_report()
    out = []
    for line in filter(None, report.splitlines()):
        line = re.sub(r"\[\d+\]", "[]", line)
        found = re.match(r"(.*?(?:in|for parameter) )(\S+?)(,|:)(.*)", line)
        out.append((found[2], found[1] + found[4]) if found else ("", line))
    return out


def of_invoke(body):
    """Claude's messages inside InvokeModel: the address has the model, and the body the version."""
    said = {name: value for name, value in body.items() if name not in ("anthropic_version", "anthropic_beta")}
    return WIRES["anthropic-messages"]({"model": "m", **said})


WIRES = {
    "openai-chat": lambda body: refusals(body, openai.types.chat.completion_create_params.CompletionCreateParams),
    "openai-responses": lambda body: refusals(
        body, openai.types.responses.response_create_params.ResponseCreateParams
    ),
    "anthropic-messages": lambda body: refusals(
        body, anthropic.types.beta.message_create_params.MessageCreateParams
    ),
    "gemini-generate": of_gemini,
    "cohere-chat": of_cohere,
    "bedrock-converse": of_converse,
    "bedrock-invoke": of_invoke,
    "ollama-chat": of_ollama,
}


def main(path):
    counts, found, excepted = collections.Counter(), {}, collections.Counter()
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            api, how = line["api"], line["how"]
            complaints = set(WIRES[api](line["body"]))
            own = set(WIRES[api](line["sent"])) if complaints and "sent" in line else set()
            rest = complaints - own
            for known in EXCEPTIONS:
                is_meant_for = known[0] == api and how in known[1]
                hit = {entry for entry in rest if is_meant_for and re.fullmatch(known[2], " ".join(entry))}
                excepted[known] += bool(hit)
                rest -= hit
            left = "excepted" if complaints - own else "as sent"
            counts[api, how, "refused" if rest else left if complaints else "accepted"] += 1
            for entry in rest:
                found.setdefault((api, *entry), []).append(f"{how} {line['id']}")
    for (api, place, said), where in sorted(found.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(where):6} {api} {place} {said}   [{where[0]}]")
    for known, count in excepted.items():
        print(f"{count:6} excepted: {known[0]} {known[2]}")
    words = ("accepted", "as sent", "excepted", "refused")
    print(f"{'wire':20}{'how':14}" + "".join(f"{word:>10}" for word in words))
    for api, how in sorted({key[:2] for key in counts}):
        row = [counts[api, how, word] for word in words]
        print(f"{api:20}{how:14}" + "".join(f"{count:>10}" for count in row))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
