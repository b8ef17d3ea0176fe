//! Building a server.

use std::{
    fmt,
    sync::{Arc, RwLock},
};

use agent_core::{Message, Result, SubAgent, Tool, tool::Secret};

use super::{
    About, CompletionRequest, Inner, PromptRequest, ResourceRequest, Server,
    connection::Connections,
    offers::{Handle, Offers, Parts, What},
};
use crate::{
    IntoToolOutput, ToolSet,
    mcp::{Prompt, Resource, ResourceTemplate},
};

/// What a [`Server`] is to be; made by [`Server::builder`].
#[must_use]
pub struct ServerBuilder {
    about: About,
    parts: Parts,
}

/// What an author's function does with a request.
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

    /// Serves a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.parts.tools.push(What::Tool(Arc::new(tool)));
        self
    }

    /// Serves the tools of a set.
    pub fn tools(mut self, tools: ToolSet) -> Self {
        self.parts.tools.extend(tools.into_iter().map(What::Tool));
        self
    }

    /// Serves an agent as a tool, under its key: it takes a `task` and gives its answer. What its run asks is put to the client's
    /// user.
    pub fn agent(mut self, agent: SubAgent) -> Self {
        self.parts.tools.push(What::Agent(agent));
        self
    }

    /// Serves a resource. `read` gives what it holds, in the forms that a tool may [give](IntoToolOutput): a text is of the
    /// resource's media type, or `text/plain`. The client is told the message of an error.
    pub fn resource<F, Fut>(mut self, resource: Resource, read: F) -> Self
    where
        F: Fn(ResourceRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolOutput + 'static> + Send + 'static,
    {
        self.parts.resources.push((resource, handle(read, IntoToolOutput::into_tool_output)));
        self
    }

    /// Serves the resources whose URIs are made from a template: `{name}` stands for a piece between two `/`, `{+name}` for anything.
    /// The values of a URI are in the request; they may be anything that a client wrote.
    pub fn resource_template<F, Fut>(mut self, template: ResourceTemplate, read: F) -> Self
    where
        F: Fn(ResourceRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolOutput + 'static> + Send + 'static,
    {
        self.parts.templates.push((template, handle(read, IntoToolOutput::into_tool_output)));
        self
    }

    /// Serves a prompt. `make` gives the messages of users and assistants that it consists of.
    pub fn prompt<F, Fut>(mut self, prompt: Prompt, make: F) -> Self
    where
        F: Fn(PromptRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Message>>> + Send + 'static,
    {
        self.parts.prompts.push((prompt, handle(make, |made| made)));
        self
    }

    /// Completes an argument of the prompt of this name, or a name in the template of this URI: `complete` gives what a user may
    /// mean, the likeliest first. The client is told a hundred of them at most.
    pub fn completion<F, Fut>(mut self, of: impl Into<String>, argument: impl Into<String>, complete: F) -> Self
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.parts.completions.push((of.into(), argument.into(), handle(complete, Ok)));
        self
    }

    /// Serves skills as resources: `skill://name/SKILL.md` are the instructions of each, and `skill://name/` with a path its further
    /// files.
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

    /// Sets what the client is told of the server as a whole.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.about.instructions = Some(text.into());
        self
    }

    /// Sets the version that the client is told. Default: this crate's.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.about.version = version.into();
        self
    }

    /// Takes requests over HTTP for this host, such as `tools.example.org`. Default: those for this machine alone, by its local
    /// names, so that no web page can reach the server under a name of its own.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.about.hosts.push(host.into());
        self
    }

    /// Takes requests over HTTP with this bearer token alone. Default: whoever can reach the server may call its tools.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.about.bearer = Some(Secret::from(token));
        self
    }

    /// The server. Nobody is served yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if two tools, prompts or resources have the same name or URI, the schema of
    /// a tool or a template is none, or something is to be completed that is not there.
    pub fn build(self) -> Result<Server> {
        let offers = RwLock::new(Arc::new(Offers::new(self.parts)?));
        Ok(Server(Arc::new(Inner { about: self.about, offers, connections: Connections::default() })))
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
