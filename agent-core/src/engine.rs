//! The engine's side of a run.

pub use crate::{
    event::{emitter::Emitter, hub::EventHub},
    future::catch_panic,
    journal::{
        durable::{Durable, Step, StepBody, StepResult},
        log::RunLog,
    },
    middleware::{
        hooks::{ModelHooks, ModelHooksLayer, ToolHooks, ToolHooksLayer},
        wrap::{ModelWrap, ModelWrapLayer, ToolWrap, ToolWrapLayer},
    },
    run::{
        background::BackgroundRun,
        booking::Booking,
        driver::{RunDriver, RunParts},
        inbox::Inbox,
        pause::Pause,
        request::Parent,
        sub_run::{SubAgentCall, SubRun, SubRunHandle},
        usage::UsageMeter,
    },
};
#[doc(hidden)]
pub use crate::{
    history::repair::{NO_RESULT, unique_ids},
    run::digest::canonical_json,
};
