//! Properties of every answer.

use agent_core::{Block, Chunk, History, ModelResponse, model::MessageBuilder, testing::detached_run};
use agent_llm::{Codec, RequestReader, conformance::json::differences};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::common::{DONE, codec, completion, delta, encoded, finish, sent_back, streamed};

/// A message with all its parts, and the split into deltas.
#[derive(Clone, Debug)]
struct Said {
    reasoning: Option<(&'static str, Vec<String>)>,
    details: Vec<String>,
    content: Option<Vec<String>>,
    calls: Vec<(String, Vec<String>, bool)>,
    vendor: Option<Vec<String>>,
    finish: &'static str,
}

fn said() -> impl Strategy<Value = Said> {
    let pieces = || prop::collection::vec("[a-zä😀\"\\\\\n ]{0,4}", 1..5);
    (
        prop::option::of((prop_oneof![Just("reasoning_content"), Just("reasoning")], pieces())),
        prop_oneof![Just(Vec::new()), pieces()],
        prop::option::of(pieces()),
        prop::collection::vec(("[a-z]{1,6}", pieces(), any::<bool>()), 0..4),
        prop::option::of(pieces()),
        prop_oneof![Just("stop"), Just("length"), Just("tool_calls")],
    )
        .prop_map(|(reasoning, details, content, calls, vendor, finish)| Said {
            reasoning,
            details,
            content,
            calls,
            vendor,
            finish,
        })
}

impl Said {
    fn whole(&self) -> Value {
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), self.content.as_ref().map_or(Value::Null, |pieces| pieces.concat().into()));
        if let Some((name, pieces)) = &self.reasoning {
            message.insert((*name).into(), pieces.concat().into());
        }
        if !self.details.is_empty() {
            let detail = json!({"type": "reasoning.text", "index": 0, "text": self.details.concat()});
            message.insert("reasoning_details".into(), json!([detail]));
        }
        if !self.calls.is_empty() {
            let calls = self.calls.iter().enumerate().map(|(at, (name, pieces, signed))| {
                let function = json!({"name": name, "arguments": pieces.concat()});
                let mut call = json!({"id": format!("c{at}"), "type": "function", "function": function});
                if *signed {
                    call["extra_content"] = json!({"signature": "s"});
                }
                call
            });
            message.insert("tool_calls".into(), calls.collect());
        }
        if let Some(pieces) = &self.vendor {
            message.insert("vendor".into(), pieces.concat().into());
        }
        Value::Object(message)
    }

    fn deltas(&self) -> Vec<Value> {
        let mut deltas = vec![json!({"role": "assistant", "content": null})];
        if let Some((name, pieces)) = &self.reasoning {
            deltas.extend(pieces.iter().map(|piece| json!({*name: piece})));
        }
        let detail = |piece| json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": piece}]});
        deltas.extend(self.details.iter().map(detail));
        deltas.extend(self.content.iter().flatten().map(|piece| json!({"content": piece})));
        for (at, (name, pieces, signed)) in self.calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": ""});
            let mut first = json!({"index": at, "id": format!("c{at}"), "type": "function", "function": function});
            if *signed {
                first["extra_content"] = json!({"signature": "s"});
            }
            deltas.push(json!({"tool_calls": [first]}));
            let more = |piece| json!({"tool_calls": [{"index": at, "function": {"arguments": piece}}]});
            deltas.extend(pieces.iter().map(more));
        }
        deltas.extend(self.vendor.iter().flatten().map(|piece| json!({"vendor": piece})));
        deltas
    }

    fn stream(&self) -> String {
        let deltas: String = self.deltas().iter().map(|d| delta(&d.to_string())).collect();
        deltas + &finish(self.finish) + DONE
    }
}

fn read_whole(said: &Said) -> ModelResponse {
    codec().decode(completion(&said.whole().to_string(), said.finish).as_bytes()).expect("an answer")
}

/// Returns the blocks without raw JSON, whose order of fields may differ.
fn words(blocks: &[Block]) -> Vec<Block> {
    let mut blocks = blocks.to_vec();
    for block in &mut blocks {
        match block {
            Block::Text(text) => text.raw = None,
            Block::Reasoning(reasoning) => reasoning.raw = None,
            Block::ToolCall(call) => call.raw = None,
            other => *other = Block::text("what is not understood"),
        }
    }
    blocks
}

/// Any small JSON.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\ ]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A content part: a known one, with or without an unknown field, or anything with a type.
fn part() -> impl Strategy<Value = Value> {
    let known = prop_oneof![
        "[a-zä😀 ]{0,6}".prop_map(|text| json!({"type": "text", "text": text})),
        "[a-z]{1,6}".prop_map(|url| json!({"type": "image_url", "image_url": {"url": url}})),
        "[a-z]{1,6}".prop_map(|id| json!({"type": "file", "file": {"file_id": id}})),
        anything().prop_map(|odd| json!({"type": "odd", "odd": odd})),
    ];
    (known, prop::option::of(anything())).prop_map(|(mut part, more)| {
        if let Some(more) = more {
            part["more"] = more;
        }
        part
    })
}

