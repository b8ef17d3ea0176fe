//! Names for what came without one.

/// The id of the call at `at`, if its server gave it none: the same each time that a recorded answer is read.
pub(crate) fn call_id(response: &str, at: usize) -> String {
    if response.is_empty() { format!("call_{at}") } else { format!("call_{response}_{at}") }
}

/// The tool of a call that names none. It is answered like any tool that is unknown, and providers refuse an empty name.
pub(crate) const NAMELESS: &str = "unknown";
