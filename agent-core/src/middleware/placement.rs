//! Constraints on the position of middlewares.

/// Constraints on a middleware's position among others, by their names. Checked when the agent is
/// built.
///
/// ```
/// use agent_core::Placement;
///
/// // Requires `events`, and must be inside it.
/// let placement = Placement::default().requires("events").inside("events");
/// assert_eq!(placement.requires, ["events"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// Middlewares that must be present.
    pub requires: Vec<String>,
    /// Middlewares that must be absent.
    pub conflicts: Vec<String>,
    /// Middlewares that this one must be outside of, if they are present.
    pub outside: Vec<String>,
    /// Middlewares that this one must be inside of, if they are present.
    pub inside: Vec<String>,
    /// True if at most one middleware may have this name. Default: false.
    pub unique: bool,
}

impl Placement {
    /// Requires `name` to be present.
    #[must_use]
    pub fn requires(mut self, name: impl Into<String>) -> Self {
        self.requires.push(name.into());
        self
    }

    /// Requires `name` to be absent.
    #[must_use]
    pub fn conflicts(mut self, name: impl Into<String>) -> Self {
        self.conflicts.push(name.into());
        self
    }

    /// Requires this middleware to be outside `name`, that is, registered before it.
    #[must_use]
    pub fn outside(mut self, name: impl Into<String>) -> Self {
        self.outside.push(name.into());
        self
    }

    /// Requires this middleware to be inside `name`, that is, registered after it.
    #[must_use]
    pub fn inside(mut self, name: impl Into<String>) -> Self {
        self.inside.push(name.into());
        self
    }

    /// Allows at most one middleware with this name.
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }
}
