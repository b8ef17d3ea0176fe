//! Looking at an answer before the run ends with it: [`Judge`] and [`Reflection`].

mod judge;
mod reflection;
mod reviewer;

use std::collections::BTreeSet;

use agent_core::{Message, Model, Result, RunCx, Verdict};

pub use self::{
    judge::{Judge, JudgeConfig, OnRejected},
    reflection::{Reflection, ReflectionConfig},
    reviewer::{Judgement, Reviewer},
};
use crate::{
    archive, cut,
    kept::Kept,
    side_call::{SideCall, tagged},
};

/// The steps after which a run was sent round again.
type Rounds = Kept<BTreeSet<u32>>;

/// How often the run was sent round again before this step.
fn rounds_before(rounds: &Rounds, cx: &RunCx) -> Result<usize> {
    // After a restart the same step may come here again: it counts once.
    rounds.update(cx, |steps| steps.iter().filter(|step| **step < cx.step()).count())
}

/// Sends the run round again, with these words for the model.
fn go_round(rounds: &Rounds, cx: &RunCx, words: String) -> Result<Verdict> {
    // After a restart the model may have been told already.
    if rounds.update(cx, |steps| steps.insert(cx.step()))? {
        cx.steer(Message::user(words))?;
    }
    Ok(Verdict::Again)
}

/// A look at the conversation and its answer, as material.
fn look<'a>(model: &'a dyn Model, system: &'a str, cx: &RunCx, answer: &str, most_chars: usize) -> SideCall<'a> {
    let mut conversation = String::new();
    for message in cx.history().iter() {
        conversation.push_str(&format!("[{}] {}\n", message.role(), archive::words_of(message)));
    }
    let recent = cut::tail(&conversation, most_chars);
    SideCall::new(model, system, format!("{}\n{}", tagged("conversation", recent), tagged("answer", answer)))
}
