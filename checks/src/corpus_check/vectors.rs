//! Embedding exchanges, which no wire of chat models can decode.
//!
//! * **decode**: every number of every vector is in the response, at its text, and the tokens equal
//!   the reported ones; an error is typed.
//! * **request**: the request, encoded again with the same settings, keeps every field.

use std::panic::{AssertUnwindSafe, catch_unwind};

use agent::{
    Result,
    embed::{EmbedPurpose, EmbedResponse},
    llm::{
        ProviderError, Providers,
        conformance::json,
        embed::{EmbedCall, EmbedCodec, EmbedProfile, EmbedWire, codec},
    },
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use super::checks::{Check, Outcome, complaints_about};
use crate::recordings::Exchange;

/// Name of the API family in recordings.
pub(crate) const API: &str = "embeddings";

/// Returns the outcome of each check of an exchange.
pub(crate) fn outcomes(exchange: &Exchange) -> Vec<(Check, Outcome)> {
    let run = |check: fn(&Exchange, &Asked) -> Outcome| {
        let checked = || Asked::of(exchange).map_or_else(Outcome::NotCheckable, |asked| check(exchange, &asked));
        catch_unwind(AssertUnwindSafe(checked)).unwrap_or_else(|_| Outcome::Failed(vec!["panicked".to_owned()]))
    };
    vec![
        (Check::Decode, run(decode)),
        (Check::Fold, Outcome::NotMeant),
        (Check::Replay, Outcome::NotMeant),
        (Check::Request, run(request)),
    ]
}

/// Recorded request, parsed without a codec.
struct Asked {
    json: Value,
    texts: Vec<String>,
    purpose: EmbedPurpose,
    dimensions: Option<usize>,
    truncate: bool,
    profile: EmbedProfile,
}

impl Asked {
    /// The inner error is the reason why it cannot be checked.
    fn of(exchange: &Exchange) -> Result<Self, &'static str> {
        let mut json = exchange.request.json.clone().ok_or("the request was not recorded, or is not JSON")?;
        without_nulls(&mut json);
        if exchange.request.path.ends_with(":embedContent") {
            return Err("embedContent asks for one text alone, which batchEmbedContents does too");
        }
        if json.get("images").is_some() {
            return Err("vectors of images are not asked for");
        }
        let several = |asked: &Value| asked["content"]["parts"].as_array().is_some_and(|parts| parts.len() > 1);
        if json["requests"].as_array().into_iter().flatten().any(several) {
            return Err("contents of several parts are not asked for");
        }
        let texts = texts(&json).ok_or("texts that are said as numbers of tokens are not asked for")?;
        let profile = profile(exchange, &json);
        let word = find(&json, &["input_type", "taskType", "task_type"]).and_then(Value::as_str).unwrap_or_default();
        let purpose = match word.to_lowercase() {
            word if word.contains("query") => EmbedPurpose::Query,
            word if word.contains("similarity") => EmbedPurpose::Similarity,
            word if word.contains("classification") => EmbedPurpose::Classification,
            word if word.contains("clustering") => EmbedPurpose::Clustering,
            _ => EmbedPurpose::Document,
        };
        let dimensions = ["dimensions", "output_dimension", "outputDimensionality", "output_dimensionality"];
        let dimensions = find(&json, &dimensions).and_then(Value::as_u64).map(|length| length as usize);
        let cuts = find(&json, &["truncate", "truncation", "autoTruncate"]);
        let truncate = cuts.is_some_and(|cuts| *cuts != Value::Bool(false) && *cuts != "NONE");
        Ok(Self { json, texts, purpose, dimensions, truncate, profile })
    }

    fn call(&self) -> EmbedCall<'_> {
        let mut call = EmbedCall::new(&self.texts);
        (call.purpose, call.dimensions, call.truncate) = (self.purpose, self.dimensions, self.truncate);
        call
    }

    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn EmbedCodec>> {
        codec(&exchange.provider, exchange.model(), self.profile.clone())
    }
}

/// Returns the profile of this provider, with the settings of this exchange's client.
fn profile(exchange: &Exchange, asked: &Value) -> EmbedProfile {
    let name = if exchange.provider == "llamacpp" { "llama.cpp" } else { &exchange.provider };
    let known = Providers::builtin().get(name).and_then(|known| known.embed.clone());
    let mut profile = known.unwrap_or_else(|| EmbedProfile::new(EmbedWire::Openai, ""));
    profile.base_url = "http://provider.test".to_owned();
    let has = |fields: &Map<String, Value>| fields.keys().any(|name| asked.get(name).is_some());
    if !has(&profile.compact) {
        profile.compact.clear();
    }
    if !profile.purposes.get(&EmbedPurpose::Document).is_some_and(has) {
        profile.purposes.remove(&EmbedPurpose::Document); // documents are the default purpose
    }
    if asked["encoding_format"] == "base64" {
        profile.compact.insert("encoding_format".into(), "base64".into());
    }
    profile
}

