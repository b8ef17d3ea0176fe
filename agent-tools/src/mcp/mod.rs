//! Tools of servers of the Model Context Protocol.
//!
//! A [`Client`] is a tool set of one server: a program that it starts ([`Stdio`]), a server at a URL ([`Http`]), or one at the end
//! of two [`Streams`]. An agent may have any number of them; nothing is shared between clients.
//!
//! # What becomes of what a server does
//!
//! | the server | the run |
//! |---|---|
//! | cannot be reached | goes on without its tools, with a warning in the log; the server is tried again, later and later. A server that is [`required`](ClientBuilder::required) fails the run |
//! | dies or hangs | the model is told by an error result; the next call connects anew |
//! | says that its tools changed | the next model call has the new ones |
//! | says that its resources or prompts changed | programs are [told](Client::list_changes) |
//! | hints that a tool only reads, or is idempotent | its [`Effect`](agent_core::Effect) is `Pure` or `Idempotent`, unless hints are [distrusted](ClientBuilder::distrust_hints); else it is `AtMostOnce` |
//! | hints that a tool may destroy something, or not, and what it reaches | its [`ToolHints`](agent_core::tool::ToolHints) say so: approvals that [ask about what is risky](agent_core::ToolRequest::is_risky) go by that |
//! | gives text, images, sound, resources | parts of the result; a link to a resource, and what no provider takes, is text that says so |
//! | gives structured content | the [value](agent_core::ToolOutput::as_value) of the result; an error result if it does not fit the output schema of its tool, unless [unchecked](ClientBuilder::unchecked_output) |
//! | says that a call failed | an error result, with what the server gave |
//! | gives more than [`max_result`](ClientBuilder::max_result) | an error result that says how much it was |
//! | tells how far it is | an event [`ToolProgress`](agent_core::EventKind::ToolProgress) |
//! | logs | `tracing` |
//!
//! A call ends with its timeout, the run's deadline and the run's cancellation, and the server is told then.
//!
//! # Questions of a server
//!
//! With [`elicitation`](ClientBuilder::elicitation), a server may ask a person while one of its tools is at work. That is a question
//! of the run, of kind [`ELICITATION`], with `server`, `message` and `schema` or `url`; it is answered with
//! `{"action": "accept", "content": {..}}`, or an action `decline` or `cancel`. Since a run may wait for days, and go on in another
//! process, the call is given up while it waits. When there is an answer, **the tool is called again from its beginning**, and the
//! server's question is answered at once. So a tool that does something before it asks does that twice. A connection that does not
//! say which call asks is for no further call after one was given up, since a late question would find another run: the next call
//! connects anew, and a server that is a program is started again.
//!
//! With [`sampling`](ClientBuilder::sampling), it may ask a model in the same way; what the model said is kept for a call that is
//! made again. A server that asks outside of a call is refused.

mod builder;
mod calls;
mod changes;
mod client;
mod connection;
mod content;
mod endpoint;
mod failure;
mod handler;
mod http;
mod lines;
mod link;
mod list;
mod name;
mod oauth;
mod prompts;
mod question;
mod resource_tools;
mod resources;
mod sampling;
#[cfg(feature = "sandbox")]
mod sandboxed;
mod server;
mod settings;
mod sse;
mod tool;

pub use self::{
    builder::ClientBuilder,
    changes::ListChange,
    client::Client,
    endpoint::{Endpoint, Http, Streams},
    oauth::{Authorizer, FileTokens, Loopback, MemoryTokens, OAuth, TokenStore},
    prompts::{Prompt, PromptArgument},
    question::{ELICITATION, Elicitation},
    resources::{Resource, ResourceTemplate},
    server::{
        Caller, CompletionRequest, HttpServer, HttpService, LogLevel, PromptRequest, ResourceRequest, Server,
        ServerBuilder,
    },
};
pub use crate::program::{Reader, Stdio, Writer};
