// Over 500 lines: the options of one builder, each with its documentation.
//! Approval of tool calls by people.
//!
//! [`Approval`] is the middleware. This module contains its questions and answers, for code that
//! shows questions to people, answers them ([`Approver`]), or decides when to ask
//! ([`ConfirmationPolicy`]). The rules that allow, deny or ask about calls are in
//! [`permissions`](crate::permissions).
//!
//! ```
//! use agent_middleware::{Approval, approval::{ConfirmationPolicy, ConfirmationStrategy, Decision}};
//!
//! let once = ConfirmationStrategy::suspending(ConfirmationPolicy::Once);
//! let approval = Approval::new().confirm(["send_mail"], once);
//! let answer = serde_json::to_value(Decision::reject("Not today."))?;
//! # drop((approval, answer));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod approver;
mod batch;
mod config;
mod console;
mod decision;
mod form;
mod pending;
mod remembered;
mod strategy;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use agent_core::{
    Ask, Error, EventKind, Flow, Middleware, Part, Result, RunCx, RunEnd, ToolBatch, ToolOutput, ToolRequest, boxed,
};
use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};

pub use self::{
    approver::{ApprovalRequest, Approver},
    config::ApprovalConfig,
    console::ConsoleApprover,
    decision::{Decision, DecisionKind, Remember},
    strategy::{ConfirmationPolicy, ConfirmationStrategy},
};
use self::{pending::Pending, strategy::Strategies};
#[cfg(feature = "shell")]
use crate::permissions::Match;
use crate::{
    Permissions,
    permissions::{Policy, Rule, RuleStore, Ruling, fits},
};

type Predicate = dyn Fn(&str, &Value) -> bool + Send + Sync;

/// Makes rules, and where they require it a person, decide before tools run.
///
/// The [`Permissions`], and where they allow a call the [strategy](Self::confirm) of its tool,
/// decide whether the call runs, is denied, or is asked about. To ask, the run is suspended with a
/// question of the kind `approval`, whose payload is an [`ApprovalRequest`], until it is resumed
/// with the answer, a [`Decision`]. Other calls of the same message run meanwhile; completed calls
/// are not repeated. With [`batched`](Self::batched), there is one question of the kind `approvals`
/// about all calls of a message, with `calls` as the payload and an object of decisions by call id
/// as the answer. With an [`Approver`], the decision is made inside the process and the run is not
/// suspended.
///
/// Without a rule, a condition or a strategy, it asks about every call that [may destroy
/// something](ToolRequest::is_risky).
///
/// **Nothing runs by mistake.** Invalid decisions, edited arguments that do not match the tool's
/// schema, and answers to another call are refused when the run resumes, and the question stays
/// open. An invalid answer that was not refused there answers the call with an error that states
/// the reason, and so does a timeout.
///
/// A person may make a decision [apply to later calls](Remember), for the rest of the session or,
/// if [rules are stored](Self::keep_rules), permanently. Such rules belong to the agent. A denial
/// takes precedence over an approval, and a [`Policy::Deny`] over both.
///
/// Each decision is an event named `approval`, without the arguments.
///
/// # Order
///
/// The approved call must be the one that runs, so no middleware inside this one may change
/// arguments.
///
/// ```text
/// // right: the arguments are completed and then approved
/// builder.middleware(complete_paths).middleware(Approval::new().ask("*"))
/// // wrong: the call that runs is not the approved one
/// builder.middleware(Approval::new().ask("*")).middleware(complete_paths)
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{Approval, permissions::{Policy, Rule}};
///
/// let approval = Approval::new()
///     .ask("*")
///     .allow("list_files")
///     .deny("format_disk")
///     .rule(Rule::allow("read_file").path("path", "src/**"))
///     .when(Policy::Deny, |tool, args| tool == "pay" && args["amount"].as_f64().is_none_or(|x| x > 1e6));
/// # drop(approval);
/// ```
#[derive(Default)]
pub struct Approval {
    config: ApprovalConfig,
    predicates: Vec<(Policy, Box<Predicate>)>,
    strategies: Strategies,
    approver: Option<Arc<dyn Approver>>,
    store: Option<Arc<dyn RuleStore>>,
    preapproved: BTreeSet<String>,
}

