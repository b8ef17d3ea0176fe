//! [`Approval`]: a person decides before tools run.

mod approver;
mod config;
mod decision;
mod pending;
mod standing;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use agent_core::{Flow, Middleware, Part, Result, RunCx, RunEnd, ToolOutput, ToolRequest};
use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

pub use self::{
    approver::{ApprovalRequest, Approver},
    config::{ApprovalConfig, Group, Policy},
    decision::{Decision, DecisionKind, Remember},
};
use self::{
    pending::Pending,
    standing::{Rule, Rules},
};

type Predicate = dyn Fn(&str, &Value) -> bool + Send + Sync;

/// A person decides before tools run.
///
/// The run stops with a question of the kind `approval`, whose payload is an [`ApprovalRequest`], until it is gone on with
/// and the answer, a [`Decision`]. Other calls of the same message run meanwhile; nothing that ran is run again. With an
/// [`Approver`] the decision is made inside the process and the run does not stop.
///
/// Which calls are asked about goes by the tool's name: its own policy, else that of its [groups](Self::group), else that
/// of `*`; a tool that nothing names runs. Predicates can only make it stricter.
///
/// **Nothing runs by mistake.** An answer that is not a [`Decision`], an edit without arguments, a decision that is not
/// accepted, an approver that takes too long, an answer that was given to other arguments: the call is answered with an
/// error that says so.
///
/// A person may let a decision [hold](Remember) for the rest of the session. Such rules are kept with the session, for each
/// agent apart. A denial beats an approval, and a [`Policy::Deny`] both.
///
/// # Order
///
/// What a person approved must be what runs, so nothing inside this one may change arguments.
///
/// ```text
/// // right: the arguments are completed and then approved
/// builder.middleware(complete_paths).middleware(Approval::new().ask("*"))
/// // wrong: what runs is not what was approved
/// builder.middleware(Approval::new().ask("*")).middleware(complete_paths)
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{Approval, Policy};
///
/// let approval = Approval::new()
///     .ask("*")
///     .group(["read_file", "list_files"], Policy::Allow)
///     .deny("format_disk")
///     .when(Policy::Deny, |tool, args| tool == "pay" && args["amount"].as_f64().is_none_or(|x| x > 1e6));
/// # drop(approval);
/// ```
#[derive(Default)]
pub struct Approval {
    config: ApprovalConfig,
    predicates: Vec<(Policy, Box<Predicate>)>,
    approver: Option<Arc<dyn Approver>>,
}

impl Approval {
    /// Asks about nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks before this tool runs; `*` is every tool that nothing else names.
    #[must_use]
    pub fn ask(self, tool: impl Into<String>) -> Self {
        self.tool(tool, Policy::Ask)
    }

    /// Lets this tool run without asking.
    #[must_use]
    pub fn allow(self, tool: impl Into<String>) -> Self {
        self.tool(tool, Policy::Allow)
    }

    /// Never lets this tool run.
    #[must_use]
    pub fn deny(self, tool: impl Into<String>) -> Self {
        self.tool(tool, Policy::Deny)
    }

    fn tool(mut self, tool: impl Into<String>, policy: Policy) -> Self {
        self.config.tools.insert(tool.into(), policy);
        self
    }

    /// Sets the policy of several tools at once, where they have none of their own.
    #[must_use]
    pub fn group(mut self, tools: impl IntoIterator<Item = impl Into<String>>, policy: Policy) -> Self {
        self.config.groups.push(Group { tools: tools.into_iter().map(Into::into).collect(), policy });
        self
    }

    /// Applies `policy` to calls for which `predicate`, given the tool's name and the arguments, is true. It holds if it is
    /// stricter than what goes by the name.
    #[must_use]
    pub fn when(mut self, policy: Policy, predicate: impl Fn(&str, &Value) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push((policy, Box::new(predicate)));
        self
    }

    /// Says what a tool does, in words for whoever decides.
    #[must_use]
    pub fn describe(mut self, tool: impl Into<String>, description: impl Into<String>) -> Self {
        self.config.descriptions.insert(tool.into(), description.into());
        self
    }

    /// Sets which decisions are accepted; rejecting always is. Default: all.
    #[must_use]
    pub fn decisions(mut self, accepted: impl IntoIterator<Item = DecisionKind>) -> Self {
        self.config.decisions = accepted.into_iter().collect();
        self
    }

    /// Lets `approver` decide inside the process, so that the run does not stop. A decision is journalled, and not asked for
    /// again when the call is gone on with after a restart.
    #[must_use]
    pub fn decide_with(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets the longest time that an approver may take; then the call is denied. Default: five minutes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = Some(timeout);
        self
    }

    fn policy(&self, tool: &str, args: &Value) -> Policy {
        let applies = self.predicates.iter().filter(|(_, predicate)| predicate(tool, args));
        applies.map(|(policy, _)| *policy).fold(self.config.policy(tool), Policy::max)
    }

