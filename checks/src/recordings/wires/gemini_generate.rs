//! Gemini's generateContent.

use agent::{
    Result,
    llm::{GeminiCodec, GeminiProfile, RequestReader},
};
use serde_json::{Map, Value, json};

use super::{Called, Said, Wire, items, text};
use crate::recordings::{Exchange, Frames, provider::provider_of};

#[derive(Debug)]
pub(super) struct GeminiGenerate;

impl Wire for GeminiGenerate {
    fn api(&self) -> &'static str {
        "gemini-generate"
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>> {
        let of_table = provider_of(exchange).and_then(|known| known.gemini);
        let profile =
            of_table.unwrap_or_else(|| GeminiProfile::compatible(&exchange.provider, "http://server.test/v1beta"));
        Ok(Box::new(GeminiCodec::new(exchange.model(), profile)?))
    }

    /// A rejected prompt has no candidates.
    fn is_error(&self, json: &Value) -> bool {
        let is_refused = !text(json, "/promptFeedback/blockReason").is_empty() && items(json, "/candidates").is_empty();
        json.get("error").is_some_and(|error| !error.is_null()) || is_refused
    }

    fn is_complete(&self, frames: &Frames) -> bool {
        frames.data.iter().any(|frame| !text(frame, "/candidates/0/finishReason").is_empty())
    }

    fn whole(&self, frames: &[Value]) -> Value {
        let (mut whole, mut candidate, mut parts) = (Map::new(), Map::new(), Vec::new());
        for frame in frames {
            keep_last(&mut whole, frame);
            let Some(said) = items(frame, "/candidates").first() else { continue };
            keep_last(&mut candidate, said);
            items(said, "/content/parts").iter().for_each(|part| match parts.last_mut().filter(|last| is_open(last)) {
                Some(open) if part["functionCall"]["name"].is_null() => extend_call(open, part),
                _ => add(&mut parts, part),
            });
        }
        parts.iter_mut().for_each(close_call);
        if candidate.contains_key("content") {
            candidate.insert("content".into(), json!({"role": "model", "parts": parts}));
        }
        whole.insert("candidates".into(), json!([candidate]));
        Value::Object(whole)
    }

    fn turn(&self, whole: &Value) -> Option<Value> {
        first(whole)?.get("content").cloned()
    }

    fn said(&self, turn: &Value) -> Said {
        let mut said = Said::default();
        for part in items(turn, "/parts") {
            let words = part["text"].as_str();
            match (words, &part["functionCall"]) {
                (Some(words), _) if part["thought"] == true => said.reasoning.push_str(words),
                (Some(words), _) => said.text.push_str(words),
                (None, Value::Object(call)) => said.calls.push(Called {
                    id: call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    name: text(part, "/functionCall/name").to_owned(),
                    arguments: call.get("args").cloned().unwrap_or(json!({})),
                }),
                _ => said.more = true,
            }
        }
        said
    }

    fn sent_back(&self, request: &Value) -> Option<Value> {
        items(request, "/contents").get(1).cloned()
    }

    /// Everything except the reason and position of the end.
    fn beside(&self, whole: &Value) -> Value {
        let mut whole = whole.clone();
        for candidate in whole.get_mut("candidates").and_then(Value::as_array_mut).into_iter().flatten() {
            let candidate = candidate.as_object_mut().into_iter();
            candidate.for_each(|fields| fields.retain(|name, _| !matches!(name.as_str(), "finishReason" | "index")));
        }
        whole
    }

    fn finish<'a>(&self, whole: &'a Value) -> &'a str {
        first(whole).map_or("", |candidate| text(candidate, "/finishReason"))
    }

    fn tokens(&self, whole: &Value) -> Option<u64> {
        whole.pointer("/usageMetadata/totalTokenCount")?.as_u64()
    }
}

/// Returns candidate 0, whose index may be missing.
fn first(whole: &Value) -> Option<&Value> {
    items(whole, "/candidates").iter().find(|candidate| candidate["index"].as_u64().unwrap_or(0) == 0)
}

/// Keeps the last non-empty value of each field.
fn keep_last(known: &mut Map<String, Value>, said: &Value) {
    for (name, value) in said.as_object().into_iter().flatten() {
        if !value.is_null() && *value != json!({}) && *value != json!([]) {
            known.insert(name.clone(), value.clone());
        }
    }
}

/// Returns true for a call whose arguments continue.
fn is_open(part: &Value) -> bool {
    part["functionCall"]["willContinue"] == true
}

/// Adds a piece of a call that is open.
fn extend_call(call: &mut Value, piece: &Value) {
    call["functionCall"]["willContinue"] = piece["functionCall"]["willContinue"].clone();
    if let (Value::Array(known), Value::Array(more)) =
        (&mut call["functionCall"]["partialArgs"], &piece["functionCall"]["partialArgs"])
    {
        known.extend(more.iter().cloned());
    }
    if let Some(signature) = piece.get("thoughtSignature") {
        call["thoughtSignature"] = signature.clone();
    }
}

/// Replaces the pieces of the arguments of a call by the arguments: a whole call has no pieces.
fn close_call(part: &mut Value) {
    let Some(call) = part.get_mut("functionCall").and_then(Value::as_object_mut) else { return };
    call.remove("willContinue");
    let Some(pieces) = call.remove("partialArgs") else { return };
    let args = call.entry("args").or_insert(json!({}));
    for piece in items(&pieces, "") {
        let value = ["stringValue", "numberValue", "boolValue"].iter().find_map(|name| piece.get(*name));
        let steps = text(piece, "/jsonPath").trim_start_matches('$').replace(']', "");
        let steps = steps.split(['.', '[']).filter(|step| !step.is_empty());
        let at = steps.fold(&mut *args, |at, step| match step.parse::<usize>() {
            Ok(index) => {
                if !at.is_array() {
                    *at = json!([]);
                }
                let list = at.as_array_mut().expect("it was made a list");
                list.resize(list.len().max(index + 1), Value::Null);
                &mut list[index]
            }
            Err(_) => &mut at[step.trim_matches(['\'', '"'])],
        });
        *at = match (at.as_str(), value) {
            (Some(known), Some(Value::String(more))) => format!("{known}{more}").into(),
            (_, value) => value.cloned().unwrap_or_default(),
        };
    }
}

/// Adds a part. A text part extends the previous one of the same kind if neither has other fields.
fn add(parts: &mut Vec<Value>, part: &Value) {
    let words = |part: &Value| {
        let only_words = part.as_object()?.keys().all(|name| matches!(name.as_str(), "text" | "thought"));
        Some((part["thought"] == true, part["text"].as_str().filter(|_| only_words)?.to_owned()))
    };
    match (parts.last().and_then(words), words(part)) {
        (_, Some((_, more))) if more.is_empty() => {}
        (Some((kind, known)), Some((same_kind, more))) if kind == same_kind => {
            let last = parts.len() - 1;
            parts[last]["text"] = (known + &more).into();
        }
        _ => parts.push(part.clone()),
    }
}
