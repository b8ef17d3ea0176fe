//! Changes what is said of a tool, not what it does.

use agent_core::{Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait, tool::Reconciled};

/// Changes what is said of a tool: its name, its description, its options.
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
    /// The tool under another name.
    #[must_use]
    fn named(self, name: impl Into<String>) -> Altered<Self> {
        let mut altered = Altered::new(self);
        altered.spec.name = name.into();
        altered
    }

    /// The tool with another description.
    #[must_use]
    fn described(self, description: impl Into<String>) -> Altered<Self> {
        let mut altered = Altered::new(self);
        altered.spec.description = description.into();
        altered
    }

    /// The tool with other options; `change` is given those that it has.
    #[must_use]
    fn with_options(self, change: impl FnOnce(ToolOptions) -> ToolOptions) -> Altered<Self> {
        let mut altered = Altered::new(self);
        altered.options = change(altered.options);
        altered
    }
}

impl<T: Tool> ToolExt for T {}

/// A tool of which something else is said; made by [`ToolExt`].
#[derive(Clone, Debug)]
pub struct Altered<T> {
    tool: T,
    spec: ToolSpec,
    options: ToolOptions,
}

impl<T: Tool> Altered<T> {
    fn new(tool: T) -> Self {
        Self { spec: tool.spec(), options: tool.options(), tool }
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
        self.tool.call(req).await
    }

    async fn warm_up(&self) -> Result<()> {
        self.tool.warm_up().await
    }

    async fn close(&self) -> Result<()> {
        self.tool.close().await
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        self.tool.reconcile(req).await
    }
}