fn decode(exchange: &Exchange, asked: &Asked) -> Outcome {
    let body = exchange.response.body.as_bytes();
    if !exchange.status().is_success() {
        let error = ProviderError::from_response(exchange.status(), &exchange.headers(), body);
        return Outcome::of(complaints_about(&error.into_error(&exchange.provider), &exchange.response.body));
    }
    let Ok(said) = serde_json::from_slice::<Value>(body) else {
        return Outcome::NotCheckable("the body is not JSON");
    };
    let read = asked.codec(exchange).and_then(|codec| codec.decode(&asked.call(), &exchange.headers(), body));
    let is_encoded_otherwise = vectors(&said).iter().flatten().any(|number| !number.is_finite());
    match read {
        Ok(_) if is_encoded_otherwise => Outcome::Failed(vec!["another encoding was read as floats".to_owned()]),
        Err(error) if is_encoded_otherwise => Outcome::of(complaints_about(&error, &exchange.response.body)),
        Ok(response) => Outcome::of(misread(&said, asked.texts.len(), &response)),
        Err(error) => Outcome::Failed(vec![format!("an answer was not read: {error:?}")]),
    }
}

/// Lists the differences between the response and the recorded body.
fn misread(said: &Value, texts: usize, response: &EmbedResponse) -> Vec<String> {
    let mut out = Vec::new();
    let vectors = vectors(said);
    if vectors.len() != texts || response.vectors.len() != texts {
        out.push(format!("{} vectors for {texts} texts became {}", vectors.len(), response.vectors.len()));
    }
    for (at, (said, read)) in vectors.iter().zip(&response.vectors).enumerate() {
        if said.len() != read.len() {
            out.push(format!("vector {at}: {} numbers became {}", said.len(), read.len()));
        } else if let Some(place) = said.iter().zip(read).position(|(said, read)| (*said as f32) != *read) {
            out.push(format!("vector {at}: {} at {place} became {}", said[place], read[place]));
        }
    }
    let names = ["prompt_tokens", "promptTokenCount", "token_count", "input_tokens", "total_tokens"];
    let of_texts: Vec<_> =
        said["predictions"].as_array().into_iter().flatten().filter_map(|one| find(one, &names)).collect();
    let counted = match of_texts.is_empty() {
        true => find(said, &names).and_then(Value::as_u64),
        false => of_texts.into_iter().map(|count| count.as_f64().map(|count| count as u64)).sum(),
    };
    if let Some(tokens) = counted.filter(|tokens| *tokens != response.usage.total()) {
        out.push(format!("usage: {tokens} tokens became {:?}", response.usage));
    }
    out
}

fn request(exchange: &Exchange, asked: &Asked) -> Outcome {
    if matches!(exchange.status().as_u16(), 400 | 422) {
        return Outcome::NotCheckable("the provider refused the request");
    }
    if exchange.request.path == "/v1/embed" {
        return Outcome::NotCheckable("an older version of Cohere's API is not spoken");
    }
    let written = asked.codec(exchange).and_then(|codec| codec.encode(&asked.call()));
    let written = match written {
        Ok(written) => written,
        Err(error) => return Outcome::Failed(vec![format!("not encoded: {error:?}")]),
    };
    let action = |path: &str| path.rsplit('/').next().unwrap_or_default().replace("%3A", ":");
    let (said, path) = (action(&exchange.request.path), action(written.uri().path()));
    let mut out = if said == path { Vec::new() } else { vec![format!("{said} became {path}")] };
    match serde_json::from_slice(written.body()) {
        Ok(written) => out.extend(json::not_kept(&normalised(&asked.json), &normalised(&written))),
        Err(error) => out.push(format!("the request is not JSON: {error}")),
    }
    Outcome::of(out)
}

/// Normalises equivalent forms: one text is a list of one, the role of a text without a speaker is
/// omitted, and truncation need not be disabled where that is the default.
fn normalised(request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(text) = request.get_mut("input").filter(|input| input.is_string()) {
        *text = Value::Array(vec![text.take()]);
    }
    for one in request.get_mut("requests").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(content) = one["content"].as_object_mut() {
            content.remove("role");
        }
        let Some(one) = one.as_object_mut() else { continue };
        // Google's servers accept both spellings of a field.
        if let Some(length) = one.remove("output_dimensionality") {
            one.insert("outputDimensionality".into(), length);
        }
        // Documents are the default.
        if one.get("taskType").is_some_and(|task| task == "RETRIEVAL_DOCUMENT") {
            one.remove("taskType");
        }
    }
    if let Some(all) = request.as_object_mut()
        && all.get("parameters") == Some(&serde_json::json!({"autoTruncate": false}))
    {
        all.remove("parameters");
    }
    request
}

