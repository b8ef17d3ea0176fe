//! Agents from files.

mod nexau;

use serde_json::Value;

pub use self::nexau::{Difference, DifferenceKind};

/// An agent file of NexAU's as one of this framework, and what is not as it was there. References (`${env.NAME}`) stay as they are,
/// and files that it names are named in the translation.
///
/// ```
/// use serde_json::json;
///
/// let file = json!({"type": "agent", "name": "helper", "llm_config": {"model": "gpt-5", "base_url": "https://llm.acme.example"},
///     "max_iteration": 5});
/// let (agent, differences) = agent::config::from_nexau(file);
/// assert_eq!(agent["model"]["name"], "openai:gpt-5@chat");
/// assert!(differences.iter().any(|difference| difference.path == "/max_iteration"), "a slip of the pen");
/// ```
pub fn from_nexau(file: Value) -> (Value, Vec<Difference>) {
    nexau::translate(file)
}
