//! Recorded exchanges with real servers, if they are at hand: `AGENT_CORPUS` names the file.

mod common;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use agent_core::{AssistantMessage, Block, Chunk, MessageBuilder};
use agent_llm::{Codec, OpenAiChatCodec, Profile};
use flate2::read::GzDecoder;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::common::{sent_back, streamed};

const DEFAULT: &str = "../../shared/corpus/open.jsonl.gz";

fn exchanges() -> Option<impl Iterator<Item = Value>> {
    let path = std::env::var("AGENT_CORPUS").unwrap_or_else(|_| DEFAULT.into());
    let file = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()?;
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    let exchanges = lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("an exchange"));
    Some(exchanges.filter(|e: &Value| e["api"].as_str().is_some_and(|api| api.starts_with("openai-chat"))))
}

/// What became of an exchange, in a word; an error says what is wrong with how it was read.
fn judge(exchange: &Value) -> Result<&'static str, String> {
    let provider = exchange["provider"].as_str().expect("a provider");
    let codec = OpenAiChatCodec::new("m", Profile::compatible(provider, "http://corpus.test/v1")).expect("a codec");
    let answer = &exchange["response"];
    let body = answer["body"].as_str().expect("a body");
    let status = StatusCode::from_u16(answer["status"].as_u64().expect("a status") as u16).expect("a status");
    if !status.is_success() {
        let error = codec.decode_error(status, &HeaderMap::new(), body.as_bytes());
        return if error.message().len() > 5 { Ok("refused") } else { Err(error.to_string()) };
    }
    if exchange["stream"] == true { judge_stream(&codec, body) } else { judge_whole(&codec, body) }
}

fn judge_whole(codec: &OpenAiChatCodec, body: &str) -> Result<&'static str, String> {
    let json: Value = serde_json::from_str(body).map_err(|e| e.to_string())?;
    let sent = match json["choices"].as_array() {
        Some(choices) => choices.iter().find(|c| c["index"] == 0 || c["index"].is_null()).expect("choice 0"),
        None => return codec.decode(body.as_bytes()).err().map(|_| "an error").ok_or("an error was not seen".into()),
    };
    let response = codec.decode(body.as_bytes()).map_err(|e| e.to_string())?;
    let message = &response.message;
    if message.is_empty() {
        return if says_nothing(&sent["message"]) { Ok("empty") } else { Err("words were lost".into()) };
    }
    same_words(message, &sent["message"])?;
    let back: Value = serde_json::from_str(&sent_back(codec, message)).map_err(|e| e.to_string())?;
    let named = message.is_edited(); // calls without ids were named
    if (!named && !equal(&back, &sent["message"])) || (named && back["tool_calls"][0]["id"].is_null()) {
        return Err(format!("sent {}\nback {back}", sent["message"]));
    }
    edited_goes_back(codec, message)?;
    Ok("whole")
}

fn judge_stream(codec: &OpenAiChatCodec, body: &str) -> Result<&'static str, String> {
    let frames = body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    let frames: Result<Vec<Value>, _> = frames.filter(|f| *f != "[DONE]").map(serde_json::from_str).collect();
    let Ok(frames) = frames else {
        return streamed(codec, body).err().map(|_| "garbage").ok_or("garbage was not seen".into());
    };
    if frames.iter().any(|frame| frame.get("error").is_some_and(|e| !e.is_null())) {
        return streamed(codec, body).err().map(|_| "an error").ok_or("an error was not seen".into());
    }
    let (response, chunks) = streamed(codec, body).map_err(|e| e.to_string())?;
    let message = &response.message;
    let mut naive = serde_json::json!({"content": "", "calls": []});
    for delta in frames.iter().flat_map(|f| f["choices"].as_array().into_iter().flatten()) {
        if delta["index"] == 0 {
            fold_naively(&mut naive, &delta["delta"]);
        }
    }
    if message.text() != naive["content"].as_str().expect("text") {
        return Err(format!("text {:?} is not {}", message.text(), naive["content"]));
    }
    let arguments: String = message.calls().map(|c| c.arguments.as_str()).collect();
    if arguments != naive["arguments"].as_str().unwrap_or_default() {
        return Err(format!("arguments {arguments} are not {}", naive["arguments"]));
    }
    let mut heard = MessageBuilder::default();
    chunks.iter().for_each(|chunk| heard.push(chunk));
    let heard = heard.into_blocks();
    if heard != message.blocks() {
        return Err(format!("chunks {heard:?} are not {:?}", message.blocks()));
    }
    let ended = chunks.iter().filter(|chunk| matches!(chunk, Chunk::End { .. })).count();
    if ended != message.blocks().len() {
        return Err(format!("{ended} blocks ended of {}", message.blocks().len()));
    }
    if message.is_empty() {
        return Ok("empty");
    }
    let back: Value = serde_json::from_str(&sent_back(codec, message)).map_err(|e| e.to_string())?;
    same_words(message, &back)?;
    edited_goes_back(codec, message)?;
    Ok("streamed")
}

