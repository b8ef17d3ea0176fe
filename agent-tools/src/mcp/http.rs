//! Streamable HTTP transport.

use std::{collections::HashMap, sync::Arc};

use agent_core::{Error, Result};
use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::redirect::Policy;
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
            StreamableHttpResponseLimits,
        },
    },
};
use sse_stream::{Error as SseError, Sse};

use super::{Http, oauth::Access, post};
use crate::http::tls;

pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

pub(super) type Outcome<T> = Result<T, StreamableHttpError<reqwest::Error>>;

/// Maximum of token renewals per request.
const RENEWALS: usize = 3;

/// Creates a streamable HTTP transport. Sends nothing yet.
pub(super) fn transport(
    server: &Http,
    access: Option<Arc<Access>>,
    limit: usize,
) -> Result<StreamableHttpClientTransport<Web>> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    config = config.max_sse_event_size(limit).max_json_response_size(limit);
    config = config.custom_headers(server.headers()?.into_iter().collect());
    Ok(StreamableHttpClientTransport::with_client(Web { client: client()?, access }, config))
}

/// Maximum number of redirects of a request.
const REDIRECTS: usize = 10;

/// Returns an HTTP client with the roots of this machine. It follows redirects that repeat the
/// request at the same origin. All others are responses, which [`refusal_of_redirect`] makes errors
/// of: headers with secrets are for one server.
pub(super) fn client() -> Result<reqwest::Client> {
    let follow = Policy::custom(|attempt| {
        let from = attempt.previous().last().map(reqwest::Url::origin);
        let repeats = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let follows = repeats && from == Some(attempt.url().origin()) && attempt.previous().len() <= REDIRECTS;
        if follows { attempt.follow() } else { attempt.stop() }
    });
    builder()?.redirect(follow).build().map_err(|e| Error::config("an HTTP client cannot be made").with_source(e))
}

/// Returns the message about a redirect that is not followed, without the parts of its address
/// that may hold secrets.
pub(super) fn refusal_of_redirect(from: &reqwest::Url, status: StatusCode, location: &str) -> String {
    let status = status.as_u16();
    let Ok(mut to) = from.join(location) else {
        return format!("the server redirects to an invalid address (status {status})");
    };
    to.set_query(None);
    let cleared = to.set_username("").and_then(|()| to.set_password(None));
    let to = if cleared.is_ok() { to.to_string() } else { to.origin().ascii_serialization() };
    format!("the server redirects to {to} (status {status}), which is not followed: set that address")
}

/// Builder of an HTTP client, which follows no redirects.
pub(super) fn builder() -> Result<reqwest::ClientBuilder> {
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls::config()?);
    Ok(builder.redirect(Policy::none()))
}

/// HTTP client of a server, with its access token.
#[derive(Clone)]
pub(super) struct Web {
    client: reqwest::Client,
    access: Option<Arc<Access>>,
}

impl Web {
    /// Sends a request with the current token, and again with a renewed one if the server rejects
    /// it.
    async fn with_token<T, F>(&self, request: impl Fn(Option<String>) -> F + Send) -> Outcome<T>
    where
        F: Future<Output = Outcome<T>> + Send,
        T: Send,
    {
        let Some(access) = &self.access else { return request(None).await };
        let mut token = access.token().await?;
        for _ in 0..RENEWALS {
            let renewed = match request(token.clone()).await {
                Err(StreamableHttpError::AuthRequired(why)) => {
                    access.renew(token.as_deref(), Some(&why.www_authenticate_header), None).await
                }
                Err(StreamableHttpError::InsufficientScope(why)) => {
                    let more = why.required_scope.as_deref().unwrap_or_default();
                    access.renew(token.as_deref(), Some(&why.www_authenticate_header), Some(more)).await
                }
                // A server may reject a request without naming its metadata.
                Err(StreamableHttpError::UnexpectedServerResponse(said)) if said.starts_with("HTTP 401") => {
                    access.renew(token.as_deref(), None, None).await
                }
                done => return done,
            };
            token = Some(renewed?);
        }
        request(token).await
    }
}

/// Handles a restarted server, which does not know the session. Some respond with status 400 and a
/// JSON-RPC error without id: the request was not executed then, and is repeated in a new session.
fn of_session(answer: Outcome<StreamableHttpPostResponse>, is_in_session: bool) -> Outcome<StreamableHttpPostResponse> {
    let is_unknown = match &answer {
        Err(StreamableHttpError::UnexpectedServerResponse(said)) => said.starts_with("HTTP 400"),
        Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), _)) => error.id.is_none(),
        _ => false,
    };
    if is_unknown && is_in_session { Err(StreamableHttpError::SessionExpired) } else { answer }
}

impl StreamableHttpClient for Web {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Outcome<StreamableHttpPostResponse> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Outcome<StreamableHttpPostResponse> {
        let is_in_session = session.is_some();
        let post = |token| post::post(&self.client, &uri, &message, session.as_deref(), token, headers.clone(), limits);
        of_session(self.with_token(post).await, is_in_session)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Outcome<()> {
        // Nobody is asked for access merely to close a session.
        let token = match &self.access {
            Some(access) => access.token().await?,
            None => None,
        };
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Outcome<BoxStream<'static, Result<Sse, SseError>>> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, limit).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
        limit: usize,
    ) -> Outcome<BoxStream<'static, Result<Sse, SseError>>> {
        let get = |token| {
            let (uri, session, last) = (uri.clone(), session.clone(), last.clone());
            self.client.get_stream_with_max_sse_event_size(uri, session, last, token, headers.clone(), limit)
        };
        Ok(post::repaired(self.with_token(get).await?, limit))
    }
}
