//! Conversion of an API's response for a model.

use agent_core::{Error, Part, Result, Retry, ToolOutput};
use serde_json::Value;
use url::Url;

use super::{document::text, operation::Operation};
use crate::{
    http::{Exchange, TooMuch, redacted},
    text::cut,
};

/// Maximum of response bytes that the model sees.
const SHOWN: usize = 24_000;
/// Maximum of error bytes that the model sees.
const ERROR: usize = 1_500;

/// # Errors
/// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the API refuses or fails, or what it sends cannot be read.
pub(super) async fn output(
    operation: &Operation,
    exchange: Exchange,
    see: Option<Url>,
    most: usize,
) -> Result<ToolOutput> {
    let (status, retry) = (exchange.status, exchange.retry());
    let request = format!("{} {}", operation.method, operation.path);
    let mime = exchange.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let link = exchange.header("link").map(str::to_owned);
    let secrets: Vec<_> = operation.credentials.iter().flat_map(super::auth::Credential::spellings).collect();
    let secrets: Vec<_> = secrets.iter().map(String::as_str).collect();
    let clean = |text: &str| redacted(text, &secrets);
    if let Some(url) = see.filter(|_| !status.is_success()) {
        // The request was carried out: an error would have the model repeat it.
        return Ok(ToolOutput::text(format!("done; the result is at {} ({status})", clean(url.as_str()))));
    }
    if !status.is_success() {
        let said = clean(&problem(&exchange.body.beginning(ERROR * 8).await, &clean));
        let said = if said.is_empty() { String::new() } else { format!(": {}", cut(&said, ERROR)) };
        return Err(
            Error::tool(format!("{request} answered {status}{said}{}", advice(status.as_u16()))).with_retry(retry)
        );
    }
    let unread = |why| match why {
        TooMuch::Large => Error::tool(format!(
            "{request} answered more than {} KiB: ask for less, with filters or smaller pages",
            most >> 10
        )),
        TooMuch::Broken(e) => Error::tool(format!("the answer to {request} is damaged or broke off"))
            .with_retry(Retry::Temporary(None))
            .with_source(e),
        TooMuch::Encoding(name) => {
            Error::tool(format!("the answer to {request} is compressed with '{name}', which is not known"))
        }
    };
    let bytes = exchange.body.read(most).await.map_err(unread)?;
    if bytes.is_empty() {
        return Ok(ToolOutput::text(format!("done ({status})")));
    }
    let Ok(body) = String::from_utf8(bytes) else {
        return Ok(ToolOutput::text(format!(
            "done ({status}); the answer is '{}', which is not shown",
            cut(&mime, 80)
        )));
    };
    // JSON is redacted after parsing, since an escape may spell a secret differently.
    let value = mime.contains("json").then(|| serde_json::from_str::<Value>(&body).ok()).flatten();
    let value = value.map(|value| cleaned(value, &clean));
    let mut shown = value.as_ref().map_or_else(|| clean(body.trim()), Value::to_string);
    if shown.len() > SHOWN {
        let total = shown.len();
        shown = format!(
            "{}\n[cut: {SHOWN} of {total} bytes are shown; ask for less, with filters or smaller pages]",
            cut(&shown, SHOWN)
        );
    }
    // Redacted before truncation, so that no part of a secret is left.
    let link = link.map(|link| clean(&link)).unwrap_or_default();
    shown.push_str(&next(&link).map(|next| format!("\n[there is a next page: {next}]")).unwrap_or_default());
    let shown = vec![Part::text(shown)];
    Ok(value.map_or_else(|| ToolOutput::parts(shown.clone()), |value| ToolOutput::value(value).shown_as(shown.clone())))
}

/// Redacts all texts and names of the value.
fn cleaned(value: Value, clean: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => clean(&text).into(),
        Value::Array(all) => all.into_iter().map(|one| cleaned(one, clean)).collect(),
        Value::Object(all) => all.into_iter().map(|(name, one)| (clean(&name), cleaned(one, clean))).collect(),
        other => other,
    }
}

/// Returns advice for the model on a status.
fn advice(status: u16) -> &'static str {
    match status {
        400 | 422 => "\n[change the arguments]",
        401 | 403 => "\n[this is not allowed, and other arguments seldom help: tell the user]",
        404 | 410 => "\n[there is no such thing: look for it with another tool]",
        409 | 412 => "\n[something else changed it: read it again first]",
        429 => "\n[too many requests: wait]",
        500..=599 => "\n[the API failed: try it later]",
        _ => "",
    }
}

/// Returns the message of an error: of a problem document (RFC 9457) or of the usual fields,
/// otherwise the whole body.
fn problem(body: &str, clean: &dyn Fn(&str) -> String) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Ok(value) = serde_json::from_str::<Value>(body) else { return one_line(body) };
    let value = cleaned(value, clean);
    let (title, detail) = (text(&value, "title"), text(&value, "detail"));
    if title.is_empty() && detail.is_empty() {
        return value.to_string();
    }
    let known = ["title", "detail", "type", "status", "instance"];
    let more = value.as_object().into_iter().flatten().filter(|(name, _)| !known.contains(&name.as_str()));
    let more: Vec<_> = more.map(|(name, value)| format!("{name}: {value}")).collect();
    let said = [one_line(title), one_line(detail), more.join("; ")];
    said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
}

/// Returns the address of a `Link` to the next page.
fn next(link: &str) -> Option<&str> {
    // An address may contain commas, so each is parsed before its parameters.
    let mut rest = link;
    loop {
        let (address, after) = rest.split_once('<')?.1.split_once('>')?;
        let parameters = after.split_once('<').map_or(after, |(own, _)| own);
        if parameters.contains("rel=\"next\"") || parameters.contains("rel=next") {
            return Some(cut(address, 500));
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_by_its_words() {
        let body =
            r#"{"type": "about:blank", "title": "Bad", "detail": "No\n such pet", "errors": ["id"], "status": 400}"#;
        assert_eq!(problem(body, &str::to_owned), r#"Bad: No such pet: errors: ["id"]"#);
        assert_eq!(problem(r#"{"error":{"message":"no"}}"#, &str::to_owned), r#"{"error":{"message":"no"}}"#);
        assert_eq!(problem(" <h1>\n oh", &str::to_owned), "<h1> oh");
        assert_eq!(
            next(r#"<https://a.example/?page=1>; rel="prev", <https://a.example/?page=3>; rel="next""#),
            Some("https://a.example/?page=3")
        );
        assert_eq!(next("<x>; rel=last"), None);
        assert_eq!(next("<a?ids=1,2>; rel=prev, <a?ids=3,4>; rel=next"), Some("a?ids=3,4"));
    }
}
