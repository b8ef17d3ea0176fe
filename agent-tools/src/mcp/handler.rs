//! Handler of a server's requests and notifications.
#![expect(
    deprecated,
    reason = "roots, sampling and logging are on their way out of the protocol, and servers have them"
)]

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use agent_core::{Error, ErrorKind};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
        ElicitResult, ElicitationAction, ElicitationCapability, Implementation, ListRootsResult, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam,
        RootsCapabilities, SamplingCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{sync::broadcast, time::Instant};

use super::{
    calls::{Call, Calls},
    changes::ListChange,
    content,
    failure::short,
    inputs::{self, QUESTION},
    question, sampling,
    settings::Settings,
};

/// Maximum length of a changed resource's URI, in characters.
const URI: usize = 4096;

/// Maximum number of messages of a server that are logged in a minute.
const LOGGED: u32 = 300;
const MINUTE: Duration = Duration::from_secs(60);

/// Time for a server to cancel a question whose call was cancelled, before it receives an error in
/// place of an answer.
const LINGER: Duration = Duration::from_secs(30);

/// Client side of a connection.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) settings: Arc<Settings>,
    pub(super) calls: Arc<Calls>,
    pub(super) news: Arc<News>,
}

/// Change notifications of a server, across connections.
#[derive(Debug)]
pub(super) struct News {
    /// Number of tool list changes.
    tools: AtomicU64,
    /// Start of the current minute of logging, and the messages in it.
    logged: Mutex<(Option<Instant>, u32)>,
    /// The lists that changed.
    pub(super) lists: broadcast::Sender<ListChange>,
    /// Changed resources, by URI.
    pub(super) resources: broadcast::Sender<String>,
}

impl Default for News {
    fn default() -> Self {
        Self {
            tools: AtomicU64::new(0),
            logged: Mutex::default(),
            lists: broadcast::channel(256).0,
            resources: broadcast::channel(256).0,
        }
    }
}

impl News {
    /// True if a message of the server may be logged: a bounded number per minute.
    fn may_log(&self, server: &str) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.0.is_none_or(|since| since.elapsed() >= MINUTE) {
            *logged = (Some(Instant::now()), 0);
        }
        logged.1 = logged.1.saturating_add(1);
        if logged.1 == LOGGED + 1 {
            tracing::warn!(server, "an MCP server logs too much: the rest of this minute is left out");
        }
        logged.1 <= LOGGED
    }

    /// Reports a changed list.
    pub(super) fn changed(&self, list: ListChange) {
        if list == ListChange::Tools {
            self.tools_changed();
        }
        // Without subscribers, sending fails; likewise below.
        let _ = self.lists.send(list);
    }

    /// Reports a changed resource.
    pub(super) fn updated(&self, uri: String) {
        if uri.len() <= URI {
            let _ = self.resources.send(uri);
        }
    }

    /// Says that the tools may be others now.
    pub(super) fn tools_changed(&self) {
        self.tools.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the number of tool list changes so far.
    pub(super) fn tool_changes(&self) -> u64 {
        self.tools.load(Ordering::Acquire)
    }
}

impl Handler {
    /// Returns the call that the server's request belongs to.
    async fn asking(&self, context: &RequestContext<RoleClient>) -> Result<Arc<Call>, ErrorData> {
        let call = self.calls.that_asks(&context.extensions).await;
        call.ok_or_else(|| ErrorData::invalid_request("no call is under way that this could be asked about", None))
    }
}

/// Rejects a request that is too long.
fn check_size(asks: &impl Serialize, limit: usize) -> Result<(), ErrorData> {
    content::check_size(asks, limit).map_err(|error| ErrorData::invalid_params(error.message().to_owned(), None))
}

