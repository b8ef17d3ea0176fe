//! Agent runtime: [`Agent`], its [`AgentBuilder`], and the [`Executor`] with the loop over model
//! and tool calls.
//!
//! An [`Agent`] is thin: it holds configuration and passes each run to the executor. It is a
//! `tower::Service<RunRequest, Response = RunEnd>`, so agents can be layered, rate-limited, and run
//! as sub-agents of others.
//!
//! ```
//! use agent_core::{RunEnd, testing::{ScriptedModel, Turn}};
//! use agent_exec::Agent;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let model = ScriptedModel::new([Turn::text("Hello!")]);
//! let agent = Agent::builder("greeter", model).system("Be kind.").build()?;
//! let end = agent.run("Hi").await?;
//! assert!(matches!(end, RunEnd::Finished(f) if f.answer == "Hello!"));
//! # Ok::<(), agent_core::Error>(()) }).unwrap();
//! ```

mod agent;
mod conversation;
mod definition;
mod drain;
mod engine;
mod executor;
pub mod handoff;
mod leaf;
mod lifecycle;
mod pending;
mod prompts;
mod registry;
mod run;
pub mod sessions;
mod stack;
mod start;
mod texts;
mod typed;
mod worker;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use self::{
    agent::{Agent, AgentBuilder, Relay},
    conversation::Conversation,
    definition::{
        AgentDefinition, FieldDefinition, MarkedText, ModelDefinition, PartDefinition, SubAgentDefinition,
        SystemDefinition, SystemPart,
    },
    drain::{Drain, Drained, shutdown_signal},
    executor::Executor,
    pending::WaitingCall,
    prompts::RequiredVariables,
    registry::{AgentSoFar, DefinitionProblem, PartKind, Registry, UnknownPart},
    run::{Run, RunHandle},
    sessions::{Session, SessionId, Sessions},
    start::check_answer,
    texts::Texts,
    typed::TypedAgent,
    worker::{Worker, WorkerBuilder, WorkerHooks},
};
