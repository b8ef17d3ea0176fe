//! Requests to a server over streamable HTTP, whose answers are repaired.

use std::io;

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http::{
    StatusCode,
    header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use reqwest::Response;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage},
    service::RxJsonRpcMessage,
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError, StreamableHttpPostResponse,
        StreamableHttpResponseLimits,
    },
};
use sse_stream::{Error as SseError, Sse, SseStream};

use super::{
    http::{Headers, Outcome, refusal_of_redirect},
    lenient,
};
use crate::{arguments::numbers, lines::Line};

type Events = BoxStream<'static, Result<Sse, SseError>>;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

/// Headers that only the transport sets.
const RESERVED: [&str; 3] = ["accept", SESSION, "last-event-id"];

/// Sends a message, and reads what the server answers.
pub(super) async fn post(
    client: &reqwest::Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    session: Option<&str>,
    token: Option<String>,
    headers: Headers,
    limits: StreamableHttpResponseLimits,
) -> Outcome<StreamableHttpPostResponse> {
    let mut request = client.post(uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    for (name, value) in headers {
        if RESERVED.contains(&name.as_str()) {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        request = request.header(name, value);
    }
    if let Some(session) = session {
        request = request.header(SESSION, session);
    }
    let json = numbers::to_json(message).map_err(|e| StreamableHttpError::Io(io::Error::other(e)))?;
    let answer = request.header(CONTENT_TYPE, JSON).body(json).send().await?;
    let status = answer.status();
    match (status, header(&answer, WWW_AUTHENTICATE)) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            let scope = scope_of(&challenge);
            return Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, scope)));
        }
        (StatusCode::ACCEPTED | StatusCode::NO_CONTENT, _) => return Ok(StreamableHttpPostResponse::Accepted),
        (StatusCode::NOT_FOUND, _) if session.is_some() => return Err(StreamableHttpError::SessionExpired),
        _ => {}
    }
    // Nothing waits for an answer to anything but a request.
    let wants_none = !matches!(message, JsonRpcMessage::Request(_));
    let given = header(&answer, http::HeaderName::from_static(SESSION));
    let kind = header(&answer, CONTENT_TYPE).map(|kind| essence(&kind));
    match kind.as_deref() {
        _ if !status.is_success() => {
            let failed = failed(answer, status, kind.as_deref() == Some(JSON), limits).await;
            if session.is_none() { of_probe(message, status, failed) } else { failed }
        }
        Some(EVENTS) => {
            let events = events(answer, limits.max_sse_event_size);
            Ok(StreamableHttpPostResponse::Sse(events, given))
        }
        Some(JSON) => {
            let body = body(answer, limits.max_json_response_size).await?;
            match (message_of(body, limits.max_json_response_size), wants_none) {
                (Ok(message), _) => Ok(StreamableHttpPostResponse::Json(message, given)),
                (Err(_), true) => Ok(StreamableHttpPostResponse::Accepted),
                (Err(why), false) => Err(StreamableHttpError::UnexpectedServerResponse(why.into())),
            }
        }
        _ if wants_none => Ok(StreamableHttpPostResponse::Accepted),
        _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
    }
}

/// Reads an answer without a success status: the JSON-RPC error in it, if there is one.
async fn failed(
    answer: Response,
    status: StatusCode,
    is_json: bool,
    limits: StreamableHttpResponseLimits,
) -> Outcome<StreamableHttpPostResponse> {
    if let Some(location) = header(&answer, LOCATION).filter(|_| status.is_redirection()) {
        let refusal = refusal_of_redirect(answer.url(), status, &location);
        return Err(StreamableHttpError::UnexpectedServerResponse(refusal.into()));
    }
    let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let busy = is_busy.then(|| HttpStatusError::new(status.as_u16(), header(&answer, RETRY_AFTER)));
    let reads_error = is_json && !is_refused && status != StatusCode::TOO_MANY_REQUESTS;
    let most = if reads_error { limits.max_json_response_size } else { limits.max_error_response_size };
    let said = body(answer, most).await.unwrap_or_default();
    if reads_error && let Ok(error @ JsonRpcMessage::Error(_)) = lenient::parse(&said) {
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    if let Some(busy) = busy {
        return Err(busy.into());
    }
    let said = String::from_utf8_lossy(&said[..said.len().min(limits.max_error_response_size)]).into_owned();
    Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {said}").into()))
}

/// Makes the refusal of a probe an answer to it, from which the client learns that the server is
/// older: servers and proxies in front of them refuse an unknown request in many ways.
fn of_probe(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
    failed: Outcome<StreamableHttpPostResponse>,
) -> Outcome<StreamableHttpPostResponse> {
    let JsonRpcMessage::Request(request) = message else { return failed };
    let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
    if !matches!(request.request, ClientRequest::DiscoverRequest(_)) || !status.is_client_error() || is_refused {
        return failed;
    }
    let error = match failed {
        Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(said), _)) => said.error,
        Err(StreamableHttpError::UnexpectedServerResponse(said)) => ErrorData::invalid_request(said, None),
        failed => return failed,
    };
    Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::error(error, Some(request.id.clone())), None))
}

