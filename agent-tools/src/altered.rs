//! Wrapper that changes the specification of a tool, and fixes arguments.

use std::{fmt, sync::Arc};

use agent_core::{Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, tool::Reconciled};
use serde_json::{Map, Value};

/// Changes the specification of a tool: name, description, options and fixed arguments.
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::{Tool, ToolRequest};
/// use agent_tools::{ToolExt, from_fn};
/// use serde_json::Value;
///
/// let search = from_fn("search", "Searches the web.", async |_: Empty, _: ToolRequest| "nothing found");
/// let search = search.named("web_search").with_options(|o| o.timeout(Duration::from_secs(5)));
///
/// assert_eq!(search.spec().name, "web_search");
/// assert_eq!(search.options().timeout, Some(Duration::from_secs(5)));
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Empty {}
/// ```
pub trait ToolExt: Tool + Sized {
    /// Renames the tool.
    #[must_use]
    fn named(self, name: impl Into<String>) -> Altered<Self> {
        let mut altered = Altered::new(self);
        altered.spec.name = name.into();
        altered
    }

    /// Replaces the description of the tool.
    #[must_use]
    fn described(self, description: impl Into<String>) -> Altered<Self> {
        let mut altered = Altered::new(self);
        altered.spec.description = description.into();
        altered
    }

    /// Changes the options of the tool; `change` receives its current options.
    #[must_use]
    fn with_options(self, change: impl FnOnce(ToolOptions) -> ToolOptions) -> Altered<Self> {
        let mut altered = Altered::new(self);
        altered.options = change(altered.options);
        altered
    }

    /// Fixes an argument to the same value in each call: the model neither sees nor sets it.
    ///
    /// ```
    /// use agent_core::{Tool, ToolRequest};
    /// use agent_tools::{ToolExt, from_fn};
    ///
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Query { table: String, text: String }
    /// let search = from_fn("search", "Searches.", async |query: Query, _: ToolRequest| query.text);
    /// let search = search.fixed("table", "orders");
    /// assert!(search.spec().parameters["properties"].get("table").is_none());
    /// assert_eq!(search.spec().parameters["required"][0], "text");
    /// ```
    #[must_use]
    fn fixed(self, argument: &str, value: impl Into<Value>) -> Altered<Self> {
        let mut altered = Altered::new(self);
        let parameters = &mut altered.spec.parameters;
        if let Some(properties) = parameters.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove(argument);
        }
        if let Some(required) = parameters.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name != argument);
        }
        altered.fixed.insert(argument.to_owned(), value.into());
        altered
    }
}

impl<T: Tool> ToolExt for T {}

/// Tool with a changed specification; made by [`ToolExt`].
#[derive(Clone)]
pub struct Altered<T> {
    tool: T,
    spec: ToolSpec,
    options: ToolOptions,
    fixed: Map<String, Value>,
}

impl<T: Tool> Altered<T> {
    fn new(tool: T) -> Self {
        Self { spec: tool.spec(), options: tool.options(), tool, fixed: Map::new() }
    }

    /// Returns the request with the fixed arguments added.
    fn filled(&self, mut req: ToolRequest) -> ToolRequest {
        if !self.fixed.is_empty()
            && let Value::Object(args) = Arc::make_mut(&mut req.args)
        {
            args.extend(self.fixed.clone());
        }
        req
    }
}

#[async_trait]
impl<T: Tool> Tool for Altered<T> {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn options(&self) -> ToolOptions {
        self.options.clone()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        self.tool.call(self.filled(req)).await
    }

    async fn warm_up(&self) -> Result<()> {
        self.tool.warm_up().await
    }

    async fn close(&self) -> Result<()> {
        self.tool.close().await
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        self.tool.reconcile(self.filled(req)).await
    }
}

/// A fixed argument may be a secret, so only its name is shown.
impl<T: fmt::Debug> fmt::Debug for Altered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Altered")
            .field("tool", &self.tool)
            .field("spec", &self.spec)
            .field("options", &self.options)
            .field("fixed", &self.fixed.keys())
            .finish()
    }
}
