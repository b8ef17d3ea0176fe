//! Building a client.

use std::{sync::Arc, time::Duration};

use agent_core::{Error, Model, Result, model::Backoff};

use serde_json::Value;

use super::{Client, Elicitation, Endpoint, settings::Settings};

/// What a [`Client`] is to be; made by [`Client::builder`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder(Settings);

impl ClientBuilder {
    pub(super) fn new(name: String, endpoint: Endpoint) -> Self {
        Self(Settings::new(name, endpoint))
    }

    /// Sets what stands before the name of each tool. Default: the name of the server and `_`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.0.prefix = prefix.into();
        self
    }

    /// Offers the tools that this pattern fits, and no others but those that are allowed too. `*` stands for anything; names are
    /// the server's own, without the prefix.
    pub fn allow(mut self, tool: impl Into<String>) -> Self {
        self.0.allowed.push(tool.into());
        self
    }

    /// Offers no tool that this pattern fits, even if it is allowed.
    pub fn deny(mut self, tool: impl Into<String>) -> Self {
        self.0.denied.push(tool.into());
        self
    }

    /// Keeps something as long as the client is there.
    #[cfg(feature = "plugins")]
    pub(crate) fn keep(mut self, what: impl std::any::Any + Send + Sync) -> Self {
        self.0.keeps = Some(std::sync::Arc::new(what));
        self
    }

    /// Sets the longest time of a call, of a resource that is read and of a prompt. The run's deadline holds beside it. Default:
    /// one minute.
    pub fn timeout(mut self, most: Duration) -> Self {
        self.0.timeout = most;
        self
    }

    /// Sets the longest time of a call of one tool, by the server's own name of it.
    pub fn timeout_of(mut self, tool: impl Into<String>, most: Duration) -> Self {
        self.0.timeouts.insert(tool.into(), most);
        self
    }

    /// Sets the longest time until the server is started, reached and has said what it has. Default: 30 seconds.
    pub fn connect_timeout(mut self, most: Duration) -> Self {
        self.0.connect_timeout = most;
        self
    }

    /// Sets how long a server that cannot be reached is left alone before it is tried again. Default: a second that doubles up to
    /// a minute, without end.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.0.backoff = backoff;
        self
    }

    /// Sets the most bytes of a result. The model is shown an error in place of a larger one. Default: 1 MiB.
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.0.limit = bytes;
        self
    }

    /// Has runs fail if the server cannot be reached. Default: its tools are left out, with a warning in the log.
    pub fn required(mut self) -> Self {
        self.0.required = true;
        self
    }

    /// Takes no hint of the server's as true: calls of all of its tools count as [`AtMostOnce`](agent_core::Effect::AtMostOnce).
    /// Default: a tool that says that it only reads is pure, one that says that it is idempotent is that.
    pub fn distrust_hints(mut self) -> Self {
        self.0.distrusts = true;
        self
    }

    /// Never runs a tool of the server beside another call of the same message. Default: calls run together.
    pub fn serial(mut self) -> Self {
        self.0.serial = true;
        self
    }

    /// Takes structured content as it is, also where it does not fit the output schema of its tool: for a server whose schemas are
    /// wrong. Default: the model is shown an error that says where it does not fit.
    pub fn unchecked_output(mut self) -> Self {
        self.0.checks_output = false;
        self
    }

    /// Offers two tools more, to list and to read the server's resources. Default: the model does not see resources.
    pub fn resource_tools(mut self) -> Self {
        self.0.resource_tools = true;
        self
    }

    /// Lets the server ask people while a call is under way: see [elicitation](super#questions-of-a-server). Over streams that do
    /// not say which call asks, calls run one at a time then. Default: the server is told that nobody can be asked.
    pub fn elicitation(mut self) -> Self {
        self.0.asks = true;
        self
    }

    /// Lets the server ask people while a call is under way, whom `answer` asks at once: the person before the terminal, say. It gives the
    /// content that the server's schema asks for, without what has a default there, or none if the person declines. In place of
    /// [`elicitation`](Self::elicitation), so that the run does not wait and the tool is not called again; the call's
    /// [timeout](Self::timeout) holds for the person, too.
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

    /// Lets the server ask this model while a call is under way. It is asked as a part of the run, from the run's budget; over
    /// streams that do not say which call asks, calls run one at a time then. Default: the server is told that there is no model.
    pub fn sampling(mut self, model: impl Model) -> Self {
        self.0.model = Some(Arc::new(model));
        self
    }

    /// Sets the most tokens of what [the model](Self::sampling) says to the server at a time, whatever the server asks for. Default: what it asks
    /// for.
    pub fn max_sampled_tokens(mut self, most: u64) -> Self {
        self.0.sampled_tokens = Some(most);
        self
    }

    /// Tells the server of a root, by its URI such as `file:///srv/files`: where it is to work. It is a hint and no boundary.
    pub fn root(mut self, uri: impl Into<String>) -> Self {
        self.0.roots.push(uri.into());
        self
    }

    /// The client. The server is not started or reached yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if it cannot work: a name that is none, an address or a header that is
    /// not valid, a variable of the environment that is not set.
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
