//! Test doubles for tests of middlewares, tools and models, and components for simulations with
//! injected faults. Requires the feature `testing`.
//!
//! ```
//! use agent_core::{
//!     History, Message,
//!     testing::{ScriptedModel, Turn, detached_run},
//! };
//!
//! let model = ScriptedModel::new([Turn::text("four")]);
//! let run = detached_run(History::from_messages([Message::user("2 + 2?")])?);
//! assert_eq!((run.cx().history().len(), model.calls()), (1, 0), "nobody asked the model yet");
//! # Ok::<(), agent_core::Error>(())
//! ```

mod byte_engine;
mod every_hook;
mod faults;
mod faulty_model;
mod faulty_tool;
mod mortal;
mod mortal_engine;
mod outside;
mod random_model;
mod rng;
mod run;
mod scripted;
mod seen;
mod slow_engine;
mod test_call;
mod trace;
mod turn;

pub use self::{
    byte_engine::{ByteAttempt, ByteEngine},
    every_hook::EveryHook,
    faults::{Fault, Faults},
    faulty_model::FaultyModel,
    faulty_tool::FaultyTool,
    mortal::MortalJournal,
    mortal_engine::{MortalProcess, Processes},
    outside::Outside,
    random_model::RandomModel,
    rng::SeededRng,
    run::{detached_run, detached_run_as},
    scripted::ScriptedModel,
    seen::Seen,
    slow_engine::SlowEngine,
    test_call::TestCall,
    trace::HookTrace,
    turn::Turn,
};
