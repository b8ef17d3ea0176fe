// Over 500 lines: one table of cases for all rules.
use agent_core::{
    AssistantMessage, Block, ErrorKind, History, Media, Message, Part, ToolMessage, ToolSpec, UserMessage,
    message::Raw, model::Effort, testing::detached_run,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    AnthropicCodec, AnthropicProfile, BedrockCodec, BedrockProfile, Codec, Dialect, GeminiCodec, GeminiProfile,
    OpenAiChatCodec, OpenAiResponsesCodec, Profile,
};

mod turns;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
const JPEG: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP==";

fn openai() -> Profile {
    let mut profile = Profile::compatible("acme", "http://acme.test/v1");
    profile.dialect = Dialect::Openai;
    profile
}

fn of_dialect(dialect: Dialect) -> OpenAiChatCodec {
    let mut profile = openai();
    profile.dialect = dialect;
    OpenAiChatCodec::new("m", profile).expect("a codec")
}

fn chat() -> OpenAiChatCodec {
    of_dialect(Dialect::Openai)
}

fn anthropic() -> AnthropicCodec {
    AnthropicCodec::new("claude-opus-4-5", AnthropicProfile::compatible("acme", "http://acme.test")).expect("a codec")
}

fn converse() -> BedrockCodec {
    let profile = BedrockProfile::compatible("acme", "http://acme.test");
    BedrockCodec::new("us.amazon.nova-pro-v1:0", profile).expect("a codec")
}

/// Returns a codec for each wire with documented rules.
fn wires() -> Vec<(&'static str, Box<dyn Codec>)> {
    vec![
        ("chat", Box::new(chat())),
        ("responses", Box::new(OpenAiResponsesCodec::new("m", openai()).expect("a codec"))),
        ("messages", Box::new(anthropic())),
        ("converse", Box::new(converse())),
        ("generate", Box::new(GeminiCodec::new("gemini-2.5-pro", GeminiProfile::ai_studio()).expect("a codec"))),
    ]
}

fn request(messages: impl IntoIterator<Item = Message>) -> ModelRequest {
    ModelRequest::new(detached_run(History::from_messages(messages).expect("paired")).cx().clone())
}

fn body(codec: &(impl Codec + ?Sized), req: &ModelRequest) -> Value {
    serde_json::from_slice(codec.encode(req).expect("encodes").body()).expect("JSON")
}

fn offering(schema: Value) -> ModelRequest {
    let mut req = request([Message::user("go")]);
    req.tools = [ToolSpec::new("tool", "Does it.", schema)].into_iter().collect();
    req
}

