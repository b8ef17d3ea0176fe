//! [`ToolSet`]: a named collection of tools.

use std::{collections::BTreeSet, fmt, sync::Arc, vec};

use agent_core::{Error, Result, Tool};

use crate::ToolExt;

/// Named collection of tools. Cheap to clone: the tools are shared.
///
/// ```
/// use agent_core::{Tool, ToolRequest};
/// use agent_tools::{ToolSet, from_fn};
///
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Page { url: String }
/// let fetch = from_fn("fetch", "Gets a page.", async |page: Page, _: ToolRequest| page.url);
/// let search = from_fn("search", "Searches.", async |_: Page, _: ToolRequest| "nothing found");
///
/// let web = ToolSet::new("web").tool(fetch).tool(search).prefixed("web_");
/// assert_eq!(web.names(), ["web_fetch", "web_search"]);
///
/// let error = web.named(&["web_serch"]).expect_err("no such tool");
/// assert!(error.to_string().contains("web_fetch, web_search"));
/// ```
#[derive(Clone, Default)]
pub struct ToolSet {
    name: String,
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolSet {
    /// Creates an empty set. Error messages show the name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), tools: Vec::new() }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.shared(Arc::new(tool))
    }

    /// Adds a shared tool.
    #[must_use]
    pub fn shared(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds the tools of another set.
    #[must_use]
    pub fn extend(mut self, other: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(other);
        self
    }

    /// Prefixes every name with `prefix`.
    #[must_use]
    pub fn prefixed(mut self, prefix: &str) -> Self {
        let renamed = |tool: Arc<dyn Tool>| -> Arc<dyn Tool> {
            let name = format!("{prefix}{}", tool.spec().name);
            Arc::new(tool.named(name))
        };
        self.tools = self.tools.into_iter().map(renamed).collect();
        self
    }

    /// Returns the tools with these names only, in this order.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if a name is unknown; the message lists
    /// the known ones.
    pub fn named(&self, names: &[&str]) -> Result<Self> {
        let known = self.names();
        let find = |name: &&str| {
            let place = known.iter().position(|known| known == name);
            place.map(|i| self.tools[i].clone()).ok_or_else(|| {
                Error::config(format!("no tool '{name}' in the set '{}'; there are: {}", self.name, known.join(", ")))
            })
        };
        Ok(Self { name: self.name.clone(), tools: names.iter().map(find).collect::<Result<_>>()? })
    }

    /// Returns the name of the set.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the tools.
    pub fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.spec().name).collect()
    }

    /// Returns the tools.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if two have the same name.
    pub fn into_tools(self) -> Result<Vec<Arc<dyn Tool>>> {
        let mut seen = BTreeSet::new();
        for name in self.names() {
            if seen.contains(&name) {
                let set = &self.name;
                return Err(Error::config(format!(
                    "two tools of the set '{set}' are named '{name}': rename one with .named(..) or .prefixed(..)"
                )));
            }
            seen.insert(name);
        }
        Ok(self.tools)
    }
}

impl IntoIterator for ToolSet {
    type Item = Arc<dyn Tool>;
    type IntoIter = vec::IntoIter<Arc<dyn Tool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.tools.into_iter()
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSet").field("name", &self.name).field("tools", &self.names()).finish()
    }
}
