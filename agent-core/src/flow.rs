//! What hooks say of what comes next.

/// What a `before_*` hook wants next.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Flow<T> {
    /// Go on inwards.
    #[default]
    Continue,
    /// Skip the call and everything inside, and use this as its result: a cache hit, a rejection, a dry run.
    Answer(T),
}

/// What a hook wants of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// Go on as if the hook were not there.
    #[default]
    Proceed,
    /// Call the model again even if it was done. Step limits still hold.
    Again,
    /// Finish now. Calls that are pending are answered "not run: the run was finished".
    Finish,
}