/// The events with repaired messages. A message that cannot be read becomes an error of the request that it answers.
pub(super) fn repaired(events: Events, limit: usize) -> Events {
    let repair = move |mut event: Sse| {
        let is_message = event.event.as_deref().is_none_or(|name| matches!(name, "" | "message"));
        if let Some(data) = &event.data
            && is_message
            && !lenient::is_whole(data.as_bytes())
            && let Ok(message) = message_of(data.clone().into_bytes(), limit)
            && let Ok(text) = serde_json::to_string(&message)
        {
            event.data = Some(text);
        }
        event
    };
    events.map(move |event| event.map(repair)).boxed()
}

/// The events of an answer, each of at most `limit` bytes.
fn events(answer: Response, limit: usize) -> Events {
    let (mut size, mut carried) = (0, Vec::new());
    let bounded = answer.bytes_stream().map(move |bytes| {
        let bytes = bytes.map_err(io::Error::other)?;
        // The decoder keeps what it has of an event, so bytes without the end of one are counted.
        let is_end = |window: &[u8]| matches!(window, b"\n\n" | b"\r\r" | b"\n\r");
        size = bytes.windows(2).rposition(is_end).map_or(size + bytes.len(), |at| bytes.len() - at);
        if size > limit {
            return Err(io::Error::other(format!("an event has more than {limit} bytes")));
        }
        Ok(text_of(&mut carried, &bytes))
    });
    repaired(SseStream::from_bytes_stream(bounded).boxed(), limit)
}

/// Converts bytes to text, with U+FFFD for invalid ones. An incomplete character at the end is carried to the next piece.
fn text_of(carried: &mut Vec<u8>, bytes: &[u8]) -> Bytes {
    carried.extend_from_slice(bytes);
    let (mut text, mut at) = (String::with_capacity(carried.len()), 0);
    while let Err(error) = std::str::from_utf8(&carried[at..]) {
        let valid = at + error.valid_up_to();
        text.push_str(&String::from_utf8_lossy(&carried[at..valid]));
        at = valid;
        let Some(length) = error.error_len() else { break };
        text.push(char::REPLACEMENT_CHARACTER);
        at += length;
    }
    if let Ok(rest) = std::str::from_utf8(&carried[at..]) {
        text.push_str(rest);
        at = carried.len();
    }
    carried.drain(..at);
    text.into()
}

/// The message of a body, or an error for the request that it answers.
fn message_of(bytes: Vec<u8>, limit: usize) -> Result<RxJsonRpcMessage<RoleClient>, String> {
    Line { bytes, over: None }.message(limit)
}

async fn body(answer: Response, most: usize) -> Result<Vec<u8>, StreamableHttpError<reqwest::Error>> {
    let too_large = || StreamableHttpError::ResponseBodyTooLarge { max_size: most };
    let is_too_large = |length: u64| usize::try_from(length).is_ok_and(|length| length > most);
    if answer.content_length().is_some_and(is_too_large) {
        return Err(too_large());
    }
    let (mut stream, mut body) = (answer.bytes_stream(), Vec::new());
    while let Some(bytes) = stream.next().await {
        let bytes = bytes?;
        if bytes.len() > most - body.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

fn header(answer: &Response, name: http::HeaderName) -> Option<String> {
    Some(String::from_utf8_lossy(answer.headers().get(name)?.as_bytes()).into_owned())
}

/// The media type without its parameters.
fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The scope that a challenge asks for.
fn scope_of(challenge: &str) -> Option<String> {
    let rest = &challenge[challenge.to_ascii_lowercase().find("scope=")? + 6..];
    let scope = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split([',', ' ']).next(),
    };
    scope.map(str::to_owned).filter(|scope| !scope.is_empty())
}
