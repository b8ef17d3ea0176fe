//! A manager with a plan, who checks the progress after each step.

use agent_core::{Effect, Error, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, async_trait};
use agent_exec::Agent;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Described, PartEnd, PatternEnd, PatternReason, Scope, at_least_one, described, part};

/// A manager that keeps a task ledger (facts and a plan) and a progress ledger, and directs agents step by
/// step.
///
/// After each step the manager says whether the task is done, whether there was progress, and who does what
/// next. If too many steps make no progress, it writes facts and plan again; after too many such replans
/// the pattern ends as [`PatternReason::Stalled`]. A person can be asked to approve each plan.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_exec::Agent;
/// use agent_team::pattern::{Magentic, Scope};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let manager = ScriptedModel::new([
///     Turn::text("Facts: none. Plan: 1. reader counts the pages."),
///     Turn::text(r#"{"done": false, "progress": true, "next": "reader", "instruction": "Count the pages."}"#),
///     Turn::text(r#"{"done": true, "progress": true, "answer": "12 pages."}"#),
/// ]);
/// let manager = Agent::builder("manager", manager).build()?;
/// let reader = Agent::builder("reader", ScriptedModel::new([Turn::text("12")])).build()?;
/// let research = Magentic::builder(manager).agent(reader, "reads files").rounds(10).build()?;
/// assert_eq!(research.run(&Scope::new("s", "r"), "How long is it?").await?.text, "12 pages.");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Magentic {
    pub(super) manager: Agent,
    pub(super) agents: Vec<Described>,
    /// Asks a person about plans, if that is wanted.
    pub(super) approver: Option<Agent>,
    rounds: usize,
    max_stalls: usize,
    max_replans: usize,
}

/// Builder of a [`Magentic`]; [`build`](Self::build) checks the settings.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct MagenticBuilder {
    manager: Agent,
    agents: Vec<Described>,
    rounds: Option<usize>,
    max_stalls: usize,
    max_replans: usize,
    approves: bool,
}

impl MagenticBuilder {
    /// Adds an agent, with a description for the manager.
    pub fn agent(mut self, agent: Agent, description: impl Into<String>) -> Self {
        self.agents.push(Described::new(agent, description));
        self
    }

    /// Sets the maximum number of steps. Required.
    pub fn rounds(mut self, most: usize) -> Self {
        self.rounds = Some(most);
        self
    }

    /// Sets the number of steps without progress after which the manager plans again. A step with progress
    /// makes up for one without. Default: 3.
    pub fn max_stalls(mut self, most: usize) -> Self {
        self.max_stalls = most;
        self
    }

    /// Sets the maximum number of new plans. Default: 2.
    pub fn max_replans(mut self, most: usize) -> Self {
        self.max_replans = most;
        self
    }

    /// Asks a person to approve each plan. The question has the kind `approve_plan`; its answer is true, or
    /// an object with `approve`, and with `feedback` for another plan.
    pub fn approve_plan(mut self) -> Self {
        self.approves = true;
        self
    }

    /// Builds the pattern.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if there are no agents, no rounds are set, or
    /// a limit is 0.
    pub fn build(self) -> Result<Magentic> {
        at_least_one("the number of agents", self.agents.len())?;
        let rounds = self.rounds.ok_or_else(|| Error::config("rounds(..) must be set: a plan may never end"))?;
        at_least_one("the number of rounds", rounds)?;
        at_least_one("max_stalls", self.max_stalls)?;
        let approver = self.approves.then(|| Agent::of_tool("approval", ApprovePlan).build()).transpose()?;
        let (manager, agents) = (self.manager, self.agents);
        let (max_stalls, max_replans) = (self.max_stalls, self.max_replans);
        Ok(Magentic { manager, agents, approver, rounds, max_stalls, max_replans })
    }
}

/// Progress ledger of one step.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Progress {
    done: bool,
    progress: bool,
    next: String,
    instruction: String,
    answer: String,
}

/// State of a run.
struct Course<'a> {
    scope: &'a Scope,
    task: String,
    /// Facts and plan.
    ledger: String,
    /// Instructions and reports.
    reports: String,
    parts: Vec<PartEnd>,
    plans: usize,
}

impl Magentic {
    /// Returns a builder with a manager, which needs no tools.
    pub fn builder(manager: Agent) -> MagenticBuilder {
        let (agents, rounds) = (Vec::new(), None);
        MagenticBuilder { manager, agents, rounds, max_stalls: 3, max_replans: 2, approves: false }
    }

