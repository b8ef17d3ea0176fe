//! Teams of agents: a leader plans and spawns members, which claim tasks from a board, exchange messages and
//! hand in results.
//!
//! * [`Team`] is built from agents, and is a service from a [`TeamRequest`] to a [`TeamEnd`].
//! * [`TeamRun`] is a run: a future of its end and a stream of [`TeamEvent`]s, with a [`TeamHandle`].
//! * [`TeamSession`] observes a team, sends messages to its members and answers their questions, from any
//!   process.
//! * [`pattern`] has small compositions of agents: sequence, parallel, router, map-reduce, debate, and more.
//! * [`TeamState`] is the fold of the team's journal: members, [`Board`], messages.
//!
//! The crate uses only the public API of `agent-exec`: each turn of a member is a run of its agent.

mod board;
mod command;
mod driver;
mod end;
mod event;
mod history;
mod log;
mod mail;
mod member;
mod parts;
pub mod pattern;
mod refusal;
mod request;
mod run;
mod session;
mod settings;
mod state;
mod team;
mod tools;
mod turn;

pub use self::{
    board::{Board, Claim, Task, TaskStatus},
    end::{MemberInfo, TeamEnd, TeamEndReason, TeamQuestion},
    event::{TeamChange, TeamEvent, TeamEventKind, TeamEvents},
    history::{TeamDifference, TeamHistory, TeamRecord},
    mail::{Actor, TeamMessage},
    member::{LEADER, Member, MemberStatus, Turn, TurnEnd},
    refusal::{RefusalKind, Refused},
    request::TeamRequest,
    run::{TeamHandle, TeamRun},
    session::TeamSession,
    state::TeamState,
    team::{Team, TeamBuilder},
};
