//! Which tools a model is offered, and what becomes of calls that fail.
//!
//! [`ToolSearch`] and [`ToolSelector`] offer few of many; [`ToolRetry`], [`ToolErrors`] and [`PatchToolCalls`] deal with failures;
//! [`ToolEmulator`] answers in the place of tools. Here are their configurations, and [`PickTools`] for those who pick in code.
//!
//! ```
//! use agent_middleware::{ToolRetry, tools::ToolRetryConfig};
//!
//! let config: ToolRetryConfig = serde_json::from_str(r#"{"retries": 4, "initial_delay": 0.5, "tools": ["web_search"]}"#)?;
//! let retry = ToolRetry::from(config);
//! # drop(retry);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod emulator;
mod errors;
mod patch;
mod retry;
mod search;
mod selector;

pub use self::{
    emulator::{ToolEmulator, ToolEmulatorConfig},
    errors::ToolErrors,
    patch::{PatchToolCalls, PatchToolCallsConfig},
    retry::{ToolRetry, ToolRetryConfig},
    search::{ToolSearch, ToolSearchConfig},
    selector::{PickTools, ToolSelector, ToolSelectorConfig},
};
