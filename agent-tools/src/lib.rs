//! Tools for agents: derive them from functions, collect them, or use the built-in ones.
//!
//! * [`#[tool]`](macro@tool) turns a function into a tool, [`from_fn`] a closure.
//! * [`ToolSet`] collects tools; [`ToolExt`] renames them and changes their options.
//! * [`ArgumentSchema`] parses, repairs and validates the arguments of a call. The executor uses it
//!   for every tool.
//! * [`Structured`] makes a model answer with a value of a Rust type; [`PartialJson`] reads JSON
//!   while it is streamed.
//! * [`Skills`] are instructions that a model loads on demand.
//! * [`retrieval`] splits documents into chunks, indexes and retrieves them; an agent searches them
//!   with a tool.
//! * `mcp` provides the tools of MCP servers (Model Context Protocol; feature `mcp`).
//! * `peers` provides remote agents as tools (features `acp` and `a2a`).
//! * `outbound` sends requests to untrusted addresses (feature `outbound`).
//! * [`Workspace`] is a set of tools for the files below one directory.
//! * [`AskUser`] is a tool by which a model asks the user.
//! * [`RemoteAgent`] is a remote agent as a tool, run through the caller's engine.
//! * [`Finish`] is a tool by which a model declares its task done.
//! * [`Shell`] is a set of tools that run commands in a [`sandbox`].
//! * `web` reads pages and searches (feature `web`), `openapi` generates tools from an API
//!   description (feature `openapi`), `plugin` loads tools from plugin folders (feature `plugins`).
//!
//! ```
//! use agent_tools::{ToolSet, tool};
//!
//! /// Says what the weather is like.
//! #[tool(effect = "pure", timeout = "5s")]
//! async fn weather(
//!     /// A city, such as `Bern`.
//!     city: String,
//!     /// How many days ahead.
//!     days: Option<u32>,
//! ) -> Result<String, std::io::Error> {
//!     Ok(format!("Sun in {city}, in {} days.", days.unwrap_or(0)))
//! }
//!
//! let tools = ToolSet::new("example").tool(weather);
//! assert_eq!(tools.names(), ["weather"]);
//! # use agent_core::Tool;
//! # let parameters = weather.spec().parameters;
//! # assert_eq!(parameters["properties"]["city"]["description"], "A city, such as `Bern`.");
//! # assert_eq!(parameters["required"], serde_json::json!(["city"]));
//! ```
//!
//! # What is checked
//!
//! Arguments, answers and other values are validated against their JSON Schema. The keywords that
//! schemas of Rust types use are always supported: `type`, `enum`, `const`, `properties`,
//! `required`, `additionalProperties`, `items`, `prefixItems`, `$ref` within the schema, `allOf`,
//! `anyOf`, `oneOf`, `not`, `if`, `uniqueItems`, and the limits of numbers, lengths and counts. All
//! others (`pattern`, `patternProperties`, `contains`, `multipleOf`, ..) need the feature
//! `json-schema`. Without it, a schema with such a keyword is rejected when it is compiled, so that
//! no rule is dropped silently; `format` is an annotation in both cases.
//!
//! A hand-written tool needs only `agent-core`: it implements [`Tool`](agent_core::Tool).

mod altered;
mod arguments;
mod ask_user;
#[cfg(any(feature = "macros", feature = "workspace"))]
mod blocking;
#[cfg(any(feature = "pdf", feature = "web"))]
mod documents;
#[cfg(feature = "workspace")]
mod files;
mod finish;
mod from_fn;
#[cfg(any(feature = "a2a", feature = "e2b", feature = "mcp", feature = "openapi", feature = "web"))]
mod http;
#[cfg(any(feature = "a2a", feature = "acp", feature = "mcp"))]
mod lines;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(feature = "outbound")]
pub mod outbound;
mod output;
mod partial_json;
#[cfg(any(feature = "a2a", feature = "acp"))]
pub mod peers;
#[cfg(feature = "sandbox")]
mod per_session;
#[cfg(feature = "plugins")]
pub mod plugin;
#[cfg(any(feature = "acp", feature = "mcp"))]
mod program;
#[cfg(feature = "python")]
#[doc(hidden)]
pub mod python;
mod resource;
pub mod retrieval;
#[cfg(feature = "sandbox")]
pub mod sandbox;
mod schema;
mod served;
mod set;
#[cfg(feature = "sandbox")]
mod shell;
#[cfg(feature = "skills")]
mod skills;
mod structured;
#[cfg(any(
    feature = "a2a",
    feature = "acp",
    feature = "mcp",
    feature = "openapi",
    feature = "pdf",
    feature = "sandbox",
    feature = "web"
))]
mod text;
#[cfg(feature = "web")]
pub mod web;
#[cfg(feature = "mcp")]
mod wildcard;
#[cfg(feature = "workspace")]
mod workspace;

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

#[cfg(feature = "macros")]
pub use agent_tools_macros::tool;
pub use schemars;

#[cfg(any(feature = "acp", feature = "mcp"))]
pub use self::program::Stdio;
#[cfg(feature = "skills")]
pub use self::skills::{Skill, Skills};
#[cfg(feature = "workspace")]
pub use self::workspace::Workspace;
pub use self::{
    altered::{Altered, ToolExt},
    arguments::{ArgumentSchema, Arguments, check_value},
    ask_user::AskUser,
    finish::Finish,
    from_fn::{FromFn, from_fn, from_schema},
    output::{IntoToolOutput, Json, Typed},
    partial_json::PartialJson,
    resource::Resource,
    served::RemoteAgent,
    set::ToolSet,
    structured::{Answer, AnswerMode, InvalidAnswer, PartialAnswer, Structured, json_in},
};
#[cfg(feature = "sandbox")]
pub use self::{per_session::PerSession, shell::Shell};