    /// Runs the pattern on a task.
    ///
    /// # Errors
    /// Those of the runs; [`ErrorKind::Interrupted`](agent_core::ErrorKind::Interrupted) while a plan waits
    /// for approval.
    pub async fn run(&self, scope: &Scope, task: impl Into<String>) -> Result<PatternEnd> {
        let (ledger, reports, parts) = (String::new(), String::new(), Vec::new());
        let mut course = Course { scope, task: task.into(), ledger, reports, parts, plans: 0 };
        if !self.plan(&mut course).await? {
            return Ok(course.ended(PatternReason::Stalled));
        }
        let mut stalls = 0;
        for round in 1..=self.rounds {
            let said = self.ask(&mut course, format!("{round}-progress"), &self.question()).await?;
            let progress = parse(&said);
            if progress.done {
                let answer = if progress.answer.is_empty() { said } else { progress.answer };
                return Ok(PatternEnd::new(answer, course.parts));
            }
            let next = self.agents.iter().find(|agent| agent.agent.name() == progress.next.trim());
            stalls = match (progress.progress, next) {
                (true, Some(_)) => usize::saturating_sub(stalls, 1),
                _ => stalls + 1,
            };
            if stalls >= self.max_stalls {
                stalls = 0;
                if !self.plan(&mut course).await? {
                    return Ok(course.ended(PatternReason::Stalled));
                }
                continue;
            }
            let Some(next) = next else { continue };
            let name = next.agent.name();
            let text = format!("{}\n\nThe whole task:\n{}{}", progress.instruction, course.task, course.so_far());
            let report = part::run(&next.agent, scope, format!("{round}-{name}"), text).await?;
            course.reports.push_str(&format!("\n\n{name}, on \"{}\":\n{}", progress.instruction, report.text));
            course.parts.push(report);
        }
        Ok(course.ended(PatternReason::Rounds))
    }

    /// Has the manager write facts and a plan, and a person approve it. Returns false if there were too
    /// many plans.
    async fn plan(&self, course: &mut Course<'_>) -> Result<bool> {
        let mut feedback = String::new();
        loop {
            if course.plans > self.max_replans {
                return Ok(false);
            }
            course.plans += 1;
            let reason = match (course.plans, feedback.is_empty()) {
                (1, _) => String::new(),
                (_, true) => "\nThe plan before made no progress: find out why, and write another one.".to_owned(),
                (_, false) => format!("\nThe plan before was not approved: {feedback}"),
            };
            let asked = format!(
                "Write the facts that are given, those to look up, and your guesses; then a short plan of steps for these \
                 agents:{}{reason}",
                described(&self.agents)
            );
            let name = format!("plan-{}", course.plans);
            course.ledger = self.ask(course, name, &asked).await?;
            let Some(approver) = &self.approver else { return Ok(true) };
            let part = format!("approval-{}", course.plans);
            let said = part::run(approver, course.scope, part, course.ledger.clone()).await?;
            feedback.clone_from(&said.text);
            course.parts.push(said);
            if feedback == APPROVED {
                return Ok(true);
            }
        }
    }

    /// Asks the manager, who knows the task, the ledger and all reports.
    async fn ask(&self, course: &mut Course<'_>, name: String, question: &str) -> Result<String> {
        let ledger =
            if course.ledger.is_empty() { String::new() } else { format!("\n\nFacts and plan:\n{}", course.ledger) };
        let text = format!("Task:\n{}{ledger}{}\n\n{question}", course.task, course.so_far());
        let said = part::run(&self.manager, course.scope, name, text).await?;
        let text = said.text.clone();
        course.parts.push(said);
        Ok(text)
    }

    fn question(&self) -> String {
        format!(
            "Agents:{}\n\nAnswer with one JSON object: {{\"done\": is the task done, \"progress\": did the last step bring the \
             task forward, \"next\": name of the next agent, \"instruction\": its instruction, \"answer\": the final answer if \
             the task is done}}",
            described(&self.agents)
        )
    }
}

impl Course<'_> {
    fn so_far(&self) -> String {
        if self.reports.is_empty() { String::new() } else { format!("\n\nReports:{}", self.reports) }
    }

    /// The end without an answer: the result is the last report.
    fn ended(self, reason: PatternReason) -> PatternEnd {
        let is_report = |part: &&PartEnd| {
            !part.name.ends_with("-progress") && !part.name.starts_with("plan-") && !part.name.starts_with("approval-")
        };
        let text = self.parts.iter().rfind(is_report).map(|part| part.text.clone()).unwrap_or_default();
        PatternEnd { reason, ..PatternEnd::new(text, self.parts) }
    }
}

/// Reads the JSON object in an answer. Anything else is a step without progress.
fn parse(text: &str) -> Progress {
    let object = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    object.and_then(|object| serde_json::from_str(object).ok()).unwrap_or_default()
}

/// Answer of the approver for an approved plan.
const APPROVED: &str = "approved";

/// Tool that asks a person about a plan.
struct ApprovePlan;

#[async_trait]
impl Tool for ApprovePlan {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"],
            "additionalProperties": false,
        });
        ToolSpec::new("approve_plan", "Asks a person to approve a plan.", parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let answer: Value = req.ask("approve_plan", json!({"plan": req.args["message"]}))?;
        let is_approved = answer == json!(true) || answer["approve"] == json!(true);
        let feedback = answer["feedback"].as_str().or(answer.as_str()).unwrap_or("write another plan");
        Ok(ToolOutput::text(if is_approved { APPROVED } else { feedback }))
    }
}

impl std::fmt::Debug for ApprovePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApprovePlan")
    }
}
