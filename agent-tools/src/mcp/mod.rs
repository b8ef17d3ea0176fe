//! Model Context Protocol (MCP): tools of servers, and a server for tools.
//!
//! A [`Client`] is the tool set of one server: a program that it starts ([`Stdio`]), a server at a
//! URL ([`Http`]), or one behind two [`Streams`]. An agent may have any number of clients, which
//! share nothing.
//!
//! # What becomes of what a server does
//!
//! | the server | the run |
//! |---|---|
//! | cannot be reached | goes on without its tools, with a warning in the log and as an [event](agent_core::EventKind::Warning), and the model gets a tool `connect_NAME` that says why and tries to connect; the server is tried again, later and later. A server that is [`required`](ClientBuilder::required) fails the run |
//! | dies or hangs | the model receives an error result; the next call connects anew |
//! | says that its tools changed | the next model call has the new ones, those that were known in their place; a tool that changed is a warning, and with another digest than its [pinned](ClientBuilder::pin) one it is left out |
//! | says that its resources or prompts changed | programs are [told](Client::list_changes) |
//! | hints that a tool only reads, or is idempotent | nothing, unless its hints are [trusted](ClientBuilder::trust_hints): then its [`Effect`](agent_core::Effect) is `Pure` or `Idempotent`. Otherwise it is `AtMostOnce` |
//! | hints that a tool may destroy something, or reaches an open world | its [`ToolHints`](agent_core::tool::ToolHints) say so: approvals that [ask about risky calls](agent_core::ToolRequest::is_risky) use them. That it does not is believed with trusted hints only |
//! | gives text, images, sound, resources | parts of the result; a link to a resource, and what no provider takes, is text that says so |
//! | returns structured content | the [value](agent_core::ToolOutput::as_value) of the result; an error result if it violates the output schema of its tool, unless [unchecked](ClientBuilder::unchecked_output) |
//! | reports that a call failed | an error result, with the server's content |
//! | returns more than [`max_result`](ClientBuilder::max_result) | an error result that states the size |
//! | tells how far it is | an event [`ToolProgress`](agent_core::EventKind::ToolProgress) |
//! | logs | `tracing`, at most at the level `WARN`, and a bounded number of messages per minute |
//! | sends text that is not valid, `NaN`, or a tool without a schema | the message is repaired: U+FFFD, `null`, a schema of any object |
//!
//! A call ends with its timeout, which starts anew when the server reports progress (up to ten times the timeout in all), the run's deadline and the run's cancellation, and the server is then notified.
//!
//! # Questions of a server
//!
//! With [`elicitation`](ClientBuilder::elicitation), a server may ask a person during a call of one
//! of its tools. The request becomes a question of the run, of kind [`ELICITATION`], with `server`,
//! `message` and `schema` or `url`; its answer is `{"action": "accept", "content": {..}}`, or an
//! action `decline` or `cancel`. Since a run may be suspended for days, and resumed in another
//! process, the call is cancelled meanwhile. When there is an answer, **the tool is called again
//! from its beginning**, and the server's request is answered immediately. So a tool with a side
//! effect before its request repeats that effect. A connection without identification of the asking
//! call is not reused after a cancelled call, since a late request could reach another run: the
//! next call reconnects, and a server that is a program is restarted.
//!
//! With [`sampling`](ClientBuilder::sampling), the server may call a model in the same manner; the
//! model's answer is journalled for a repeated call. A request outside of a call is rejected.

mod away;
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
mod inputs;
mod lenient;
mod lines;
mod link;
mod list;
mod listen;
mod name;
mod oauth;
mod open;
mod post;
mod prompts;
mod protocol;
mod question;
mod resource_tools;
mod resources;
mod rounds;
mod sampling;
#[cfg(feature = "sandbox")]
mod sandboxed;
mod schema;
mod server;
mod settings;
mod sse;
mod tasks;
mod tool;

pub use self::{
    builder::ClientBuilder,
    changes::ListChange,
    client::Client,
    endpoint::{Endpoint, Http, Streams},
    oauth::{Authorizer, FileTokens, Loopback, MemoryTokens, OAuth, TokenStore},
    prompts::{Prompt, PromptArgument},
    protocol::Protocol,
    question::{ELICITATION, Elicitation},
    resources::{Resource, ResourceTemplate},
    server::{
        Caller, CompletionRequest, HttpServer, HttpService, LogLevel, PromptRequest, ResourceRequest, Server,
        ServerBuilder,
    },
};
pub use crate::program::{Reader, Stdio, Writer};
