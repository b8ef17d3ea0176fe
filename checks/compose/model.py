"""A model that does what it is told: `steps:N` takes N steps of half a second, `ask` asks the user."""
import json
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(messages):
    """What it says to a conversation: a call, or a text."""
    last = max(i for i, message in enumerate(messages) if message["role"] == "user")
    told, results = str(messages[last]["content"]), [m for m in messages[last:] if m["role"] == "tool"]
    steps = re.search(r"steps:(\d+)", told)
    if steps and len(results) < int(steps[1]):
        time.sleep(0.5)
        return call(len(results), "list_files", {"path": "."})
    if "ask" in told and not results:
        return call(0, "ask_user", {"questions": [{"question": "Which order?"}]})
    return {"content": f"done after {len(results)}: {results[-1]['content'] if 'ask' in told else ''}"}


def call(number, name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": f"c{number}", "type": "function", "function": function}]}


class Told(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = answer(body["messages"])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        finish = "tool_calls" if "tool_calls" in said else "stop"
        for delta, end in (({"role": "assistant", **said}, None), ({}, finish)):
            choice = {"index": 0, "delta": delta, "finish_reason": end}
            piece = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": body["model"], "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


ThreadingHTTPServer(("0.0.0.0", 9000), Told).serve_forever()
