//! Client builder.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Model, Result, model::Backoff};

use serde_json::Value;

use super::{Client, Elicitation, Endpoint, Protocol, settings::Settings};

/// Builds a [`Client`]; made by [`Client::builder`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder(Settings);

impl ClientBuilder {
    pub(super) fn new(name: String, endpoint: Endpoint) -> Self {
        Self(Settings::new(name, endpoint))
    }

    /// Sets the prefix of each tool name. Default: the name of the server and `_`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.0.prefix = prefix.into();
        self
    }

    /// Offers only the tools that match this pattern, or another allowed one. `*` matches anything;
    /// names are the server's own, without the prefix.
    pub fn allow(mut self, tool: impl Into<String>) -> Self {
        self.0.allowed.push(tool.into());
        self
    }

    /// Excludes the tools that match this pattern, even if they are allowed.
    pub fn deny(mut self, tool: impl Into<String>) -> Self {
        self.0.denied.push(tool.into());
        self
    }

    /// Keeps a resource alive as long as the client.
    #[cfg(feature = "plugins")]
    pub(crate) fn keep(mut self, what: impl std::any::Any + Send + Sync) -> Self {
        self.0.keeps = Some(std::sync::Arc::new(what));
        self
    }

    /// Sets the longest time of a call, of a resource that is read and of a prompt. A call starts it anew with each report of
    /// progress, up to ten times in all. The run's deadline holds beside it. Default: one minute.
    pub fn timeout(mut self, most: Duration) -> Self {
        self.0.timeout = most;
        self
    }

    /// Sets the timeout of one tool's calls, by the server's name of the tool.
    pub fn timeout_of(mut self, tool: impl Into<String>, most: Duration) -> Self {
        self.0.timeouts.insert(tool.into(), most);
        self
    }

    /// Sets the timeout for starting or reaching the server and its initialisation. Default: 30
    /// seconds.
    pub fn connect_timeout(mut self, most: Duration) -> Self {
        self.0.connect_timeout = most;
        self
    }

    /// Sets the delays between attempts to reach an unavailable server. Default: a second that
    /// doubles up to a minute, without a maximum of attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.0.backoff = backoff;
        self
    }

    /// Sets the maximum size of a result in bytes. The model sees an error in place of a larger
    /// result. Default: 1 MiB.
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.0.limit = bytes;
        self
    }

    /// Makes runs fail if the server is unreachable. Default: its tools are omitted, with a warning
    /// in the log.
    pub fn required(mut self) -> Self {
        self.0.required = true;
        self
    }

    /// Believes the annotations of the server's tools: one that only reads is [`Pure`](agent_core::Effect::Pure), so that it may be
    /// repeated, one that is idempotent is [`Idempotent`](agent_core::Effect::Idempotent), and one that destroys nothing is not
    /// risky. For servers that you would let decide about approvals. Default: all calls count as
    /// [`AtMostOnce`](agent_core::Effect::AtMostOnce), and annotations are believed only where they make a tool riskier.
    pub fn trust_hints(mut self) -> Self {
        self.0.trusts = true;
        self
    }

    /// Pins a tool of the server, by the server's own name, to its [digest](Client::digests). A tool whose description, schemas or
    /// annotations have another digest is left out, with a warning; with any pinned tool, those that are not pinned are left out too.
    pub fn pin(mut self, tool: impl Into<String>, digest: impl Into<String>) -> Self {
        self.0.pinned.insert(tool.into(), digest.into());
        self
    }

    /// Never runs a tool of the server concurrently with another call of the same message. Default:
    /// calls run concurrently.
    pub fn serial(mut self) -> Self {
        self.0.serial = true;
        self
    }

    /// Accepts structured content that violates the tool's output schema: for a server with wrong
    /// schemas. Default: the model sees an error that names the violation.
    pub fn unchecked_output(mut self) -> Self {
        self.0.checks_output = false;
        self
    }

    /// Adds two tools that list and read the server's resources. Default: the model does not see
    /// resources.
    pub fn resource_tools(mut self) -> Self {
        self.0.resource_tools = true;
        self
    }

    /// Allows the server to ask people during a call: see
    /// [elicitation](super#questions-of-a-server). Over connections that do not identify
    /// the call that asks, calls then run one at a time. Default: the capability is not declared.
    pub fn elicitation(mut self) -> Self {
        self.0.asks = true;
        self
    }

    /// Allows the server to ask people during a call; `answer` asks them immediately, for example
    /// at the terminal. It returns the content that the server's schema requests, without fields
    /// that keep their default, or `None` if the person declines. Use it instead of
    /// [`elicitation`](Self::elicitation) if the run must not be suspended and the tool not called
    /// again; the call's [timeout](Self::timeout) includes the person's time.
    ///
    /// ```
    /// use agent_tools::mcp::{Client, Elicitation, Stdio};
    /// use serde_json::json;
    ///
    /// let server = Stdio::new("my-server");
    /// let client = Client::builder("files", server).elicitation_by(async |asked: Elicitation| {
    ///     println!("{} asks: {}", asked.server, asked.message);
    ///     Ok(Some(json!({"name": "Ada"})))
    /// });
    /// # client.build()?;
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn elicitation_by<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Elicitation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Value>>> + Send + 'static,
    {
        self.0.answers = Some(Arc::new(move |asked| Box::pin(answer(asked))));
        self
    }

    /// Allows the server to call this model during a call. The model call is part of the run and
    /// counts against its budget; over connections that do not identify the call that
    /// asks, calls then run one at a time. Default: the capability is not declared.
    pub fn sampling(mut self, model: impl Model) -> Self {
        self.0.model = Some(Arc::new(model));
        self
    }

    /// Sets the maximum of output tokens of a [sampling](Self::sampling) call, whatever the server
    /// requests. Default: the server's request.
    pub fn max_sampled_tokens(mut self, most: u64) -> Self {
        self.0.sampled_tokens = Some(most);
        self
    }

    /// Announces a root to the server, by its URI such as `file:///srv/files`: the place for its
    /// work. It is a hint and no boundary.
    pub fn root(mut self, uri: impl Into<String>) -> Self {
        self.0.roots.push(uri.into());
        self
    }

    /// Selects the revision of the protocol. Default: [`Protocol::Auto`], which probes the server.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.0.protocol = protocol;
        self
    }

    /// Builds the client. The server is not started or reached yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid name, address or header,
    /// or an environment variable that is not set.
    pub fn build(self) -> Result<Client> {
        let settings = self.0;
        let is_name = |text: &str| text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'));
        if settings.name.is_empty() || !is_name(&settings.name) || !is_name(&settings.prefix) {
            let message = "the name and the prefix of a server are letters, digits, '_' and '-'";
            return Err(Error::config(message).with_context("server", &*settings.name));
        }
        settings.endpoint.check().map_err(|e| e.with_context("server", &*settings.name))?;
        Ok(Client::new(settings))
    }
}