fn texts(json: &Value) -> Option<Vec<String>> {
    let one = |text: &Value| text.as_str().map(str::to_owned);
    if let Some(requests) = json["requests"].as_array() {
        return requests.iter().map(|asked| one(&asked["content"]["parts"][0]["text"])).collect();
    }
    if let Some(instances) = json["instances"].as_array() {
        return instances.iter().map(|instance| one(&instance["content"])).collect();
    }
    match json.get("input").or_else(|| json.get("texts"))? {
        Value::String(text) => Some(vec![text.clone()]),
        texts => texts.as_array()?.iter().map(one).collect(),
    }
}

/// Returns the vectors of a response, by the index of their texts.
fn vectors(json: &Value) -> Vec<Vec<f64>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    if let Some(data) = json["data"].as_array() {
        let mut data = data.clone();
        data.sort_by_key(|item| item["index"].as_u64());
        return data.iter().map(|item| numbers(&item["embedding"])).collect();
    }
    if let Some(predictions) = json["predictions"].as_array() {
        return predictions.iter().map(|one| numbers(&one["embeddings"]["values"])).collect();
    }
    let all = json["embeddings"].get("float").unwrap_or(&json["embeddings"]);
    list(all).iter().map(|one| numbers(one.get("values").unwrap_or(one))).collect()
}

fn numbers(vector: &Value) -> Vec<f64> {
    let Some(text) = vector.as_str() else {
        return vector.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    };
    let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
    let doubles: Vec<_> = bytes.as_chunks::<8>().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect();
    // Vectors have a norm of about 1; floats misread as doubles can have any.
    if doubles.iter().all(|number| *number == 0.0 || (1e-9..1e3).contains(&number.abs())) {
        return doubles;
    }
    bytes.as_chunks::<4>().0.iter().map(|four| f64::from(f32::from_le_bytes(*four))).collect()
}

/// Returns the first field with one of these names, at any depth.
fn find<'a>(json: &'a Value, names: &[&str]) -> Option<&'a Value> {
    match json {
        Value::Object(fields) => names
            .iter()
            .find_map(|name| fields.get(*name))
            .or_else(|| fields.values().find_map(|value| find(value, names))),
        Value::Array(items) => items.iter().filter(|item| !item.is_number()).find_map(|item| find(item, names)),
        _ => None,
    }
}

fn without_nulls(json: &mut Value) {
    match json {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exchange(asked: &Value, status: u16, answer: &Value) -> Exchange {
        let exchange = json!({"id": "x", "provider": "openai", "api": API, "model": "m",
            "request": {"path": "/v1/embeddings", "json": asked},
            "response": {"status": status, "body": answer.to_string()}});
        serde_json::from_value(exchange).expect("an exchange")
    }

    fn failed(asked: &Value, answer: &Value) -> Vec<Check> {
        let outcomes = outcomes(&exchange(asked, 200, answer)).into_iter();
        outcomes.filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_))).map(|(check, _)| check).collect()
    }

    #[test]
    fn what_is_kept_passes_and_what_is_lost_is_found() {
        let asked = json!({"model": "m", "input": ["a", "b"]});
        let item = |index, x| json!({"index": index, "embedding": [x, 0.5]});
        let answer = json!({"data": [item(1, 0.25), item(0, 0.125)], "usage": {"prompt_tokens": 4}});
        assert_eq!(failed(&asked, &answer), []);
        assert_eq!(
            failed(&json!({"model": "m", "input": "a", "mystery": 7}), &json!({"data": [item(0, 1.0)]})),
            [Check::Request]
        );
        assert_eq!(failed(&asked, &json!({"data": [item(0, 0.1)]})), [Check::Decode], "one is missing");
        let read = EmbedResponse::new(vec![vec![0.125, 0.5], vec![0.25, 0.75]], agent::Usage::new(4, 0));
        assert_eq!(misread(&answer, 2, &read), ["vector 1: 0.5 at 1 became 0.75"]);
    }

    #[test]
    fn a_refusal_is_a_typed_error_and_tokens_are_no_texts() {
        let refused =
            exchange(&json!({"model": "m", "input": ""}), 404, &json!({"error": {"message": "no such model"}}));
        assert!(outcomes(&refused).iter().all(|(_, outcome)| !matches!(outcome, Outcome::Failed(_))));
        let tokens = exchange(&json!({"model": "m", "input": [[9642]]}), 200, &json!({}));
        assert!(matches!(outcomes(&tokens)[0].1, Outcome::NotCheckable(_)));
    }
}
