//! An agent that gives tasks to workers until it can answer.

use agent_core::{Error, Result};
use agent_exec::Agent;

use super::{Described, PatternEnd, PatternReason, Scope, at_least_one, described, part};

/// A supervisor that gives tasks to workers, one at a time, and answers when their reports suffice.
///
/// The supervisor's answer `ASK <worker>: <task>` gives a worker a task; any other answer is the result.
/// Workers do not see each other's reports: the supervisor includes what they need.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::pattern::{Scope, Supervisor};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let lead = ScriptedModel::new([Turn::text("ASK reader: How many pages?"), Turn::text("It has 12 pages.")]);
/// let reader = Agent::builder("reader", ScriptedModel::new([Turn::text("12")])).build()?;
/// let lead = Agent::builder("lead", lead).build()?;
/// let report = Supervisor::new(lead, [(reader, "reads files")], 5)?;
/// assert_eq!(report.run(&Scope::new("s", "r"), "How long is it?").await?.text, "It has 12 pages.");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Supervisor {
    pub(super) supervisor: Agent,
    pub(super) workers: Vec<Described>,
    rounds: usize,
}

/// Beginning of an answer that gives a worker a task.
const ASK: &str = "ASK ";

impl Supervisor {
    /// Creates a pattern of at most this number of tasks. Each worker has a description for the
    /// supervisor.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there are no workers or no rounds.
    pub fn new<D: Into<String>>(
        supervisor: Agent,
        workers: impl IntoIterator<Item = (Agent, D)>,
        rounds: usize,
    ) -> Result<Self> {
        let workers: Vec<_> = workers.into_iter().map(|(agent, about)| Described::new(agent, about)).collect();
        at_least_one("the number of workers", workers.len())?;
        at_least_one("the number of rounds", rounds)?;
        Ok(Self { supervisor, workers, rounds })
    }

    /// Runs the pattern on a task. The result is the supervisor's answer, or the last report if the rounds
    /// are over ([`PatternReason::Rounds`]).
    ///
    /// # Errors
    /// Those of the runs; [`ErrorKind::Tool`](agent_core::ErrorKind::Tool) if the supervisor names no
    /// worker.
    pub async fn run(&self, scope: &Scope, task: impl Into<String>) -> Result<PatternEnd> {
        let (task, mut reports, mut parts) = (task.into(), String::new(), Vec::new());
        for round in 1..=self.rounds + 1 {
            let asked = self.question(&task, &reports, round > self.rounds);
            let said = part::run(&self.supervisor, scope, format!("{round}-supervisor"), asked).await?;
            let answer = said.text.clone();
            parts.push(said);
            let Some(order) = answer.trim_start().strip_prefix(ASK) else { return Ok(PatternEnd::new(answer, parts)) };
            if round > self.rounds {
                break;
            }
            let (name, order) = order.split_once(':').unwrap_or((order, ""));
            let worker = self.workers.iter().find(|worker| worker.agent.name() == name.trim());
            let worker = worker.ok_or_else(|| {
                let known: Vec<_> = self.workers.iter().map(|worker| worker.agent.name()).collect();
                Error::tool(format!(
                    "the supervisor asked '{}', which is no worker; workers: {}",
                    name.trim(),
                    known.join(", ")
                ))
            })?;
            let part = format!("{round}-{}", worker.agent.name());
            let report = part::run(&worker.agent, scope, part, order.trim().to_owned()).await?;
            reports.push_str(&format!("\n\n{}, on \"{}\":\n{}", worker.agent.name(), order.trim(), report.text));
            parts.push(report);
        }
        let last = parts.iter().rev().nth(1).map(|part| part.text.clone()).unwrap_or_default();
        Ok(PatternEnd { reason: PatternReason::Rounds, ..PatternEnd::new(last, parts) })
    }

    fn question(&self, task: &str, reports: &str, is_last: bool) -> String {
        let reports = if reports.is_empty() { String::new() } else { format!("\n\nReports:{reports}") };
        if is_last {
            return format!("Task:\n{task}{reports}\n\nNo further worker can be asked. Answer the task now.");
        }
        format!(
            "Task:\n{task}\n\nWorkers:{}{reports}\n\nAnswer \"{ASK}<worker>: <task>\" to give a worker a task with all that it \
             needs to know, or answer the task.",
            described(&self.workers)
        )
    }
}
