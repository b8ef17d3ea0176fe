//! All test suites of agent-exec, in one binary.

mod arguments;
mod bad_input;
mod build_checks;
mod children;
mod coming_back;
mod common;
mod control;
mod delegation;
mod durable;
mod dynamic_tools;
#[cfg(feature = "testing")]
mod engines;
mod event_sinks;
mod events;
mod failed_calls;
mod handoff;
mod haystack;
mod hook_errors;
mod hooks;
mod interrupts;
mod journal;
mod limits;
mod loop_and_exit;
mod middleware_data;
mod model_calls;
mod panics;
mod properties;
mod recovery;
mod replay;
mod safety;
#[cfg(feature = "schema")]
mod schemas;
mod sessions;
#[cfg(feature = "testing")]
mod stacks;
mod state;
mod stop_anywhere;
mod stop_requests;
mod stopped;
mod streamed_calls;
mod structured;
mod sub_agents;
mod tools;
mod tower_layers;
mod typed;
mod worker;
