//! Tools from closures.

use std::{any::type_name, fmt, marker::PhantomData};

use agent_core::{Result, Tool, ToolOutput, ToolRequest, ToolSpec, async_trait};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{IntoToolOutput, schema};

/// Creates a tool from a closure with typed arguments. The schema is derived from the type: the doc
/// comments of its fields are the descriptions of the parameters for the model.
///
/// Unless [`with_options`](crate::ToolExt::with_options) sets another effect, a call that a crash
/// left in doubt is not repeated: the run asks a person.
///
/// ```
/// use agent_core::{Effect, Tool, ToolRequest};
/// use agent_tools::{ToolExt, from_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: i64,
///     b: i64,
/// }
///
/// let add = from_fn("add", "Adds two numbers.", async |Add { a, b }, _: ToolRequest| a + b)
///     .with_options(|o| o.effect(Effect::Pure));
/// assert_eq!(add.spec().parameters["properties"]["a"]["description"], "The first number.");
/// ```
pub fn from_fn<A, F, Fut>(name: impl Into<String>, description: impl Into<String>, function: F) -> FromFn<A, F>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(A, ToolRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    from_schema(name, description, schema::of_arguments::<A>(), function)
}

/// Like [`from_fn`], with an explicit schema: for arguments as [`Value`] whose schema is only known
/// at run time.
///
/// ```
/// use agent_core::{Tool, ToolRequest};
/// use agent_tools::from_schema;
/// use serde_json::{Value, json};
///
/// let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
/// let echo = from_schema("echo", "Says it again.", schema, async |args: Value, _: ToolRequest| args["text"].clone());
/// assert_eq!(echo.spec().name, "echo");
/// ```
pub fn from_schema<A, F, Fut>(
    name: impl Into<String>,
    description: impl Into<String>,
    parameters: Value,
    function: F,
) -> FromFn<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    let spec =
        ToolSpec::new(name, description, parameters).with_output(<Fut::Output as IntoToolOutput>::output_schema());
    FromFn { spec, function, args: PhantomData }
}

/// Tool from a closure; made by [`from_fn`] and [`from_schema`].
pub struct FromFn<A, F> {
    spec: ToolSpec,
    function: F,
    args: PhantomData<fn(A)>,
}

#[async_trait]
impl<A, F, Fut> Tool for FromFn<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let output = (self.function)(req.parse()?, req);
        output.await.into_tool_output()
    }
}

impl<A, F> fmt::Debug for FromFn<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").field("spec", &self.spec).field("function", &type_name::<F>()).finish()
    }
}
