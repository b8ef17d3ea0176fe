//! Teams: `run`, `chat`, `resume`, `inspect` and `doctor` of a team's file.

#[cfg(feature = "chat")]
mod answer;
#[cfg(feature = "chat")]
mod chat;
mod open;
mod past;
mod run;
mod show;

#[cfg(feature = "chat")]
pub(crate) use self::chat::chat;
pub(crate) use self::{
    open::{open, served, team_of},
    past::{approve, diff, inspect, resume},
    run::run,
};