/// A request with known, partly known and unknown fields.
fn request() -> impl Strategy<Value = Value> {
    let content = prop_oneof![
        "[a-zä😀\"\n]{0,6}".prop_map(Value::from),
        prop::collection::vec(part(), 0..3).prop_map(Value::from),
    ];
    let role = prop_oneof![Just("system"), Just("developer"), Just("user"), Just("function")];
    let message = (role, content, prop::option::of(anything())).prop_map(|(role, content, name)| {
        let mut message = json!({"role": role, "content": content});
        if let Some(name) = name {
            message["name"] = name;
        }
        message
    });
    let tool = prop_oneof![
        ("[a-z]{1,4}", anything()).prop_map(|(name, schema)| {
            json!({"type": "function", "function": {"name": name, "description": "d", "parameters": {"x": schema}}})
        }),
        anything().prop_map(|odd| json!({"type": "odd", "odd": odd})),
    ];
    let name = prop_oneof![
        Just("temperature"),
        Just("stop"),
        Just("max_tokens"),
        Just("max_completion_tokens"),
        Just("tool_choice"),
        Just("response_format"),
        Just("reasoning_effort"),
        Just("stream"),
        Just("stream_options"),
        Just("seed"),
        Just("odd"),
    ];
    let value = prop_oneof![
        anything(),
        Just(json!("auto")),
        Just(json!("low")),
        Just(json!(true)),
        Just(json!({"type": "json_object"}))
    ];
    (
        prop::collection::vec(message, 0..4),
        prop::option::of(prop::collection::vec(tool, 0..3)),
        prop::collection::btree_map(name, value, 0..5),
    )
        .prop_map(|(messages, tools, fields)| {
            let mut request = json!({"model": "m", "messages": messages});
            if let Some(tools) = tools {
                request["tools"] = tools.into();
            }
            fields.into_iter().for_each(|(name, value)| request[name] = value);
            request
        })
}

proptest! {
    #[test]
    fn a_request_that_is_read_is_written_again_as_it_came(request in request()) {
        let read = codec().decode_request(request.to_string().as_bytes()).expect("a request");
        let again = encoded(&codec(), &read.into_request(detached_run(History::default()).cx().clone()));
        prop_assert_eq!(differences(&request, &again), Vec::<String>::new());
    }

    #[test]
    fn a_streamed_message_is_the_one_that_would_have_come_whole(said in said()) {
        let (streamed, _) = streamed(&codec(), &said.stream()).expect("an answer");
        let whole = read_whole(&said);
        prop_assert_eq!(words(streamed.message.blocks()), words(whole.message.blocks()));
        prop_assert_eq!(&streamed.finish, &whole.finish);
        let raw = |response: &ModelResponse| response.message.raw().expect("raw").to_value();
        prop_assert_eq!(raw(&streamed), raw(&whole));
    }

    #[test]
    fn the_chunks_of_a_stream_make_its_message(said in said()) {
        let (streamed, chunks) = streamed(&codec(), &said.stream()).expect("an answer");
        let mut heard = MessageBuilder::default();
        chunks.iter().for_each(|chunk| heard.push(chunk));
        prop_assert_eq!(&heard.into_blocks(), streamed.message.blocks());
        let mut ended: Vec<u32> =
            chunks.iter().filter_map(|c| if let Chunk::End { index } = c { Some(*index) } else { None }).collect();
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..streamed.message.blocks().len() as u32).collect::<Vec<_>>(), "each ends once");
    }

    #[test]
    fn what_was_said_goes_back_verbatim_or_edited_with_the_same_words(said in said()) {
        let message = read_whole(&said).message;
        prop_assume!(!message.is_empty());
        prop_assert_eq!(sent_back(&codec(), &message), said.whole().to_string());
        let mut edited = message;
        edited.blocks_mut();
        let back = sent_back(&codec(), &edited);
        let again = codec().decode(completion(&back, said.finish).as_bytes()).expect("an answer");
        prop_assert_eq!(words(again.message.blocks()), words(edited.blocks()));
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = codec().decode(&body);
        let _ = codec().decode_request(&body);
        let _ = streamed(&codec(), &format!("data: {}\n\n", String::from_utf8_lossy(&body)));
    }

    #[test]
    fn no_change_of_a_byte_makes_a_decoder_panic(said in said(), at: prop::sample::Index, byte: u8) {
        for body in [completion(&said.whole().to_string(), said.finish), said.stream()] {
            let mut bytes = body.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = codec().decode(&bytes);
            let _ = streamed(&codec(), &String::from_utf8_lossy(&bytes));
        }
    }
}
