//! What goes into a run, and the agents that it goes to. The rooms [`run`](crate::run) and [`engine`](crate::engine) show it.

mod handle;
mod run_request;
mod sub_agent;

pub use self::{
    handle::SubRunHandle,
    run_request::{Parent, RunInput, RunRequest, ToolChoices},
    sub_agent::{AgentService, SubAgent, SubAgents},
};
