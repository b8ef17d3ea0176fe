"""The official Python SDK of OpenAI against the served actor."""

import os

import openai

client = openai.OpenAI(base_url=os.environ["SERVER"] + "/v1", api_key="none")
COLOR = {"name": "pick_color", "description": "Asks for a colour.", "parameters": {"type": "object", "properties": {"from": {"type": "array", "items": {"type": "string"}}}}}


def user(text):
    return {"role": "user", "content": text}


def chat():
    whole = client.chat.completions.create(model="actor", messages=[user("tool")])
    assert whole.choices[0].message.content.endswith("So it is: 17 degrees in Bern."), whole
    assert whole.choices[0].finish_reason == "stop" and whole.usage.total_tokens == 30, whole
    with client.chat.completions.stream(model="actor", messages=[user("tool")], stream_options={"include_usage": True}) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == whole.choices[0].message.content, final
    assert final.usage == whole.usage, final


def chat_tools():
    tools = [{"type": "function", "function": COLOR}]
    messages = [user("both")]
    with client.chat.completions.stream(model="actor", messages=messages, tools=tools) as stream:
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    assert call.function.name == "pick_color", message
    messages += [message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "red"}]
    answer = client.chat.completions.create(model="actor", messages=messages, tools=tools)
    assert answer.choices[0].message.content == "So it is: 17 degrees in Bern, red.", answer


def responses():
    first = client.responses.create(model="actor", input="tool")
    assert [item.type for item in first.output] == ["message", "mcp_call", "message"], first
    assert first.output[1].output == "17 degrees in Bern", first
    with client.responses.stream(model="actor", input="reasoning") as stream:
        events = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == "I thought about it." and "response.output_text.delta" in events, final
    assert final.output[0].encrypted_content == "sealed", final
    second = client.responses.create(model="actor", input="hello", previous_response_id=first.id)
    assert second.output_text == "You said: hello." and second.previous_response_id == first.id, second


def response_tools():
    tools = [{"type": "function", "strict": False, **COLOR}]
    with client.responses.stream(model="actor", input="color", tools=tools) as stream:
        first = stream.get_final_response()
    call = first.output[0]
    assert call.type == "function_call" and call.status == "completed", first
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "blue"}
    second = client.responses.create(model="actor", input=[output], previous_response_id=first.id, tools=tools)
    assert second.output_text == "So it is: blue.", second


def errors():
    for wrong, kind in [("nobody", openai.NotFoundError), ("actor", openai.ConflictError)]:
        try:
            client.chat.completions.create(model=wrong, messages=[user("ask")])
        except kind as error:
            assert error.code and error.message, error
            assert error.response.request.headers["x-stainless-retry-count"] == "0", "the run was repeated"
        else:
            raise AssertionError(f"no {kind}")
    try:
        list(client.chat.completions.create(model="actor", messages=[user("fail")], stream=True))
    except openai.APIError as error:
        assert "the model fell silent" in error.message, error
    else:
        raise AssertionError("no error in the stream")


def models():
    assert [model.id for model in client.models.list()] == ["actor"]
    assert client.models.retrieve("actor").object == "model"


for check in (chat, chat_tools, responses, response_tools, errors, models):
    check()
    print(f"openai (Python): {check.__name__}: passed")
