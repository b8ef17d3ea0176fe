//! [`ToolFinding`]: tools that a provider rejects.

/// A rule of a model's provider that a tool on offer violates; see
/// [`Model::check_tools`](super::Model::check_tools).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolFinding {
    /// Name of the tool; `None` if the rule is about all tools together.
    pub tool: Option<String>,
    /// The rule: "no 'anyOf' at the root of a schema".
    pub rule: String,
    /// Source of the rule, and the date on which it held.
    pub source: String,
    /// Change of the tool in outgoing requests that satisfies the rule. `None` if no change does: the
    /// provider rejects every request that offers the tool.
    pub repair: Option<String>,
    /// Remedy for the author of the tool or of the agent.
    pub remedy: String,
}

impl ToolFinding {
    /// Creates a finding about a tool that the provider rejects.
    pub fn new(rule: impl Into<String>, source: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { tool: None, rule: rule.into(), source: source.into(), repair: None, remedy: remedy.into() }
    }

    /// Sets the name of the tool. Default: all tools together.
    #[must_use]
    pub fn with_tool(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// Sets the change in outgoing requests. Default: none.
    #[must_use]
    pub fn with_repair(mut self, repair: impl Into<String>) -> Self {
        self.repair = Some(repair.into());
        self
    }
}
