//! Every built-in middleware passes the conformance suite.

use std::{fmt::Debug, time::Duration};

use agent_core::{Middleware, Question};
use agent_exec::testing::Conformance;
use agent_middleware::{
    Approval, AskParent, Breakpoints, ContextCompaction, Delegation, Events, Guardrails, Limits, Logging,
    LongToolOutput, PatchToolCalls, Pii, PromptCaching, PromptInjection, Reminders, RuntimeEnvironment, Snapshots,
    TodoList, ToolEmulator, ToolErrors, ToolRetry, ToolSearch,
    approval::{ApprovalConfig, Decision},
    breakpoints::BreakpointsConfig,
    compaction::CompactionConfig,
    delegation::DelegationConfig,
    guardrails::{GuardStage, GuardVerdict, Guarded},
    limits::LimitsConfig,
    pii::{PiiConfig, PiiKind},
    prompt::{PromptCachingConfig, RemindersConfig},
    prompt_injection::{Label, Sink},
    telemetry::{EventsConfig, LoggingConfig},
    tools::{PatchToolCallsConfig, ToolEmulatorConfig, ToolRetryConfig, ToolSearchConfig},
};
use serde_json::{Value, json};

/// Checks a middleware that changes nothing by default.
async fn changes_nothing<M: Middleware + Debug>(make: impl Fn() -> M + Send + Sync + 'static) {
    let name = make().name().to_owned();
    assert!(make().chunk_hook().is_none(), "{name} makes agents chunk what nobody hears");
    assert!(make().tools().is_empty() && make().sub_agents().is_empty(), "{name}");
    let check = Conformance::new(make).observe(|m| format!("{m:?}")).transparent().check().await;
    check.unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// Checks an active middleware.
pub(crate) async fn conforms<M: Middleware + Debug>(make: impl Fn() -> M + Send + Sync + 'static) {
    let name = make().name().to_owned();
    assert!(make().chunk_hook().is_none(), "{name} makes agents chunk what nobody hears");
    let check = Conformance::new(make).observe(|m| format!("{m:?}")).answers(agrees);
    check.check().await.unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// Agrees to every question.
fn agrees(question: &Question) -> Value {
    match &*question.kind {
        "approval" => json!({"decision": "approve"}),
        _ => json!(true),
    }
}

#[tokio::test(start_paused = true)]
async fn with_their_defaults_they_change_nothing() {
    changes_nothing(Events::new).await;
    changes_nothing(|| Events::from(EventsConfig::default())).await;
    changes_nothing(Logging::new).await;
    changes_nothing(|| Logging::from(LoggingConfig::default())).await;
    changes_nothing(Limits::new).await;
    changes_nothing(|| Limits::from(LimitsConfig::default())).await;
    changes_nothing(Breakpoints::new).await;
    changes_nothing(|| Breakpoints::from(BreakpointsConfig::default())).await;
    changes_nothing(Delegation::new).await;
    changes_nothing(|| Delegation::from(DelegationConfig::default())).await;
}

#[tokio::test(start_paused = true)]
async fn with_their_defaults_those_around_prompts_and_tools_change_nothing() {
    changes_nothing(PromptCaching::new).await;
    changes_nothing(|| PromptCaching::from(PromptCachingConfig::default())).await;
    changes_nothing(Reminders::new).await;
    changes_nothing(|| Reminders::from(RemindersConfig::default())).await;
    changes_nothing(|| ToolErrors::new(|_, _| None)).await;
    changes_nothing(ToolRetry::new).await;
    changes_nothing(|| ToolRetry::from(ToolRetryConfig::default())).await;
    changes_nothing(ContextCompaction::new).await;
    changes_nothing(|| ContextCompaction::from_config(CompactionConfig::default()).expect("sound")).await;
    changes_nothing(LongToolOutput::new).await;
    changes_nothing(PatchToolCalls::new).await;
    changes_nothing(|| PatchToolCalls::from(PatchToolCallsConfig::default())).await;
}

#[tokio::test(start_paused = true)]
async fn with_their_defaults_those_that_choose_tools_change_nothing() {
    changes_nothing(ToolSearch::new).await;
    changes_nothing(|| ToolSearch::from(ToolSearchConfig::default())).await;
    changes_nothing(ToolEmulator::new).await;
    changes_nothing(|| ToolEmulator::from(ToolEmulatorConfig::default())).await;
    changes_nothing(Snapshots::default).await;
}

#[tokio::test(start_paused = true)]
async fn those_that_watch_and_limit_conform() {
    conforms(|| Events::new().on(|_| {})).await;
    conforms(|| Logging::new().content(10).arguments(10)).await;
    let limits = || Limits::new().model_calls(9).tool_calls(9).tokens(999).wall_time(Duration::from_secs(9));
    conforms(limits).await;
    conforms(|| Limits::new().tool_calls(1)).await;
}

#[tokio::test(start_paused = true)]
async fn those_that_ask_conform() {
    conforms(|| Approval::new().ask("*").decide_with(|_, _| async { Ok(Decision::approve()) })).await;
    conforms(|| Approval::new().ask("*")).await;
    conforms(|| Breakpoints::new().before_model(2)).await;
    conforms(AskParent::new).await;
}

#[tokio::test(start_paused = true)]
async fn those_that_choose_tools_conform() {
    conforms(|| ToolSearch::new().defer("*")).await;
    conforms(|| ToolEmulator::new().answer("no_such_tool", 7)).await;
}

#[tokio::test(start_paused = true)]
async fn those_that_add_to_prompts_and_change_outputs_conform() {
    conforms(|| Reminders::new().steps(9).tokens()).await;
    conforms(RuntimeEnvironment::new).await;
    conforms(TodoList::new).await;
    let words = || ToolErrors::new(|_, e| Some(format!("sorry: {}", e.message())));
    Conformance::new(words).answers_failures().check().await.expect("conforms");
    conforms(|| PatchToolCalls::new().text("It was cut off.")).await;
}

#[tokio::test(start_paused = true)]
async fn with_their_defaults_those_that_protect_conform() {
    conforms(Approval::new).await;
    conforms(|| Approval::from(ApprovalConfig::default())).await;
    conforms(Pii::new).await;
    conforms(|| Pii::from_config(PiiConfig::default()).expect("sound")).await;
    // Without delimiters, which have a random id in each run.
    let distrusts = || PromptInjection::builder().other_tools(Label::Untrusted).fence(false).build().expect("sound");
    conforms(distrusts).await;
}

#[tokio::test(start_paused = true)]
async fn those_that_keep_things_back_conform() {
    let pii = || Pii::builder().redact(PiiKind::Email).redact(PiiKind::Phone).tool_input(true).build();
    conforms(move || pii().expect("sound")).await;
    let guard = || Guarded::new("guard", |_, _| async { Ok(GuardVerdict::Pass) }).at(GuardStage::Input);
    conforms(move || Guardrails::new().guard(guard().at(GuardStage::Output).at(GuardStage::ToolOutput))).await;
    conforms(move || Guardrails::new().guard(guard().at(GuardStage::Output).parallel())).await;
    let labels = || PromptInjection::builder().untrusted("no_such_tool").sink(Sink::new("*")).build();
    conforms(move || labels().expect("sound")).await;
}
