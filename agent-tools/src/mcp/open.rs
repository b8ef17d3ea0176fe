//! Opening of a connection: transport, revision of the protocol, and the fallbacks of older servers.

use std::sync::Arc;

use agent_core::Result;
use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{
        ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_ct,
        serve_client_with_lifecycle_and_ct,
    },
    transport::IntoTransport,
};
use tokio_util::sync::CancellationToken;

use super::{
    Http, Protocol, endpoint::Kind, failure, handler::Handler, http, lines::Lines, oauth::Access, settings::Settings,
    sse::Sse,
};
use crate::program::Process;

type Service = RunningService<RoleClient, Handler>;

/// An open connection.
pub(super) struct Opened {
    pub(super) service: Service,
    /// True if the transport names the call that a request of the server belongs to.
    pub(super) names_calls: bool,
    /// True if the server speaks a revision without handshake.
    pub(super) is_stateless: bool,
}

/// Connects to the server, and finds the revision that it speaks.
pub(super) async fn open(settings: &Arc<Settings>, handler: Handler, stop: &CancellationToken) -> Result<Opened> {
    let begins = settings.era.begins(settings.protocol);
    let opened = match once(settings, handler.clone(), begins, stop).await? {
        Err(failed) if begins == Protocol::Auto && may_need_handshake(&failed.error) => {
            // Some older servers end the connection at a first request that they do not know.
            let second = once(settings, handler, Protocol::Handshake, stop).await?;
            second.map_err(|later| if is_silent(&later) { failed } else { later })
        }
        opened => opened,
    };
    match opened {
        Ok((service, names_calls)) => {
            let told = service.peer().peer_info();
            let is_stateless = told.is_some_and(|info| !info.protocol_version.has_initialize());
            settings.era.learn(!is_stateless);
            Ok(Opened { service, names_calls, is_stateless })
        }
        Err(failed) => {
            // The server may be another one when it is back.
            settings.era.learn(false);
            Err(failure::of_connection(settings, &failed.error, failed.last_words))
        }
    }
}

/// Failure of an attempt to connect.
struct Failed {
    error: ClientInitializeError,
    /// Last lines that a program wrote to its standard error.
    last_words: Option<String>,
}

/// A service, and whether its transport names the calls that requests of the server belong to.
type Attempt = Result<(Service, bool), Box<Failed>>;

fn failed(error: ClientInitializeError) -> Box<Failed> {
    Box::new(Failed { error, last_words: None })
}

/// Opens a connection that begins in this way.
async fn once(
    settings: &Arc<Settings>,
    handler: Handler,
    begins: Protocol,
    stop: &CancellationToken,
) -> Result<Attempt> {
    let (name, limit) = (settings.name.clone(), settings.message_limit());
    let service = match &settings.endpoint.0 {
        Kind::Stdio(stdio) => {
            let (process, streams) = Process::start(&name, stdio)?;
            let last_words = process.last_words();
            match serve(handler, Lines::new(name, streams, limit).of(process), begins, stop).await {
                Ok(service) => Ok(service),
                Err(error) => Err(Box::new(Failed { error, last_words: last_words.read().await })),
            }
        }
        Kind::Streams(streams) => {
            let lines = Lines::new(name, (streams.0)().await?, limit);
            serve(handler, lines, begins, stop).await.map_err(failed)
        }
        Kind::Http(server) => return over_http(settings, server, handler, begins, stop).await,
    };
    Ok(service.map(|service| (service, false)))
}

async fn over_http(
    settings: &Arc<Settings>,
    server: &Http,
    handler: Handler,
    begins: Protocol,
    stop: &CancellationToken,
) -> Result<Attempt> {
    let (name, limit) = (settings.name.clone(), settings.message_limit());
    let access = server.oauth.as_ref();
    let access = access.map(|oauth| settings.access.get_or_init(|| Arc::new(Access::new(oauth, &server.url))).clone());
    let streamable = http::transport(server, access, limit)?;
    match serve(handler.clone(), streamable, begins, stop).await {
        Ok(service) => Ok(Ok((service, true))),
        Err(error) if failure::wants_to_know_who_asks(&error) || begins == Protocol::Stateless => {
            Ok(Err(failed(error)))
        }
        // An older server does not support streamable HTTP. If it is not an SSE server either, the
        // first error is reported.
        Err(error) => match Sse::open(name, server, limit).await {
            Some(sse) => {
                let service = serve_client_with_ct(handler, sse, stop.clone()).await;
                Ok(service.map(|service| (service, false)).map_err(failed))
            }
            None => Ok(Err(failed(error))),
        },
    }
}

async fn serve<T, E, A>(
    handler: Handler,
    transport: T,
    begins: Protocol,
    stop: &CancellationToken,
) -> Result<Service, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = match begins {
        Protocol::Auto => {
            ClientLifecycleMode::Auto { preferred_versions, legacy_version: Some(ProtocolVersion::V_2025_11_25) }
        }
        Protocol::Stateless => ClientLifecycleMode::Discover { preferred_versions },
        Protocol::Handshake => ClientLifecycleMode::Initialize,
    };
    Box::pin(serve_client_with_lifecycle_and_ct(handler, transport, mode, stop.clone())).await
}

/// Returns true if a probe may have failed because the server is older than the probe.
fn may_need_handshake(error: &ClientInitializeError) -> bool {
    let tried_both = matches!(error, ClientInitializeError::LegacyFallbackFailed { .. });
    let is_modern = matches!(error, ClientInitializeError::JsonRpcError(_));
    !tried_both && !is_modern && !failure::wants_to_know_who_asks(error)
}

/// Returns true if nothing says why.
fn is_silent(failed: &Failed) -> bool {
    matches!(failed.error, ClientInitializeError::ConnectionClosed(_)) && failed.last_words.is_none()
}
