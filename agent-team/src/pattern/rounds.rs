//! Agents that work in rounds.

use agent_core::Result;
use agent_exec::Agent;

use super::{PatternEnd, PatternReason, Scope, at_least_one, part};

/// Agents that argue in rounds, each with the arguments so far, and a judge that decides at the end.
#[derive(Clone, Debug)]
pub struct Debate {
    pub(super) debaters: Vec<Agent>,
    pub(super) judge: Agent,
    rounds: usize,
}

impl Debate {
    /// Creates a debate of this number of rounds.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there are no debaters or no rounds.
    pub fn new(debaters: impl IntoIterator<Item = Agent>, judge: Agent, rounds: usize) -> Result<Self> {
        let debaters: Vec<_> = debaters.into_iter().collect();
        at_least_one("the number of debaters", debaters.len())?;
        at_least_one("the number of rounds", rounds)?;
        Ok(Self { debaters, judge, rounds })
    }

    /// Runs the debate on a question; the result is the judge's answer.
    ///
    /// # Errors
    /// The first error of a run.
    pub async fn run(&self, scope: &Scope, question: impl Into<String>) -> Result<PatternEnd> {
        let (mut said, mut parts) = (question.into(), Vec::new());
        for round in 1..=self.rounds {
            for (at, debater) in self.debaters.iter().enumerate() {
                let name = format!("{round}-{}-{}", at + 1, debater.name());
                let end = part::run(debater, scope, name, said.clone()).await?;
                said.push_str(&format!("\n\n{}: {}", debater.name(), end.text));
                parts.push(end);
            }
        }
        let judged = part::run(&self.judge, scope, "judge".into(), said).await?;
        let text = judged.text.clone();
        parts.push(judged);
        Ok(PatternEnd::new(text, parts))
    }
}

/// An agent that writes drafts, and an agent that evaluates them until it accepts one.
///
/// The evaluator accepts a draft with an answer that begins with `ACCEPT`; any other answer is feedback
/// for the next draft.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::pattern::{Optimiser, PatternReason, Scope};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let writer = ScriptedModel::new([Turn::text("a draft"), Turn::text("a better one")]);
/// let critic = ScriptedModel::new([Turn::text("Too short."), Turn::text("ACCEPT")]);
/// let agents = (Agent::builder("writer", writer).build()?, Agent::builder("critic", critic).build()?);
/// let end = Optimiser::new(agents.0, agents.1, 3)?.run(&Scope::new("s", "r"), "Write.").await?;
/// assert_eq!((end.text.as_str(), end.reason), ("a better one", PatternReason::Done));
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Optimiser {
    pub(super) writer: Agent,
    pub(super) evaluator: Agent,
    rounds: usize,
}

impl Optimiser {
    /// The beginning of an answer that accepts a draft.
    pub const ACCEPT: &str = "ACCEPT";

    /// Creates a pattern of at most this number of drafts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `rounds` is 0.
    pub fn new(writer: Agent, evaluator: Agent, rounds: usize) -> Result<Self> {
        at_least_one("the number of rounds", rounds)?;
        Ok(Self { writer, evaluator, rounds })
    }

    /// Runs the pattern on a task. The result is the accepted draft, or the last one if the rounds are
    /// over ([`PatternReason::Rounds`]).
    ///
    /// # Errors
    /// The first error of a run.
    pub async fn run(&self, scope: &Scope, task: impl Into<String>) -> Result<PatternEnd> {
        let (task, mut parts) = (task.into(), Vec::new());
        let (mut asked, mut draft) = (task.clone(), String::new());
        for round in 1..=self.rounds {
            let written = part::run(&self.writer, scope, format!("{round}-write"), asked).await?;
            draft = written.text.clone();
            parts.push(written);
            let question = format!(
                "Task:\n{task}\n\nDraft:\n{draft}\n\nAnswer {} if the draft is good; otherwise say what to improve.",
                Self::ACCEPT
            );
            let judged = part::run(&self.evaluator, scope, format!("{round}-evaluate"), question).await?;
            let feedback = judged.text.clone();
            parts.push(judged);
            if feedback.trim_start().starts_with(Self::ACCEPT) {
                return Ok(PatternEnd::new(draft, parts));
            }
            asked = format!("{task}\n\nYour draft:\n{draft}\n\nFeedback:\n{feedback}");
        }
        Ok(PatternEnd { reason: PatternReason::Rounds, ..PatternEnd::new(draft, parts) })
    }
}
