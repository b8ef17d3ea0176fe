//! API for executors and distributed engines, and for composing stacks or running agents by hand.
//!
//! A [`RunDriver`] drives a run built from [`RunParts`]; its steps go through [`Durable`], its
//! entries through a [`RunLog`], and its events through an [`Emitter`]. None of these can be
//! reached from the [`RunCx`](crate::RunCx) of a hook: a driver returns an [`EngineCx`], and an
//! executor's own services open their runs with an [`EngineKey`]. Delegating middlewares access
//! child runs through [`SubRuns`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_core::{
//!     Message, RunIds,
//!     engine::{Emitter, EventHub, RunDriver, RunLog, RunParts},
//!     journal::MemoryJournal,
//!     storage::{GlobalStorage, State},
//! };
//!
//! let (ids, journal) = (Arc::new(RunIds::root("helper", "s1")), Arc::new(MemoryJournal::default()));
//! let writer = journal.open_now(&ids.session, &ids.agent_id)?;
//! let emitter = Emitter::new(ids.clone(), EventHub::new(journal.clone(), ids.session.clone()), None);
//! let (state, globals) = (State::default(), GlobalStorage::default());
//! let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
//!
//! let mut parts = RunParts::new(ids, emitter, log);
//! (parts.state, parts.globals) = (state, globals);
//! let run = RunDriver::new(parts);
//! run.push(Message::user("hello"))?;
//! assert_eq!((run.cx().history().len(), run.next_step()), (1, 1));
//! # Ok::<(), agent_core::Error>(())
//! ```

pub use crate::{
    cx::{EngineCx, EngineKey, Hook, Inbox, Pause},
    event::{emitter::Emitter, hub::EventHub},
    future::catch_panic,
    journal::durable::{
        Durable, Embedded, KeptCall, KeptError, KeptRun, KeptValue, ServedEnd, ServedRun, Step, StepBody, StepKind,
        StepResult, Steps,
    },
    log::{CallBody, CallLog, RunLog, ToolStep},
    middleware::{
        hooks::{ModelHooks, ModelHooksLayer, ToolHooks, ToolHooksLayer},
        wrap::{ModelWrap, ModelWrapLayer, ToolWrap, ToolWrapLayer},
    },
    request::{Parent, SubRunHandle},
    run::{
        driver::{RunDriver, RunParts},
        sub_run::{SubAgentCall, SubRun},
        sub_runs::SubRuns,
    },
    state::BackgroundRun,
};
#[doc(hidden)]
pub use crate::{
    history::repair::{NO_RESULT, RESULT_LOST, UNKNOWN_OUTCOME, unique_ids},
    state::canonical_json,
};
