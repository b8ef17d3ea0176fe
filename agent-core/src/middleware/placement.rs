//! Where a middleware must stand among others.

/// Where a middleware must stand among others, by their names. Checked when the agent is built.
///
/// ```
/// use agent_core::Placement;
///
/// // "I need `events`, and I must stand inside it."
/// let placement = Placement::default().requires("events").inside("events");
/// assert_eq!(placement.requires, ["events"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// Middlewares that must be there.
    pub requires: Vec<String>,
    /// Middlewares that must not be there.
    pub conflicts: Vec<String>,
    /// Middlewares that this one must stand outside of, where they are there.
    pub outside: Vec<String>,
    /// Middlewares that this one must stand inside of, where they are there.
    pub inside: Vec<String>,
    /// At most one of this name. Default: false.
    pub unique: bool,
}

impl Placement {
    /// `name` must be there.
    #[must_use]
    pub fn requires(mut self, name: impl Into<String>) -> Self {
        self.requires.push(name.into());
        self
    }

    /// `name` must not be there.
    #[must_use]
    pub fn conflicts(mut self, name: impl Into<String>) -> Self {
        self.conflicts.push(name.into());
        self
    }

    /// This one must stand outside `name`: be registered before it.
    #[must_use]
    pub fn outside(mut self, name: impl Into<String>) -> Self {
        self.outside.push(name.into());
        self
    }

    /// This one must stand inside `name`: be registered after it.
    #[must_use]
    pub fn inside(mut self, name: impl Into<String>) -> Self {
        self.inside.push(name.into());
        self
    }

    /// At most one of this name.
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }
}