impl Approval {
    /// Asks about every call that [may destroy something](ToolRequest::is_risky), until a rule, a condition or a strategy
    /// is added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the permissions, replacing the earlier ones.
    #[must_use]
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.config.permissions = Some(permissions);
        self
    }

    /// Adds a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.config.permissions_mut().rules.push(rule);
        self
    }

    /// Asks before this tool runs; `*` is every tool without a matching rule.
    #[must_use]
    pub fn ask(self, tool: impl Into<String>) -> Self {
        self.tool(tool, Policy::Ask)
    }

    /// Asks before a call of these tools (`*` and `?` are wildcards) that may be destructive, or is
    /// not declared non-destructive: see [`ToolRequest::is_risky`]. Applies if it is stricter than
    /// the rules.
    ///
    /// Tools declare this in their [options](agent_core::ToolOptions::destructive), MCP servers in
    /// their annotations.
    #[must_use]
    pub fn ask_if_risky(mut self, tools: impl Into<String>) -> Self {
        self.config.if_risky.insert(tools.into());
        self
    }

    /// Allows this tool without asking; `*` is every tool without a matching rule.
    #[must_use]
    pub fn allow(self, tool: impl Into<String>) -> Self {
        self.tool(tool, Policy::Allow)
    }

    /// Denies this tool; `*` is every tool without a matching rule.
    #[must_use]
    pub fn deny(self, tool: impl Into<String>) -> Self {
        self.tool(tool, Policy::Deny)
    }

    fn tool(mut self, tool: impl Into<String>, policy: Policy) -> Self {
        let tool = tool.into();
        if tool == "*" {
            self.config.permissions_mut().default_policy = policy;
            return self;
        }
        self.rule(Rule::new(policy, tool))
    }

    /// Applies `policy` to calls for which `predicate`, called with the tool's name and the
    /// arguments, returns true. Applies if it is stricter than the rules.
    #[must_use]
    pub fn when(mut self, policy: Policy, predicate: impl Fn(&str, &Value) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push((policy, Box::new(predicate)));
        self
    }

    /// Confirms calls of these tools with `strategy`; `*` is every tool without another strategy.
    /// Of several for a tool, one for its name alone wins, otherwise the first group that contains
    /// it. Applies if it is stricter than the rules.
    #[must_use]
    pub fn confirm(
        mut self,
        tools: impl IntoIterator<Item = impl Into<String>>,
        strategy: ConfirmationStrategy,
    ) -> Self {
        self.strategies.add(tools.into_iter().map(Into::into).collect(), strategy);
        self
    }

    /// Sets the description of a tool for the deciding person. Default: the tool's own description.
    #[must_use]
    pub fn describe(mut self, tool: impl Into<String>, description: impl Into<String>) -> Self {
        self.config.descriptions.insert(tool.into(), description.into());
        self
    }

    /// Redacts these arguments of a tool (`*` is every tool) in questions: they are shown as
    /// `[redacted]`. If a person edits the arguments and leaves the placeholder, the real value is
    /// kept.
    #[must_use]
    pub fn redact(mut self, tool: impl Into<String>, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let arguments = arguments.into_iter().map(Into::into);
        self.config.redact.entry(tool.into()).or_default().extend(arguments);
        self
    }

    /// Sets the accepted decisions; rejections are always accepted. Default: all.
    #[must_use]
    pub fn decisions(mut self, accepted: impl IntoIterator<Item = DecisionKind>) -> Self {
        self.config.decisions = accepted.into_iter().collect();
        self
    }

    /// Asks once about all calls of a message, before any of them runs.
    #[must_use]
    pub fn batched(mut self) -> Self {
        self.config.batched = true;
        self
    }

    /// Only reports the decisions as events, without enforcing them.
    #[must_use]
    pub fn shadow(mut self) -> Self {
        self.config.shadow = true;
        self
    }

    /// Sets the time to answer a question after it was asked; afterwards the call is denied.
    /// Default: unlimited.
    #[must_use]
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.config.expires = Some(time);
        self
    }

    /// Sets the only person who may answer. Default: anybody.
    #[must_use]
    pub fn only(mut self, actor: impl Into<String>) -> Self {
        self.config.actor = Some(actor.into());
        self
    }

    /// Stores the rules that people make permanent, and applies the stored ones.
    #[must_use]
    pub fn keep_rules(mut self, store: impl RuleStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Lets `approver` decide inside the process, so that the run is not suspended. The decision is
    /// journalled, and is not requested again when the call resumes after a restart.
    #[must_use]
    pub fn decide_with(mut self, approver: impl Approver) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Lets calls of these tools (`*` and `?` allowed) run where a rule, a condition or a strategy would ask about them. A
    /// denial still holds.
    ///
    /// For an operator who approves calls before the run: `agent run --allow-tool NAME` uses it.
    #[must_use]
    pub fn preapprove(mut self, tools: impl Into<String>) -> Self {
        self.preapproved.insert(tools.into());
        self
    }

    /// Sets the timeout of an approver; afterwards the call is denied. Default: five minutes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = Some(timeout);
        self
    }

    /// True if nothing but the permissions decides.
    fn has_no_conditions(&self) -> bool {
        self.config.if_risky.is_empty() && self.predicates.is_empty() && self.strategies.is_empty()
    }

    /// True if risky calls of this tool are asked about: by default, those of every tool.
    fn asks_if_risky(&self, tool: &str) -> bool {
        let is_default = self.config.permissions.is_none() && self.has_no_conditions();
        is_default || self.config.if_risky.iter().any(|pattern| fits(pattern, tool, None))
    }

    /// Returns the approver in the process for a tool, if there is one.
    fn approver(&self, tool: &str) -> Option<&Arc<dyn Approver>> {
        self.strategies.find(tool).map_or(self.approver.as_ref(), |strategy| strategy.approver.as_ref())
    }

    /// Returns the decision about a call, from the rules, the predicates, and people's earlier
    /// decisions.
    async fn ruling(&self, cx: &RunCx, req: &ToolRequest) -> Result<Ruling> {
        let (tool, args, permissions) = (&*req.call.name, &*req.args, self.config.permissions.as_ref());
        let mut ruling = match permissions {
            Some(permissions) => permissions.decide(tool, args),
            None => Ruling { policy: Policy::Allow, why: "no rule fits".to_owned(), of_arguments: false },
        };
        let applies = self.predicates.iter().filter(|(_, predicate)| predicate(tool, args));
        match applies.map(|(policy, _)| *policy).max() {
            Some(policy) if policy > ruling.policy => {
                ruling = Ruling { policy, why: "a condition applies".to_owned(), of_arguments: true };
            }
            Some(policy) if policy == ruling.policy => ruling.of_arguments = true,
            _ => {}
        }
        if ruling.policy < Policy::Ask && self.strategies.find(tool).is_some_and(|strategy| strategy.asks(req)) {
            let why = "calls of this tool are confirmed".to_owned();
            ruling = Ruling { policy: Policy::Ask, why, of_arguments: false };
        }
        if ruling.policy < Policy::Ask && req.is_risky() && self.asks_if_risky(tool) {
            let why = match req.hints.destructive {
                Some(_) => "it may destroy something",
                None => "nobody says that it destroys nothing",
            };
            ruling = Ruling { policy: Policy::Ask, why: why.to_owned(), of_arguments: false };
        }
        if ruling.policy == Policy::Ask && self.preapproved.iter().any(|pattern| fits(pattern, tool, None)) {
            let why = "the operator approved calls of this tool".to_owned();
            ruling = Ruling { policy: Policy::Allow, why, of_arguments: false };
        }
        if ruling.policy == Policy::Ask {
            let root = permissions.and_then(|permissions| permissions.root.as_deref());
            let call = (tool, args, ruling.of_arguments);
            let remembered = boxed(|| remembered::find(cx, self.store.as_deref(), root, call));
            if let Some(policy) = remembered.await? {
                ruling = Ruling { policy, why: STANDING.to_owned(), ..ruling };
            }
        }
        Ok(ruling)
    }

    fn report(&self, cx: &RunCx, req: &ToolRequest, ruling: &Ruling) {
        if !cx.is_observed() {
            return;
        }
        let value = json!({
            "call_id": req.call.id,
            "tool": req.call.name,
            "policy": ruling.policy,
            "why": ruling.why,
            "shadow": self.config.shadow,
        });
        cx.emit(EventKind::Custom { name: "approval".to_owned(), value });
    }

    /// Builds a question of this kind with the configured expiry and actor.
    fn question(&self, kind: &str, payload: Value, schema: Value, denied: Value) -> Ask {
        let mut ask = Ask::new(kind, payload).schema(schema).or(denied);
        if let Some(time) = self.config.expires {
            ask = ask.within(time);
        }
        if let Some(actor) = &self.config.actor {
            ask = ask.only(actor);
        }
        ask
    }

    /// Obtains a decision about the call; an invalid one is returned as a text with the reason.
    async fn decide(&self, cx: &RunCx, req: &ToolRequest, why: String) -> Result<Result<Decision, String>> {
        if let Some(decision) = Pending::decided(cx, req)? {
            return Ok(Ok(decision));
        }
        let accepted = self.config.accepted();
        let request = form::request(&self.config, req, why);
        let Some(approver) = self.approver(&req.call.name) else {
            let schema = form::schema(&self.config, req, 0, self.store.is_some());
            let answer = req.ask_with(self.question("approval", to_json(&request), schema, to_json(&unanswered())))?;
            return Ok(accept(answer.value, &accepted));
        };
        let limit = self.config.timeout.unwrap_or(Duration::MAX);
        let decide = async {
            let decided = tokio::time::timeout(limit, approver.decide(cx, request)).await;
            decided.map_or(Ok(Value::Null), |decision| decision.map(|decision| to_json(&decision)))
        };
        Ok(match req.decide("approval", decide).await? {
            Value::Null => Err("nobody decided in time".into()),
            decision => accept(decision, &accepted),
        })
    }

    /// Applies the decision.
    async fn apply(&self, cx: &RunCx, req: &mut ToolRequest, decision: Decision) -> Result<Flow<ToolOutput>> {
        let tool = req.call.name.clone();
        let decision = match self.strategies.find(&tool) {
            Some(strategy) => strategy.remembering(decision),
            None => decision,
        };
        if let Decision::Approve { remember: Some(scope), always }
        | Decision::Reject { remember: Some(scope), always, .. } = &decision
        {
            let store = self.store.as_deref().filter(|_| *always);
            let policy = if decision.kind() == DecisionKind::Approve { Policy::Allow } else { Policy::Deny };
            let rule = Rule::new(policy, &*tool);
            let rule = match (scope, form::prefixes(&self.config, req)) {
                (Remember::Tool, _) => rule,
                #[cfg(feature = "shell")]
                (Remember::Prefix, Some((argument, prefixes))) => rule.with_match(argument, Match::Command(prefixes)),
                _ => rule.with_arguments((*req.args).clone()),
            };
            remembered::keep(cx, store, rule).await?;
        }
        match decision {
            Decision::Approve { .. } => Ok(Flow::Continue),
            Decision::Edit { arguments } => {
                let arguments = form::edited(&self.config, req, arguments);
                Pending::edit(cx, req, &arguments)?;
                req.args = Arc::new(arguments);
                Ok(Flow::Continue)
            }
            Decision::Reject { reason, .. } => {
                let feedback = reason.map(|reason| format!(" With user feedback: {reason}")).unwrap_or_default();
                settle(cx, req, ToolOutput::error(format!("{}{feedback}", rejected(&tool))))
            }
            Decision::Respond { content } => settle(cx, req, ToolOutput::text(content)),
        }
    }
}

