//! Tools from a document of OpenAPI 3.0 or 3.1: each operation becomes one.
//!
//! ```
//! use agent_tools::openapi::OpenApi;
//!
//! let document = r#"
//! openapi: 3.1.0
//! servers: [{url: "https://pets.example.org/v1"}]
//! paths:
//!   /pets/{id}:
//!     get:
//!       operationId: getPet
//!       summary: Gets a pet
//!       parameters:
//!         - {name: id, in: path, required: true, schema: {type: integer}, description: Its number.}
//! "#;
//! let pets = OpenApi::builder(document).operation("getPet").build()?;
//! let [pet] = &pets.tools().into_tools()?[..] else { panic!("one operation") };
//! assert_eq!(pet.spec().description, "Gets a pet\nRequest: GET /pets/{id}");
//! assert_eq!(pet.spec().parameters["required"], serde_json::json!(["id"]));
//! # Ok::<(), agent_core::Error>(())
//! ```
//!
//! # What becomes what
//!
//! | in the document | in the tool |
//! |---|---|
//! | `operationId`, or else method and path | the name, made valid and unique |
//! | summary, description, request | the description, with a hint where results come in pages |
//! | parameters of path, query, header and cookie | arguments; of two of one name, the second has its place at its end: `id_query` |
//! | a JSON or form body that is a plain object | its fields, as arguments beside the parameters |
//! | any other body | the argument `body` |
//! | `GET`, `HEAD`, `OPTIONS` | [`Effect::Pure`](agent_core::Effect::Pure) |
//! | `PUT`, `DELETE` | [`Effect::Idempotent`](agent_core::Effect::Idempotent) |
//! | `POST`, `PATCH` | [`Effect::AtMostOnce`](agent_core::Effect::AtMostOnce); with a header `Idempotency-Key` in the document, `Idempotent` under the [call's key](agent_core::ToolRequest::idempotency_key) |
//!
//! References are written out; what is within itself may be anything, and says what it is. `pattern` and `multipleOf` are told in words, and
//! checked by the server.
//!
//! # What is asked
//!
//! The document's server, or the one that is [chosen](OpenApiBuilder::server), and no other: a redirect to another host is an error. A server
//! that only the document names must be on the public internet, and is sent secrets over `https` alone.

mod answer;
mod auth;
mod body;
mod builder;
mod description;
mod document;
mod names;
mod operation;
mod place;
mod request;
mod schema;
mod server;
mod tool;
mod yaml;

use std::sync::Arc;

pub use self::builder::OpenApiBuilder;
#[cfg(feature = "plugins")]
pub(crate) use self::server::servers;
use self::{
    operation::Operation,
    tool::{ApiTool, Client},
};
use crate::ToolSet;

/// Tools from an OpenAPI document; see the [module](self). Cheap to clone.
#[derive(Clone, Debug)]
pub struct OpenApi {
    title: String,
    client: Arc<Client>,
    operations: Vec<Arc<Operation>>,
    left_out: Vec<String>,
}

impl OpenApi {
    /// Builds tools from this document, which is JSON or YAML.
    pub fn builder(document: impl Into<String>) -> OpenApiBuilder {
        OpenApiBuilder::new(document.into())
    }

    /// The tools. [`prefixed`](ToolSet::prefixed) keeps those of two APIs apart.
    pub fn tools(&self) -> ToolSet {
        let tool = |operation: &Arc<Operation>| ApiTool { client: self.client.clone(), operation: operation.clone() };
        self.operations.iter().map(tool).fold(ToolSet::new(self.title.as_str()), ToolSet::tool)
    }

    /// The operations of which no tool could be made, each with why. An operation that was chosen by its id is never among them:
    /// the tools are then not built.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
}
