//! Results of hooks that control the flow of a run.

/// Result of a `before_*` hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Flow<T> {
    /// Continue with the inner layers.
    #[default]
    Continue,
    /// Skip the call and all inner layers, and use this as the result: a cache hit, a rejection, a
    /// dry run.
    Answer(T),
}

/// Effect of a hook on the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Proceed normally.
    #[default]
    Proceed,
    /// Call the model again even if the run was finished. Step limits still apply.
    Again,
    /// Finish now. Pending calls are answered "not run: the run was finished".
    Finish,
}
