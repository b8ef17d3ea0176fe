//! [`Judge`]: reviews each answer before the run ends with it.

use std::{collections::BTreeSet, sync::Arc};

use agent_core::{
    Error, ErrorKind, EventKind, Exit, ExitReason, Message, Middleware, Model, Placement, Result, RunCx, RunEnd,
    Verdict,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Judgement, Reviewer, critic::criticise, reviewer::ask};
use crate::run_value::RunValue;

/// Configuration of a `Judge`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct JudgeConfig {
    /// Maximum number of revisions of an answer. Default: 2; 1 for a critic.
    pub max_rounds: u32,
    /// Treatment of the answer after the last round. Default: [`OnRejected::Accept`];
    /// [`OnRejected::Unseen`] for a critic.
    pub on_rejected: OnRejected,
    /// Criteria beyond the user's request that an answer must meet, for a judge or a critic that is
    /// a model. Default: none.
    pub criteria: String,
    /// Number of characters of the conversation that a model receives, from its end. Default:
    /// 40,000.
    pub context_chars: usize,
}

impl Default for JudgeConfig {
    fn default() -> Self {
        Self { max_rounds: 2, on_rejected: OnRejected::Accept, criteria: String::new(), context_chars: 40_000 }
    }
}

/// Treatment of an answer that is still rejected after the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnRejected {
    /// The run ends with the answer, and with a warning.
    #[default]
    Accept,
    /// The run fails with [`ErrorKind::InvalidAnswer`](agent_core::ErrorKind::InvalidAnswer).
    Error,
    /// The answer after the last round is not reviewed again: the run ends with it.
    Unseen,
}