/// A call and its result.
fn turn(id: &str, name: &str, result: &str) -> [Message; 2] {
    let call = AssistantMessage::new(vec![Block::tool_call(id, name, r#"{"a":1}"#)]);
    [Message::Assistant(call), Message::Tool(ToolMessage::text(id, name, result, false))]
}

/// Returns all values of fields with these names, in document order.
fn found(value: &Value, names: &[&str]) -> Vec<Value> {
    let mut all = Vec::new();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if names.contains(&name.as_str()) {
                    all.push(value.clone());
                }
                all.extend(found(value, names));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| all.extend(found(item, names))),
        _ => {}
    }
    all
}

/// Returns the schema of the only tool.
fn schema_of(body: &Value) -> Value {
    found(body, &["parameters", "parametersJsonSchema", "input_schema", "inputSchema"]).remove(0)
}

fn said_schema(codec: &(impl Codec + ?Sized), schema: Value) -> Value {
    let schema = schema_of(&body(codec, &offering(schema)));
    schema.get("json").cloned().unwrap_or(schema)
}

#[test]
fn a_name_that_a_model_invented_is_written_as_one_that_providers_take() {
    let long = "x".repeat(201);
    let names = ["browser.tabs.open", "$lookup", r#"view_file" path="a.php""#, &long, "größe"];
    for (wire, codec) in wires() {
        let history = std::iter::once(Message::user("go"));
        let turns = names.iter().enumerate().flat_map(|(n, name)| turn(&format!("call_{n}"), name, "no such tool"));
        let req = request(history.chain(turns));
        let body = body(&*codec, &req);
        let said = found(&body, &["name"]);
        assert!(said.len() >= names.len(), "{wire}: {body}");
        for name in said {
            let name = name.as_str().expect("a name");
            assert!(names::is_taken(name), "{wire}: {name}");
        }
        assert!(req.messages.iter().any(|message| message.as_tool().is_some_and(|result| result.name() == long)));
    }
}

#[test]
fn a_name_on_offer_is_written_as_it_is() {
    let mut req = request([Message::user("go")].into_iter().chain(turn("c1", "a.b", "r")));
    req.tools = [ToolSpec::new("a.b", "", json!({"type": "object"}))].into_iter().collect();
    let names = found(&body(&chat(), &req), &["name"]);
    assert!(names.iter().all(|name| name == "a.b"), "{names:?}");
}

#[test]
fn an_id_that_is_too_long_is_mapped_to_the_same_short_one_in_the_call_and_its_result() {
    let long = format!("chatcmpl-tool-{}", "0f".repeat(98));
    let history = || [Message::user("go")].into_iter().chain(turn(&long, "look", "r"));
    for (wire, codec) in wires().into_iter().filter(|(wire, _)| *wire != "generate") {
        let most = if wire == "chat" { 40 } else { 64 };
        let ids = |body: &Value| {
            let ids = found(body, &["id", "tool_call_id", "call_id", "tool_use_id", "toolUseId"]);
            ids.iter().map(|id| id.as_str().expect("a text").to_owned()).collect::<Vec<_>>()
        };
        let first = ids(&body(&*codec, &request(history())));
        assert_eq!(first.len(), 2, "{wire}");
        assert!(first[0] == first[1] && first[0].len() <= most, "{wire}: {first:?}");
        assert_eq!(ids(&body(&*codec, &request(history()))), first, "{wire}");
    }
}

#[test]
fn an_id_of_two_turns_is_written_as_two_and_results_keep_to_their_calls() {
    let turns = (0..3).flat_map(|n| turn("call_0", "look", &format!("result {n}")));
    let req = request([Message::user("go")].into_iter().chain(turns));
    for (wire, codec) in wires().into_iter().filter(|(wire, _)| ["responses", "messages", "converse"].contains(wire)) {
        let body = body(&*codec, &req).to_string();
        for id in ["call_0", "call_0_2", "call_0_3"] {
            assert_eq!(body.matches(&format!("\"{id}\"")).count(), 2, "{wire}: {id} in {body}");
        }
        let order: Vec<_> = ["call_0\"", "result 0", "call_0_2\"", "result 1", "call_0_3\"", "result 2"]
            .iter()
            .map(|said| body.rfind(said).expect("written"))
            .collect();
        assert!(order.chunks(2).collect::<Vec<_>>().windows(2).all(|pair| pair[0] < pair[1]), "{wire}: {body}");
    }
}

#[test]
fn what_was_written_of_a_conversation_does_not_change_when_it_goes_on() {
    let all: Vec<_> =
        [Message::user("go")].into_iter().chain((0..4).flat_map(|_| turn("call.0", "a b", "r"))).collect();
    for (wire, codec) in wires() {
        let messages = |to: usize| {
            let body = body(&*codec, &request(all[..to].iter().cloned()));
            let list = ["messages", "input", "contents"].iter().find_map(|name| body.get(*name)).cloned();
            list.expect("messages").as_array().expect("a list").clone()
        };
        let (before, after) = (messages(5), messages(9));
        assert!(after.starts_with(&before), "{wire}: {before:?} {after:?}");
    }
}

#[test]
fn a_choice_at_the_root_of_a_schema_is_laid_together_and_told_in_words() {
    let choice = json!({"type": "object", "anyOf": [
        {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
        {"type": "object", "properties": {"source_url": {"type": "string"}}, "required": ["source_url"]}]});
    for (wire, codec) in wires() {
        let body = body(&*codec, &offering(choice.clone()));
        let schema = said_schema(&*codec, choice.clone());
        assert_eq!(
            (&schema["type"], schema.get("anyOf"), schema.get("required")),
            (&json!("object"), None, None),
            "{wire}"
        );
        let names: Vec<_> = schema["properties"].as_object().expect("properties").keys().cloned().collect();
        assert_eq!(names, ["content", "source_url"], "{wire}");
        assert!(
            body.to_string().contains("Give one of these sets of parameters: content; source_url."),
            "{wire}: {body}"
        );
    }
}

#[test]
fn a_root_is_an_object_whatever_it_refers_to_or_is_made_of() {
    let name = json!({"type": "string"});
    for (schema, required) in [
        (
            json!({"$ref": "#/$defs/Pick", "$defs": {"Pick": {"type": "object", "properties": {"name": name}, "required": ["name"]}}}),
            json!(["name"]),
        ),
        (
            json!({"allOf": [{"$ref": "#/definitions/A"}, {"properties": {"day": name}}], "definitions": {"A": {"type": "object", "properties": {"name": name}, "required": ["name"]}}}),
            json!(["name"]),
        ),
        (
            json!({"type": "object", "properties": {"name": name}, "oneOf": [{"required": ["name"]}, {"required": ["day"]}]}),
            Value::Null,
        ),
        (json!({"type": "object", "properties": {"name": name}, "not": {"required": ["x"]}}), Value::Null),
        (json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}), Value::Null),
    ] {
        let said = said_schema(&chat(), schema.clone());
        let refused =
            ["$ref", "anyOf", "oneOf", "allOf", "enum", "not"].iter().find(|keyword| said.get(**keyword).is_some());
        assert_eq!((&said["type"], refused), (&json!("object"), None), "{schema}");
        assert_eq!(said["required"], required, "{schema}");
        if schema["$defs"]["A"].is_null() {
            assert_eq!(said["properties"]["name"], name, "{schema}: {said}");
        }
    }
}

#[test]
fn openai_is_told_of_properties_and_items_where_a_schema_names_none() {
    let said = said_schema(&chat(), json!({"type": "object"}));
    assert_eq!(said, json!({"type": "object", "properties": {}}));
    let said = said_schema(&chat(), json!({"type": "object", "properties": {"l": {"type": "array"}}}));
    assert_eq!(said["properties"]["l"], json!({"type": "array", "items": {}}));
}

#[test]
fn references_lead_into_defs_alone() {
    for (schema, place) in [
        (
            json!({"type": "object", "properties": {"headers": {"type": "object"}, "x": {"$ref": "#/properties/headers"}}}),
            "#/$defs/headers",
        ),
        (
            json!({"type": "object", "properties": {"x": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"type": "string"}}}),
            "#/$defs/A",
        ),
        (json!({"type": "object", "properties": {"x": {"$ref": "#"}}}), "#/$defs/root"),
        (
            json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a%20b"}}, "$defs": {"a b": {"type": "string"}}}),
            "#/$defs/a_b",
        ),
    ] {
        let said = said_schema(&of_dialect(Dialect::Moonshot), schema.clone());
        assert_eq!(said["properties"]["x"]["$ref"], place, "{schema}: {said}");
        for pointer in found(&said, &["$ref"]) {
            let pointer = pointer.as_str().expect("a text").strip_prefix('#').expect("local").to_owned();
            assert!(pointer.starts_with("/$defs/") && said.pointer(&pointer).is_some(), "{said}");
        }
    }
    let said = said_schema(&chat(), json!({"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}}));
    assert_eq!(said["properties"]["x"], json!({}), "a reference to nothing is dropped");
}

#[test]
fn forms_of_older_drafts_are_written_as_the_newest_has_them() {
    let schema = json!({"type": "object", "required": null, "properties": {
        "n": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
        "at": {"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": false},
        "items": {"type": "string"}}});
    for (wire, codec) in wires() {
        let said = said_schema(&*codec, schema.clone());
        assert_eq!(said["properties"]["n"], json!({"type": "number", "exclusiveMinimum": 0, "maximum": 9}), "{wire}");
        let place = json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false});
        assert_eq!(said["properties"]["at"], place, "{wire}");
        assert_eq!(said.get("required"), None, "{wire}");
        assert_eq!(said["properties"]["items"]["type"], "string", "{wire}: a property may have a keyword's name");
    }
}

#[test]
fn claude_is_offered_keys_that_it_takes() {
    let long = "k".repeat(70);
    let schema = json!({"type": "object", "required": ["$top", long.clone()],
        "properties": {"$top": {"type": "integer"}, long: {"type": "string"}, "plain": {"type": "string"}}});
    let said = said_schema(&anthropic(), schema);
    let keys: Vec<_> = said["properties"].as_object().expect("properties").keys().cloned().collect();
    assert_eq!(keys, ["_top".to_owned(), "k".repeat(64), "plain".to_owned()]);
    assert_eq!(said["required"], json!(["_top", "k".repeat(64)]));
}

#[test]
fn of_more_tools_than_the_provider_takes_the_error_says_what_to_do() {
    let mut req = request([Message::user("go")]);
    req.tools = (0..129).map(|n| ToolSpec::new(format!("t{n}"), "", json!({"type": "object"}))).collect();
    let error = chat().encode(&req).expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert!(error.message().contains("129 tools") && error.message().contains("tool_search"), "{error}");
    anthropic().encode(&req).expect("others take more");
}

#[test]
fn of_a_description_that_is_too_long_nothing_is_lost() {
    let mut req = request([Message::user("go")]);
    let words: Vec<_> = (0..400).map(|n| format!("word{n}")).collect();
    req.tools = [ToolSpec::new("t", words.join(" "), json!({"type": "object"}))].into_iter().collect();
    let function = body(&chat(), &req)["tools"][0]["function"].clone();
    let (kept, rest) =
        (function["description"].as_str().expect("a text"), function["parameters"]["description"].clone());
    assert!(kept.chars().count() <= 1024, "{}", kept.len());
    let rest = rest.as_str().expect("the rest");
    assert!(words.iter().all(|word| kept.contains(word.as_str()) || rest.contains(word.as_str())));
}

fn image(data: &str, mime: &str) -> Part {
    Part::Image(Media::base64(data, mime))
}

fn seeing(parts: Vec<Part>) -> ModelRequest {
    request([Message::User(UserMessage::new(parts))])
}

#[test]
fn an_image_is_of_the_type_that_its_bytes_say() {
    for (wire, codec) in wires() {
        let body = body(&*codec, &seeing(vec![image(JPEG, "image/png")])).to_string();
        let format = if wire == "converse" { r#""format":"jpeg""# } else { "image/jpeg" };
        assert!(body.contains(format) && !body.contains("png"), "{wire}: {body}");
    }
}

#[test]
fn what_is_no_image_that_the_provider_takes_is_told_in_words() {
    for (data, what) in [("PHN2Zy8+", "image/svg+xml"), ("", "an empty file"), ("JVBERi0xLjQK", "application/pdf")] {
        for (wire, codec) in wires() {
            let body = body(&*codec, &seeing(vec![Part::text("look"), image(data, "image/png")])).to_string();
            assert!(body.contains("[image left out: it is") && body.contains(what), "{wire}: {body}");
        }
    }
}

/// A PNG of this width, according to its header.
fn png(width: u32) -> Part {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(10_u32.to_be_bytes());
    image(&BASE64_STANDARD.encode(bytes), "image/png")
}

#[test]
fn images_that_are_too_large_or_too_many_are_left_out_the_oldest_first() {
    let left_out = |parts: Vec<Part>| {
        let body = body(&anthropic(), &seeing(parts));
        let parts = body["messages"][0]["content"].as_array().expect("parts").clone();
        let is_left_out = |part: &Value| part["text"].as_str().is_some_and(|text| text.starts_with("[image left out"));
        parts.iter().enumerate().filter(|(_, part)| is_left_out(part)).map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(left_out(vec![png(9000), png(100)]), [0]);
    assert_eq!(left_out((0..20).map(|_| png(3000)).collect()), [0; 0]);
    assert_eq!(left_out((0..23).map(|_| png(3000)).collect()), [0, 1, 2]);
    assert_eq!(left_out((0..23).map(|n| png(if n == 7 { 3000 } else { 100 })).collect()), [7]);
    assert_eq!(left_out((0..102).map(|_| png(100)).collect()), [0, 1]);
    assert_eq!(left_out(vec![image(&format!("{PNG}{}", "A".repeat(6_000_000)), "image/png")]), [0]);
}

#[test]
fn a_blank_text_of_the_model_does_not_go_back() {
    let blank = |blocks| Message::Assistant(AssistantMessage::new(blocks));
    let call = Block::tool_call("c1", "look", "{}");
    let result = Message::Tool(ToolMessage::text("c1", "look", "r", false));
    for (wire, codec) in wires().into_iter().filter(|(wire, _)| ["messages", "converse"].contains(wire)) {
        let messages = [
            Message::user("go"),
            blank(vec![Block::text("\n\n"), call.clone()]),
            result.clone(),
            blank(vec![Block::text(" \n")]),
            Message::user("on"),
        ];
        let body = body(&*codec, &request(messages));
        let texts = found(&body["messages"], &["text"]);
        assert!(texts.iter().all(|text| !text.as_str().expect("a text").trim().is_empty()), "{wire}: {body}");
    }
}

#[test]
fn a_result_with_a_reference_is_a_text_for_gemini() {
    let codec = GeminiCodec::new("gemini-2.5-pro", GeminiProfile::ai_studio()).expect("a codec");
    let result = r##"{"parameters":{"$ref":"#/$defs/A"}}"##;
    let req = request([Message::user("a")].into_iter().chain(turn("c1", "look", result)));
    assert_eq!(found(&body(&codec, &req), &["response"]), [json!({"result": result})]);
}

#[test]
fn a_document_of_cohere_stays_in_the_result_that_holds_it() {
    let profile = crate::CohereProfile::compatible("acme", "http://acme.test");
    let codec = crate::CohereCodec::new("command-a", profile).expect("a codec");
    let document = json!({"type": "document", "document": {"id": "d1", "data": {"text": "A fact."}}});
    let part = Part::Other(Raw::from_value(codec.origin().clone(), &document));
    let call = Message::Assistant(AssistantMessage::new(vec![Block::tool_call("t1", "search", "{}")]));
    let result = Message::Tool(ToolMessage::new("t1", "search", vec![part].into(), false));
    let body = body(&codec, &request([Message::user("a"), call, result]));
    assert_eq!(body["messages"][2]["content"], json!([document]), "{body}");
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(3));
}

#[test]
fn arguments_in_a_conversation_are_objects() {
    for (arguments, said) in [
        ("null", "{}"),
        ("[]", "{}"),
        (r#""{\"a\":1}""#, r#"{"a":1}"#),
        ("[1]", "[1]"),
        ("{oops", "{oops"),
        (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
    ] {
        let call = Message::Assistant(AssistantMessage::new(vec![Block::tool_call("c1", "look", arguments)]));
        let result = Message::Tool(ToolMessage::text("c1", "look", "r", false));
        let body = body(&chat(), &request([Message::user("a"), call, result]));
        assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["arguments"], said, "{arguments}");
    }
}

#[test]
fn what_breaks_no_rule_is_written_as_it_came() {
    let raw = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{}"},"own":1}]}"#;
    let origin = chat().origin().clone();
    let raw = Raw::parse(origin, raw).expect("JSON");
    let own = AssistantMessage::from_provider(vec![Block::tool_call("call_1", "look", "{}")], raw.clone());
    let result = Message::Tool(ToolMessage::text("call_1", "look", "r", false));
    let req = request([Message::user("a"), Message::Assistant(own), result]);
    assert!(matches!(checked(&req, chat().origin(), &Rules::chat("m", &openai())), Ok(Cow::Borrowed(_))));
    let body = String::from_utf8(chat().encode(&req).expect("encodes").body().to_vec()).expect("UTF-8");
    assert!(body.contains(raw.json()), "{body}");
}

/// A tool whose schema violates `broken`, with a description of this length.
fn tool(name: &str, parameters: Value, description: usize) -> ToolSpec {
    ToolSpec::new(name, "d".repeat(description), parameters)
}

#[test]
fn tools_that_a_provider_rejects_are_listed_with_rule_source_repair_and_remedy() {
    let plain = || json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let choice = json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {}}]});
    let keys = json!({"type": "object", "properties": {"$top": {"type": "integer"}}});
    let tuple = json!({"type": "object", "properties": {"at": {"type": "array", "items": [{"type": "number"}]}}});
    let tools = [
        tool("plain", plain(), 10),
        tool("choice", choice, 10),
        tool("keys", keys, 10),
        tool("tuple", tuple, 10),
        tool("bare", json!({"type": "object"}), 10),
        tool("long", plain(), 2000),
    ];
    let names = |codec: &dyn Codec| {
        let findings = codec.check_tools(&tools);
        assert!(findings.iter().all(|one| one.repair.is_some() && !one.source.is_empty() && !one.remedy.is_empty()));
        findings.into_iter().filter_map(|one| one.tool).collect::<Vec<_>>()
    };
    assert_eq!(names(&chat()), ["choice", "tuple", "tuple", "bare", "long"]);
    assert_eq!(names(&anthropic()), ["choice", "keys", "tuple"]);
    let many: Vec<_> = (0..130).map(|n| tool(&format!("t{n}"), plain(), 1)).collect();
    let findings = chat().check_tools(&many);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].repair.is_none() && findings[0].tool.is_none(), "{findings:?}");
    assert!(findings[0].rule.contains("128") && findings[0].remedy.contains("tool_search"), "{findings:?}");
}