/// Returns the response to the server's request, unless the call ends before.
async fn answered<T>(call: &Call, answer: impl Future<Output = Result<T, Error>>) -> Result<T, ErrorData> {
    let answer = tokio::select! {
        answer = answer => answer,
        () = call.over.cancelled() => return Err(ErrorData::internal_error("the call is over", None)),
    };
    answer.map_err(|error| {
        let message = error.message().to_owned();
        // An exhausted budget and similar errors end the run, whatever the server does with the
        // error.
        if !error.kind().is_model_visible() || error.kind() == ErrorKind::Interrupted {
            call.end(error);
        }
        ErrorData::internal_error(message, None)
    })
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::builder().enable_tasks().build();
        capabilities.roots = (!self.settings.roots.is_empty()).then(RootsCapabilities::default);
        capabilities.sampling = self.settings.model.as_ref().map(|_| SamplingCapability::default());
        if self.settings.may_ask_people() {
            let asks = ElicitationCapability::new().with_form(Default::default()).with_url(Default::default());
            capabilities.elicitation = Some(asks);
        }
        let name = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        // Latest version whose connections begin with a handshake, which every server supports.
        ClientConfig::new(capabilities, name).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = question::read(&self.settings.name, &request).filter(|_| self.settings.may_ask_people());
        let Some(asked) = asked else { return Ok(ElicitResult::new(ElicitationAction::Decline)) };
        check_size(&request, QUESTION)?;
        let call = self.asking(&context).await?;
        if let Some(answerer) = &self.settings.answers {
            return answered(&call, asked.answer(&call, &**answerer)).await;
        }
        match asked.ask(&call) {
            Ok(answer) => Ok(answer),
            // The run is suspended, and the call is repeated when there is an answer. The server
            // first receives the cancellation of the call; a request that it does not cancel then
            // gets an error, since nobody has decided anything.
            Err(error) => {
                call.end(error);
                let _ = tokio::time::timeout(LINGER, context.ct.cancelled()).await;
                Err(ErrorData::internal_error("the call was given up while it waits for the answer", None))
            }
        }
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some(model) = &self.settings.model else {
            return Err(ErrorData::invalid_request("this client lets no server ask a model", None));
        };
        check_size(&params, self.settings.limit)?;
        let call = self.asking(&context).await?;
        answered(&call, sampling::ask(&call, &**model, self.settings.sampled_tokens, params)).await
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(inputs::roots(&self.settings))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(call) = self.calls.of_token(&params.progress_token).await {
            let mut progress = json!({"progress": params.progress});
            let message = params.message.as_deref().map(|text| short(text).into());
            let more = [("total", params.total.map(Value::from)), ("message", message)];
            more.into_iter().for_each(|(name, value)| {
                if let Some(value) = value {
                    progress[name] = value;
                }
            });
            call.progress(progress);
        }
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let server = &*self.settings.name;
        if !self.news.may_log(server) {
            return;
        }
        // A line break would make other lines of the log.
        let logger = short(params.logger.as_deref().unwrap_or_default()).escape_debug().to_string();
        let data = match &params.data {
            Value::String(text) => short(text).escape_debug().to_string(),
            other => short(&other.to_string()).escape_debug().to_string(),
        };
        // An error that a server logs is not an error of the application.
        match params.level {
            LoggingLevel::Debug => tracing::debug!(server, logger, "{data}"),
            LoggingLevel::Info | LoggingLevel::Notice => tracing::info!(server, logger, "{data}"),
            _ => tracing::warn!(server, logger, "{data}"),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.news.changed(ListChange::Tools);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.news.changed(ListChange::Resources);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.news.changed(ListChange::Prompts);
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.news.updated(params.uri);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_logs_a_bounded_number_of_messages_per_minute() {
        let news = News::default();
        let logged = || (0..2 * LOGGED).filter(|_| news.may_log("s")).count();
        assert_eq!(logged(), LOGGED as usize);
        tokio::time::advance(MINUTE).await;
        assert_eq!(logged(), LOGGED as usize, "each minute anew");
    }
}