    fn request(&self, tool: &str, args: &Value) -> ApprovalRequest {
        let mut decisions = self.config.decisions.clone();
        decisions.insert(DecisionKind::Reject);
        let description = self.config.descriptions.get(tool).cloned();
        ApprovalRequest { tool: tool.to_owned(), description, arguments: args.clone(), decisions }
    }

    /// Comes to a decision about the call. What is none is the text that says why.
    async fn decide(&self, cx: &RunCx, req: &ToolRequest) -> Result<Result<Decision, String>> {
        let request = self.request(&req.call.name, &req.args);
        let accepted = request.decisions.clone();
        let Some(approver) = &self.approver else {
            let asked_before = Pending::ask(cx, req)?;
            let answer = req.ask("approval", json(&request))?;
            return Ok(if asked_before {
                accept(answer, &accepted)
            } else {
                Err("the answer was given to another call".into())
            });
        };
        let limit = self.config.timeout.unwrap_or(Duration::MAX);
        let decide = async {
            let decided = tokio::time::timeout(limit, approver.decide(cx, request)).await;
            decided.map_or(Ok(Value::Null), |decision| decision.map(|decision| json(&decision)))
        };
        Ok(match req.decide("approval", decide).await? {
            Value::Null => Err("nobody decided in time".into()),
            decision => accept(decision, &accepted),
        })
    }

    /// Does what was decided.
    fn apply(&self, cx: &RunCx, req: &mut ToolRequest, decision: Decision) -> Result<Flow<ToolOutput>> {
        let tool = &req.call.name;
        let remember = |scope: Option<Remember>, rule| match scope {
            Some(scope) => Rules::keep(cx, tool, &req.args, scope, rule),
            None => Ok(()),
        };
        match decision {
            Decision::Approve { remember: scope } => {
                remember(scope, Rule::Allow)?;
                Ok(Flow::Continue)
            }
            Decision::Edit { arguments } => {
                Pending::edit(cx, req, &arguments)?;
                req.args = Arc::new(arguments);
                Ok(Flow::Continue)
            }
            Decision::Reject { reason, remember: scope } => {
                remember(scope, Rule::Deny)?;
                let feedback = reason.map(|reason| format!(" With user feedback: {reason}")).unwrap_or_default();
                settle(cx, req, ToolOutput::error(format!("{}{feedback}", rejected(tool))))
            }
            Decision::Respond { content } => settle(cx, req, ToolOutput::text(content)),
        }
    }
}

/// Takes an answer as a decision, if it is one that means something and is accepted.
fn accept(answer: Value, accepted: &BTreeSet<DecisionKind>) -> Result<Decision, String> {
    let decision: Decision =
        serde_json::from_value(answer).map_err(|e| format!("the answer is not a decision: {e}"))?;
    match decision.fault() {
        Some(fault) => Err(fault.into()),
        None if !accepted.contains(&decision.kind()) => Err("such a decision is not accepted here".into()),
        None => Ok(decision),
    }
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("text and JSON are JSON")
}

fn rejected(tool: &str) -> String {
    format!("Tool execution for '{tool}' was rejected by the user.")
}

/// Answers the call in the tool's place.
fn settle(cx: &RunCx, req: &ToolRequest, output: ToolOutput) -> Result<Flow<ToolOutput>> {
    Pending::take(cx, req)?;
    Ok(Flow::Answer(output))
}

impl From<ApprovalConfig> for Approval {
    fn from(config: ApprovalConfig) -> Self {
        Self { config, ..Self::default() }
    }
}

#[async_trait]
impl Middleware for Approval {
    fn name(&self) -> &str {
        "approval"
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        Pending::end(cx, end);
        Ok(())
    }

    async fn before_tool(&self, cx: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        let tool = &req.call.name;
        match self.policy(tool, &req.args) {
            Policy::Allow => return Ok(Flow::Continue),
            Policy::Deny => {
                let text = format!("Tool execution for '{tool}' is not allowed.");
                return Ok(Flow::Answer(ToolOutput::error(text)));
            }
            Policy::Ask => {}
        }
        match Rules::find(cx, tool, &req.args)? {
            Some(Rule::Allow) => return Ok(Flow::Continue),
            Some(Rule::Deny) => return settle(cx, req, ToolOutput::error(rejected(tool))),
            None => {}
        }
        match self.decide(cx, req).await? {
            Ok(decision) => self.apply(cx, req, decision),
            Err(why) => {
                let text = format!("Tool execution for '{tool}' was not approved: {why}.");
                settle(cx, req, ToolOutput::error(text))
            }
        }
    }

    async fn after_tool(&self, cx: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        if let Some(Pending { edited: Some(arguments), .. }) = Pending::take(cx, req)? {
            let note = format!("The parameters for tool '{}' were changed by the user to: {arguments}", req.call.name);
            out.content_mut().insert(0, Part::text(note));
        }
        Ok(())
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval")
            .field("config", &self.config)
            .field("predicates", &self.predicates.len())
            .field("approver", &self.approver.is_some())
            .finish()
    }
}
