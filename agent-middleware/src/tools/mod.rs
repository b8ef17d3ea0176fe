//! Selection of the tools offered to a model, and handling of failed calls.
//!
//! [`ToolSearch`] and [`ToolSelector`] offer few of many tools; [`ToolRetry`], [`ToolErrors`] and
//! [`PatchToolCalls`] handle failures; [`ToolEmulator`] answers on behalf of tools. This module
//! contains their configurations, and [`PickTools`] for selection in code.
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
