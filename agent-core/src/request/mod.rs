//! Requests of runs, and the agents that serve them. The public modules [`run`](crate::run) and
//! [`engine`](crate::engine) re-export them.

mod handle;
mod run_request;
mod sub_agent;

pub use self::{
    handle::SubRunHandle,
    run_request::{Parent, RunInput, RunRequest, ToolChoices},
    sub_agent::{AgentService, SubAgent, SubAgents},
};
