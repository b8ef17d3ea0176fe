//! Doubles for tests of middleware, tools and models, and the parts of simulated worlds in which everything goes wrong that
//! can.

mod byte_engine;
mod every_hook;
mod faults;
mod faulty_model;
mod faulty_tool;
mod mortal;
mod outside;
mod random_model;
mod rng;
mod run;
mod scripted;
mod seen;
mod trace;
mod turn;

pub use self::{
    byte_engine::{ByteAttempt, ByteEngine},
    every_hook::EveryHook,
    faults::{Fault, Faults},
    faulty_model::FaultyModel,
    faulty_tool::FaultyTool,
    mortal::MortalJournal,
    outside::Outside,
    random_model::RandomModel,
    rng::SeededRng,
    run::{detached_run, detached_run_as},
    scripted::ScriptedModel,
    seen::Seen,
    trace::HookTrace,
    turn::Turn,
};