/// Has a model or a function review each final answer. If it is rejected, the model receives the
/// feedback and continues, in the same run and the same loop, for a [bounded](Self::max_rounds)
/// number of rounds.
///
/// A [judge](Self::new) decides whether an answer is acceptable. A [critic](Self::critic) suggests
/// improvements: draft, critique, revision, which is known as reflection. An agent may have both.
///
/// The review covers answers with which the model ended the run, as a text or by an exit tool; runs
/// ended by a limit or another hook are not reviewed. The feedback stays in the conversation, as a
/// user message. A judging model's call is a call of the run: it counts towards its usage and
/// budget, and its decision is made once, in whichever process the run resumes. Each judgement is
/// an event named `judgement`.
///
/// A judge that fails, or returns an invalid judgement twice, fails the run: an answer without a
/// review is not an accepted one. The run can be resumed from its checkpoint.
///
/// # Order
///
/// The innermost judge runs first, and each runs whatever another decides.
///
/// ```text
/// // right: the redactor has changed the answer before it is judged
/// builder.middleware(Judge::new(model)).middleware(redact_answers)
/// // wrong: the judged answer is not the one that the user receives
/// builder.middleware(redact_answers).middleware(Judge::new(model))
/// ```
///
/// # Example
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_middleware::Judge;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("starts").block_on(async {
/// let judge = ScriptedModel::new([
///     Turn::text(r#"{"verdict": "continue", "feedback": "Say why."}"#),
///     Turn::text(r#"{"verdict": "stop"}"#),
/// ]);
/// let model = ScriptedModel::new([Turn::text("No."), Turn::text("No, since it rains.")]);
/// let agent = Agent::builder("careful", model).middleware(Judge::new(judge).max_rounds(1)).build()?;
/// let end = agent.run("Shall we go out?").await?.finished().expect("finishes");
/// assert_eq!(end.answer, "No, since it rains.");
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("runs");
/// ```
#[derive(Clone)]
pub struct Judge {
    name: &'static str,
    judge: Who,
    config: JudgeConfig,
}

#[derive(Clone)]
enum Who {
    Judge(Arc<dyn Model>),
    Critic(Arc<dyn Model>),
    Other(Arc<dyn Reviewer>),
}

/// The steps after which a run was sent back for a revision.
type Rounds = RunValue<BTreeSet<u32>>;

impl Judge {
    /// Reviews with this model.
    pub fn new(model: impl Model) -> Self {
        Self { name: "judge", judge: Who::Judge(Arc::new(model)), config: JudgeConfig::default() }
    }

    /// Reviews with this function or other reviewer.
    pub fn by(reviewer: impl Reviewer) -> Self {
        Self { name: "judge", judge: Who::Other(Arc::new(reviewer)), config: JudgeConfig::default() }
    }

    /// Treats each answer as a draft: this model, which may be the agent's own, suggests
    /// improvements, and the agent revises the answer, for one round or until there are no
    /// suggestions. The last draft is always accepted.
    ///
    /// ```
    /// use agent_core::testing::{ScriptedModel, Turn};
    /// use agent_exec::Agent;
    /// use agent_middleware::Judge;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("starts").block_on(async {
    /// let critic = ScriptedModel::new([Turn::text("Too long."), Turn::text("NOTHING TO IMPROVE")]);
    /// let model = ScriptedModel::new([Turn::text("A sea of fog lay .."), Turn::text("Fog.")]);
    /// let agent = Agent::builder("poet", model).middleware(Judge::critic(critic).max_rounds(3)).build()?;
    /// let end = agent.run("What is the weather like?").await?.finished().expect("finishes");
    /// assert_eq!(end.answer, "Fog.");
    /// # Ok::<(), agent_core::Error>(())
    /// # }).expect("runs");
    /// ```
    #[doc(alias = "reflection")]
    pub fn critic(model: impl Model) -> Self {
        let config = JudgeConfig { max_rounds: 1, on_rejected: OnRejected::Unseen, ..JudgeConfig::default() };
        Self { name: "critic", judge: Who::Critic(Arc::new(model)), config }
    }

    /// Sets all settings that are data.
    #[must_use]
    pub fn config(mut self, config: JudgeConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the maximum number of revisions of an answer.
    #[must_use]
    pub fn max_rounds(mut self, most: u32) -> Self {
        self.config.max_rounds = most;
        self
    }

    /// Sets the treatment of the answer after the last round.
    #[must_use]
    pub fn on_rejected(mut self, what: OnRejected) -> Self {
        self.config.on_rejected = what;
        self
    }

    /// Sets the criteria that an answer must meet, for a judging model.
    #[must_use]
    pub fn criteria(mut self, criteria: impl Into<String>) -> Self {
        self.config.criteria = criteria.into();
        self
    }

    fn rounds(&self) -> Rounds {
        RunValue::new(self.name, "rounds")
    }

    /// Sends the run back for a revision, with this feedback for the model.
    fn go_round(&self, cx: &RunCx, feedback: &str) -> Result<Verdict> {
        // After a restart, the model may have received the feedback already.
        if self.rounds().update(cx, |steps| steps.insert(cx.step()))? {
            cx.steer(Message::user(format!(
                "Your answer was looked at before anybody saw it, and this was said of it:\n{feedback}\nRevise it where that \
                 is right. Answer with the whole revised text, without a word about the revision."
            )))?;
        }
        Ok(Verdict::Again)
    }

    async fn judge(&self, cx: &RunCx, exit: &Exit) -> Result<Judgement> {
        let judged = async {
            let judgement = match &self.judge {
                Who::Judge(model) => ask(&**model, cx, exit, &self.config).await?,
                Who::Critic(model) => criticise(&**model, cx, exit, &self.config).await?,
                Who::Other(reviewer) => reviewer.review(cx, exit).await?,
            };
            serde_json::to_value(judgement).map_err(unreadable)
        };
        serde_json::from_value(cx.decide(self.name, judged).await?).map_err(unreadable)
    }
}

fn unreadable(e: serde_json::Error) -> Error {
    Error::new(ErrorKind::Unexpected, "a judgement is no JSON").with_source(e)
}

#[async_trait]
impl Middleware for Judge {
    fn name(&self) -> &str {
        self.name
    }

    fn placement(&self) -> Placement {
        Placement::default().unique()
    }

    async fn on_exit(&self, cx: &RunCx, exit: &mut Exit) -> Result<Verdict> {
        if !matches!(exit.reason, ExitReason::Text | ExitReason::Tool(_)) {
            return Ok(Verdict::Proceed);
        }
        // After a restart, the same step may arrive here again: it counts once.
        let round = self.rounds().update(cx, |steps| steps.iter().filter(|step| **step < cx.step()).count())?;
        let is_last = round >= self.config.max_rounds as usize;
        if is_last && self.config.on_rejected == OnRejected::Unseen {
            return Ok(Verdict::Proceed);
        }
        let judgement = self.judge(cx, exit).await?;
        let value = serde_json::to_value(&judgement).unwrap_or(Value::Null);
        cx.emit(EventKind::Custom { name: "judgement".into(), value });
        let Judgement::Continue(feedback) = judgement else { return Ok(Verdict::Proceed) };
        if !is_last {
            return self.go_round(cx, &feedback);
        }
        let message = format!("{}: the answer was not found good after {round} rounds: {feedback}", self.name);
        match self.config.on_rejected {
            OnRejected::Error => Err(Error::new(ErrorKind::InvalidAnswer, message)),
            OnRejected::Accept | OnRejected::Unseen => {
                cx.emit(EventKind::Warning { message });
                Ok(Verdict::Proceed)
            }
        }
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        self.rounds().end(cx, end);
        Ok(())
    }
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge").field("name", &self.name).field("config", &self.config).finish_non_exhaustive()
    }
}