#[test]
fn a_tool_without_findings_is_sent_unchanged() {
    let schemas = [
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}),
        json!({"type": "object", "properties": {}, "items": []}),
        json!({"type": "object", "properties": {"x y": {}}}),
        json!({"$ref": "#/definitions/a", "definitions": {"a": {"type": "object"}}}),
    ];
    for schema in schemas {
        let spec = tool("t", schema.clone(), 5);
        for (name, codec) in [("chat", &chat() as &dyn Codec), ("messages", &anthropic())] {
            let mut req = request([Message::user("go")]);
            req.tools = [spec.clone()].into_iter().collect();
            let body = body(codec, &req);
            let sent = body.pointer("/tools/0/function/parameters").or(body.pointer("/tools/0/input_schema"));
            let is_same = sent == Some(&schema);
            assert_eq!(
                codec.check_tools(std::slice::from_ref(&spec)).is_empty(),
                is_same,
                "{name}: {schema}: {sent:?}"
            );
        }
    }
}

#[test]
fn text_that_is_named_an_image_is_left_out_and_drawings_and_photos_are_described() {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let sent = |bytes: &[u8]| {
        let image = Media::base64(BASE64_STANDARD.encode(bytes), "image/png");
        let asks = Message::User(UserMessage::new(vec![Part::Image(image)]));
        body(&anthropic(), &request([asks])).to_string()
    };
    for (bytes, expected) in [
        (&b"<!DOCTYPE html><p>404"[..], "[image left out: it is text,"),
        (b"{\"error\": \"no such image\"}", "[image left out: it is text,"),
        (
            b"<svg width='10' height='20'><title>Sales</title></svg>",
            "It is a drawing of 10 x 20. Its texts: \\\"Sales\\\".]",
        ),
        (b"\0\0\0\x18ftypheic\0\0\0\0ispe\0\0\0\0\0\0\x0f\xc0\0\0\x0b\xd0", "It is a photo of 4032 x 3024 pixels.]"),
    ] {
        let sent = sent(bytes);
        assert!(sent.contains(expected) && !sent.contains("image/png"), "{expected}: {sent}");
    }
}

#[test]
fn arguments_with_half_a_character_are_sent_as_valid_json() {
    let call = Block::tool_call("c1", "echo", r#"{"a":"\ud83d x \ud83d\ude00"}"#);
    let turn = || {
        [
            Message::user("go"),
            Message::Assistant(AssistantMessage::new(vec![call.clone()])),
            Message::Tool(ToolMessage::text("c1", "echo", "r", false)),
        ]
    };
    let gemini = GeminiCodec::new("gemini-2.5-pro", GeminiProfile::ai_studio()).expect("a codec");
    for codec in [&anthropic() as &dyn Codec, &converse(), &gemini] {
        let sent = body(codec, &request(turn())).to_string();
        assert!(sent.contains("\u{fffd} x \u{1f600}"), "{sent}");
    }
}
