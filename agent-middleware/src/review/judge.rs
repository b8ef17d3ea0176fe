//! [`Judge`]: no answer before somebody else finds it good.

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

/// How strict a judge is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct JudgeConfig {
    /// How often an answer may be sent back. Default: 2; 1 for a critic.
    pub max_rounds: u32,
    /// What happens to the answer after the last of these rounds. Default: [`OnRejected::Accept`]; [`OnRejected::Unseen`] for a
    /// critic.
    pub on_rejected: OnRejected,
    /// What an answer must meet beside doing what was asked, for a judge or a critic that is a model. Default: nothing.
    pub criteria: String,
    /// How many characters of the conversation a model is shown, the newest. Default: 40,000.
    pub context_chars: usize,
}

impl Default for JudgeConfig {
    fn default() -> Self {
        Self { max_rounds: 2, on_rejected: OnRejected::Accept, criteria: String::new(), context_chars: 40_000 }
    }
}

/// What happens to an answer that is still not good when its rounds are used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnRejected {
    /// The run ends with it, and a warning says so.
    #[default]
    Accept,
    /// The run fails with [`ErrorKind::InvalidAnswer`](agent_core::ErrorKind::InvalidAnswer).
    Error,
    /// The answer after the last round is not looked at again: the run ends with it.
    Unseen,
}

/// Has somebody else look at each final answer: a model, or a function. Unless it is found good, the model is told what is
/// wrong and goes on, in the same run and the same loop, for a [bounded](Self::max_rounds) number of rounds.
///
/// A [judge](Self::new) says whether an answer may be given. A [critic](Self::critic) says how it could be better: draft,
/// critique, revision, which is known as reflection. An agent may have both.
///
/// What is looked at is an answer that the model ended the run with, as a text or by a tool that ends it; what a limit or
/// another hook ended is left alone. What the model is told stays in the conversation, as a message of the user. A model that
/// judges is asked as a call of the run: it counts in its usage and its budget, and what was decided is decided once, in
/// whichever process the run goes on. Each judgement is an event named `judgement`.
///
/// A judge that fails, or cannot be understood twice, fails the run: an answer that nobody looked at is not one that was found
/// good. The run can be gone on with from its checkpoint.
///
/// # Order
///
/// The innermost is asked first, and each is asked whatever another says.
///
/// ```text
/// // right: the redactor has changed the answer before it is judged
/// builder.middleware(Judge::new(model)).middleware(redact_answers)
/// // wrong: what is judged is not what the user gets
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

/// The steps after which a run was sent round again.
type Rounds = RunValue<BTreeSet<u32>>;

impl Judge {
    /// Lets this model judge.
    pub fn new(model: impl Model) -> Self {
        Self { name: "judge", judge: Who::Judge(Arc::new(model)), config: JudgeConfig::default() }
    }

    /// Lets this function, or whatever else can, judge.
    pub fn by(reviewer: impl Reviewer) -> Self {
        Self { name: "judge", judge: Who::Other(Arc::new(reviewer)), config: JudgeConfig::default() }
    }

    /// Takes each answer for a draft: this model, which may be the agent's own, says what would make it better, and the agent
    /// revises it, for one round or until nothing is left to say. The last draft is always given.
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

    /// Sets everything at once.
    #[must_use]
    pub fn config(mut self, config: JudgeConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets how often an answer may be sent back.
    #[must_use]
    pub fn max_rounds(mut self, most: u32) -> Self {
        self.config.max_rounds = most;
        self
    }

    /// Sets what happens to the answer after the last round.
    #[must_use]
    pub fn on_rejected(mut self, what: OnRejected) -> Self {
        self.config.on_rejected = what;
        self
    }

    /// Sets what an answer must meet, for a model that judges.
    #[must_use]
    pub fn criteria(mut self, criteria: impl Into<String>) -> Self {
        self.config.criteria = criteria.into();
        self
    }

    fn rounds(&self) -> Rounds {
        RunValue::new(self.name, "rounds")
    }

    /// Sends the run round again, with these words for the model.
    fn go_round(&self, cx: &RunCx, feedback: &str) -> Result<Verdict> {
        // After a restart the model may have been told already.
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
        // After a restart the same step may come here again: it counts once.
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
