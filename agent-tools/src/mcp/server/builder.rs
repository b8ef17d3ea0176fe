//! Server builder.

use std::{
    fmt,
    sync::{Arc, RwLock},
};

use agent_core::{Message, Result, SubAgent, Tool, tool::Secret};

use super::{
    About, CompletionRequest, Inner, PromptRequest, ResourceRequest, Server,
    connection::Connections,
    offers::{Handle, Offers, Parts, What},
    waiting::Waiting,
};
use crate::{
    IntoToolOutput, ToolSet,
    mcp::{Prompt, Resource, ResourceTemplate},
};

/// Builds a [`Server`]; made by [`Server::builder`].
#[must_use]
pub struct ServerBuilder {
    about: About,
    parts: Parts,
}

/// Wraps a handler function of the application.
fn handle<Q: 'static, A: 'static, T: 'static, F, Fut>(function: F, finish: fn(T) -> Result<A>) -> Handle<Q, A>
where
    F: Fn(Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    Arc::new(move |asked| {
        let answer = function(asked);
        Box::pin(async move { finish(answer.await) })
    })
}

impl ServerBuilder {
    pub(super) fn new(name: String) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let about = About { name, version, instructions: None, hosts: Vec::new(), bearer: None };
        Self { about, parts: Parts::default() }
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.parts.tools.push(What::Tool(Arc::new(tool)));
        self
    }

    /// Adds the tools of a set.
    pub fn tools(mut self, tools: ToolSet) -> Self {
        self.parts.tools.extend(tools.into_iter().map(What::Tool));
        self
    }

    /// Adds an agent as a tool, named by its key: it takes a `task` and returns the answer.
    /// Questions of its run go to the client's user.
    pub fn agent(mut self, agent: SubAgent) -> Self {
        self.parts.tools.push(What::Agent(agent));
        self
    }

    /// Adds a resource. `read` returns its contents, in the forms that a tool may
    /// [return](IntoToolOutput): text has the resource's media type, or `text/plain`. The client
    /// receives the message of an error.
    pub fn resource<F, Fut>(mut self, resource: Resource, read: F) -> Self
    where
        F: Fn(ResourceRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolOutput + 'static> + Send + 'static,
    {
        self.parts.resources.push((resource, handle(read, IntoToolOutput::into_tool_output)));
        self
    }

    /// Adds the resources whose URIs match a template: `{name}` matches a segment between two `/`,
    /// `{+name}` matches anything. The request carries the values; they are arbitrary input from a
    /// client.
    pub fn resource_template<F, Fut>(mut self, template: ResourceTemplate, read: F) -> Self
    where
        F: Fn(ResourceRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolOutput + 'static> + Send + 'static,
    {
        self.parts.templates.push((template, handle(read, IntoToolOutput::into_tool_output)));
        self
    }

    /// Adds a prompt. `make` returns its messages, of users and assistants.
    pub fn prompt<F, Fut>(mut self, prompt: Prompt, make: F) -> Self
    where
        F: Fn(PromptRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Message>>> + Send + 'static,
    {
        self.parts.prompts.push((prompt, handle(make, |made| made)));
        self
    }

    /// Adds completions for an argument of the prompt of this name, or for a name in the template
    /// of this URI: `complete` returns suggestions, the likeliest first. At most a hundred are sent
    /// to the client.
    pub fn completion<F, Fut>(mut self, of: impl Into<String>, argument: impl Into<String>, complete: F) -> Self
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.parts.completions.push((of.into(), argument.into(), handle(complete, Ok)));
        self
    }

    /// Adds skills as resources: `skill://name/SKILL.md` holds the instructions of a skill, and
    /// `skill://name/` followed by a path a further file.
    #[cfg(feature = "skills")]
    pub fn skills(self, skills: &crate::Skills) -> Self {
        let served = skills.iter().fold(self, |server, skill| {
            let uri = format!("skill://{}/SKILL.md", skill.name());
            let about = Resource::new(uri, skill.name()).with_description(skill.description());
            let (name, skills) = (skill.name().to_owned(), skills.clone());
            server.resource(about.with_mime("text/markdown"), move |_| skills.clone().text_of(name.clone(), None))
        });
        let (skills, about) = (skills.clone(), "A file of a skill, as its instructions name it.");
        let template = ResourceTemplate::new("skill://{name}/{+path}", "skill files").with_description(about);
        served.resource_template(template, move |asked| {
            let (name, path) = (asked.get("name").to_owned(), asked.get("path").to_owned());
            skills.clone().text_of(name, Some(path))
        })
    }

    /// Sets the server's instructions for clients.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.about.instructions = Some(text.into());
        self
    }

    /// Sets the version of the server that clients see. Default: this crate's version.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.about.version = version.into();
        self
    }

    /// Accepts HTTP requests for this host, such as `tools.example.org`. Default: only the local
    /// names of this machine, which prevents DNS rebinding by web pages.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.about.hosts.push(host.into());
        self
    }

    /// Requires this bearer token for HTTP requests. Default: every client that can reach the
    /// server may call its tools.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.about.bearer = Some(Secret::from(token));
        self
    }

    /// Builds the server. It serves no client yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if two tools, prompts or resources have
    /// the same name or URI, the schema of a tool or a template is invalid, or a completion names
    /// an unknown argument.
    pub fn build(self) -> Result<Server> {
        let offers = RwLock::new(Arc::new(Offers::new(self.parts)?));
        let (connections, waiting) = (Connections::default(), Waiting::default());
        Ok(Server(Arc::new(Inner { about: self.about, offers, connections, waiting })))
    }

    pub(super) fn offers(self) -> Result<Offers> {
        Offers::new(self.parts)
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("name", &self.about.name).finish_non_exhaustive()
    }
}