/// Asks a person, with a question of this kind, whether a call may run. The decision applies only
/// to this call. An invalid decision is returned as a text with the reason.
pub(crate) fn may_run(req: &ToolRequest, kind: &str, why: String) -> Result<Result<Decision, String>> {
    let config = ApprovalConfig { decisions: [DecisionKind::Approve].into(), ..ApprovalConfig::default() };
    let payload = to_json(&form::request(&config, req, why));
    let answer =
        req.ask_with(Ask::new(kind, payload).schema(form::schema(&config, req, 0, false)).or(to_json(&unanswered())))?;
    Ok(accept(answer.value, &config.accepted()))
}

/// Reason reported for a remembered decision.
const STANDING: &str = "a person decided so before";

/// The decision if nobody answered in time.
fn unanswered() -> Decision {
    Decision::reject("nobody answered in time")
}

/// Parses an answer as a decision, if it is complete and accepted.
fn accept(answer: Value, accepted: &BTreeSet<DecisionKind>) -> Result<Decision, String> {
    let decision: Decision =
        serde_json::from_value(answer).map_err(|e| format!("the answer is not a decision: {e}"))?;
    match decision.fault() {
        Some(fault) => Err(fault.into()),
        None if !accepted.contains(&decision.kind()) => Err("such a decision is not accepted here".into()),
        None => Ok(decision),
    }
}

fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("text and JSON are JSON")
}

fn rejected(tool: &str) -> String {
    format!("Tool execution for '{tool}' was rejected by the user.")
}

/// Answers the call on behalf of the tool.
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

    fn validate(&self) -> Result<()> {
        if self.config.allows_all() && self.has_no_conditions() {
            return Err(Error::config(
                "approval: every call is allowed: add a rule, or leave 'permissions' out to ask about risky calls",
            ));
        }
        Ok(())
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        Pending::end(cx, end);
        Ok(())
    }

    async fn before_tools(&self, cx: &RunCx, batch: &mut ToolBatch) -> Result<()> {
        if self.config.batched && !self.config.shadow {
            batch::ask(self, cx, batch).await?;
        }
        Ok(())
    }

    async fn before_tool(&self, cx: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        let ruling = self.ruling(cx, req).await?;
        self.report(cx, req, &ruling);
        let tool = &req.call.name;
        match ruling.policy {
            _ if self.config.shadow => return Ok(Flow::Continue),
            Policy::Allow => return Ok(Flow::Continue),
            Policy::Deny if ruling.why == STANDING => return settle(cx, req, ToolOutput::error(rejected(tool))),
            Policy::Deny => {
                let text = format!("Tool execution for '{tool}' is not allowed.");
                return settle(cx, req, ToolOutput::error(text));
            }
            Policy::Ask => {}
        }
        // Boxed, so that other calls do not reserve space for it.
        boxed(|| async {
            match self.decide(cx, req, ruling.why).await? {
                Ok(decision) => self.apply(cx, req, decision).await,
                Err(why) => {
                    let text = format!("Tool execution for '{}' was not approved: {why}.", req.call.name);
                    settle(cx, req, ToolOutput::error(text))
                }
            }
        })
        .await
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
            .field("strategies", &!self.strategies.is_empty())
            .field("approver", &self.approver.is_some())
            .field("store", &self.store.is_some())
            .field("preapproved", &self.preapproved)
            .finish()
    }
}
