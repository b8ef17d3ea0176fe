//! Additions to the model's prompt besides the conversation.
//!
//! [`RuntimeEnvironment`], [`TodoList`] and [`Reminders`] add information to the prompt;
//! [`PromptCaching`] asks providers to cache its stable part. This module contains their
//! configurations, and the [`Todo`]s for programs that show them.
//!
//! ```
//! use agent_middleware::{PromptCaching, prompt::PromptCachingConfig};
//!
//! let caching = PromptCaching::from(PromptCachingConfig::default());
//! # drop(caching);
//! ```

mod prompt_caching;
mod reminders;
mod runtime_environment;
mod todo;

pub use self::{
    prompt_caching::{PromptCaching, PromptCachingConfig},
    reminders::{Reminders, RemindersConfig, Repeated},
    runtime_environment::{RuntimeEnvironment, RuntimeEnvironmentConfig},
    todo::{Todo, TodoList, TodoListConfig, TodoStatus},
};