fn fold_naively(naive: &mut Value, delta: &Value) {
    let mut join = |name: &str, more: &Value| {
        let known = naive[name].as_str().unwrap_or_default();
        naive[name] = (known.to_owned() + more.as_str().unwrap_or_default()).into();
    };
    join("content", &delta["content"]);
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        join("arguments", &call["function"]["arguments"]);
    }
}

/// Editing a message, and changing nothing, keeps all that its provider may need, in its own spelling.
fn edited_goes_back(codec: &OpenAiChatCodec, message: &AssistantMessage) -> Result<(), String> {
    let mut edited = message.clone();
    edited.blocks_mut();
    let back: Value = serde_json::from_str(&sent_back(codec, &edited)).map_err(|e| e.to_string())?;
    let sent = message.raw().expect("raw").to_value();
    for (name, value) in sent.as_object().expect("a message") {
        let is_word = !matches!(value, Value::Null) && value != "" && value != &Value::Array(Vec::new());
        // A refusal goes back as a part; text that says nothing does not.
        let elsewhere = matches!(name.as_str(), "refusal" | "content");
        if is_word && !elsewhere && !equal(&without_index(&back[name]), &without_index(value)) && !message.is_edited() {
            return Err(format!("{name} was {value}, and after an edit {}", back[name]));
        }
    }
    Ok(())
}

/// Some servers number calls even in answers that come whole.
fn without_index(value: &Value) -> Value {
    let mut value = value.clone();
    for item in value.as_array_mut().into_iter().flatten() {
        if item.get("function").is_some()
            && let Some(item) = item.as_object_mut()
        {
            item.remove("index");
            item.entry("type").or_insert("function".into());
        }
    }
    value
}

fn same_words(message: &AssistantMessage, sent: &Value) -> Result<(), String> {
    let calls = sent["tool_calls"].as_array().map_or(0, Vec::len);
    if message.calls().count() != calls {
        return Err(format!("{} calls of {calls}", message.calls().count()));
    }
    match sent["content"].as_str() {
        Some(text) if text != message.text() => Err(format!("{:?} is not {text:?}", message.text())),
        _ => Ok(()),
    }?;
    let reasoning = ["reasoning_content", "reasoning"].iter().find_map(|name| sent[*name].as_str());
    let kept = message.blocks().iter().any(|block| matches!(block, Block::Reasoning(_)));
    if reasoning.is_some_and(|text| !text.is_empty()) && !kept { Err("reasoning was lost".into()) } else { Ok(()) }
}

fn says_nothing(message: &Value) -> bool {
    let empty = |value: &Value| matches!(value, Value::Null) || value == "" || value == &Value::Array(Vec::new());
    message.as_object().expect("a message").iter().all(|(name, value)| name == "role" || empty(value))
}

/// Equal, with numbers by value.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

#[test]
fn recorded_answers_of_real_servers_are_read_and_go_back_as_they_came() {
    let Some(exchanges) = exchanges() else { return println!("there is no corpus: skipped") };
    let (mut counts, mut wrong, mut all) = (BTreeMap::<_, usize>::new(), Vec::new(), 0);
    for exchange in exchanges {
        all += 1;
        match judge(&exchange) {
            Ok(word) => *counts.entry(word).or_default() += 1,
            Err(why) => wrong.push(format!("{}: {why}", exchange["id"])),
        }
    }
    println!("{all} exchanges: {counts:?}, {} wrong", wrong.len());
    wrong.iter().take(20).for_each(|why| println!("{why}\n"));
    assert!(all > 0 && wrong.len() * 100 <= all, "{} of {all} are wrong", wrong.len());
}
