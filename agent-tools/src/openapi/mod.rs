//! Tools from an OpenAPI 3.0 or 3.1 document: one tool per operation.
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
//! # Mapping
//!
//! | in the document | in the tool |
//! |---|---|
//! | `operationId`, otherwise method and path | the name, made valid and unique |
//! | summary, description, request | the description, with a hint on pagination |
//! | path, query, header and cookie parameters | arguments; of two with the same name, the second gets its location as a suffix: `id_query` |
//! | a JSON or form body that is a plain object | its fields, as arguments beside the parameters |
//! | any other body | the argument `body` |
//! | `GET`, `HEAD`, `OPTIONS` | [`Effect::Pure`](agent_core::Effect::Pure) |
//! | `PUT`, `DELETE` | [`Effect::Idempotent`](agent_core::Effect::Idempotent) |
//! | `POST`, `PATCH` | [`Effect::AtMostOnce`](agent_core::Effect::AtMostOnce); with a header `Idempotency-Key` in the document, `Idempotent` under the [call's key](agent_core::ToolRequest::idempotency_key) |
//!
//! References are inlined; a recursive schema is replaced by one that accepts anything, with a
//! description. `pattern` and `multipleOf` are described in words, and checked by the server.
//!
//! # Servers
//!
//! Requests go to the document's server, or to the [configured](OpenApiBuilder::server) one, and to
//! no other: a redirect to another host is an error. A server that only the document names must be
//! on the public internet, and receives secrets over `https` only.

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
    /// Returns a builder for this document, which is JSON or YAML.
    pub fn builder(document: impl Into<String>) -> OpenApiBuilder {
        OpenApiBuilder::new(document.into())
    }

    /// Returns the tools. [`prefixed`](ToolSet::prefixed) separates those of two APIs.
    pub fn tools(&self) -> ToolSet {
        let tool = |operation: &Arc<Operation>| ApiTool { client: self.client.clone(), operation: operation.clone() };
        self.operations.iter().map(tool).fold(ToolSet::new(self.title.as_str()), ToolSet::tool)
    }

    /// Returns the operations that could not become tools, each with the reason. An operation
    /// selected by its id is never among them: in that case the build fails.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
}
