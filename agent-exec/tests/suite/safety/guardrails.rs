//! Guards on the input and output of whole runs.

use std::time::Duration;

use agent_core::{
    Chunk, Error, ErrorKind, EventKind, ExitReason, Message,
    model::MessageBuilder,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{
    Guardrails,
    guardrails::{GuardStage, GuardSubject, GuardVerdict, Guarded, GuardrailsConfig, Moderation, WordList},
};
use serde_json::json;

use crate::common::{Log, Watch, finished, gives, ms, results};

/// Returns a guard with this verdict on texts that contain `bad`, after a delay.
fn guard(verdict: GuardVerdict, after: u64) -> Guarded {
    Guarded::new("guard", move |_, subject: GuardSubject| {
        let verdict = if subject.text.contains("bad") { verdict.clone() } else { GuardVerdict::Pass };
        async move {
            tokio::time::sleep(ms(after)).await;
            Ok(verdict)
        }
    })
}

fn fails() -> Guarded {
    Guarded::new("guard", |_, _| async { Err(Error::tool("out of order")) })
}

fn under(guard: Guarded, model: &ScriptedModel) -> AgentBuilder {
    Agent::builder("main", model.clone()).middleware(Guardrails::new().guard(guard))
}

/// Returns the text that readers show in the end.
fn shown(watch: &Watch) -> String {
    let mut message = MessageBuilder::default();
    let chunks = watch.pick(|kind| match kind {
        EventKind::Chunk(chunk) => Some(chunk),
        _ => None,
    });
    chunks.iter().for_each(|chunk: &Chunk| message.push(chunk));
    message.finish().text()
}

fn refuse() -> GuardVerdict {
    GuardVerdict::Refuse("No.".into())
}

#[tokio::test(start_paused = true)]
async fn refused_input_ends_the_run_with_the_guards_words_before_a_model_is_called() {
    let model = ScriptedModel::new([]);
    let agent = under(guard(refuse(), 5).at(GuardStage::Input), &model).build().expect("builds");
    let end = finished(agent.run("a bad thing").await);
    assert_eq!((end.answer.as_str(), end.reason, model.calls()), ("No.", ExitReason::Verdict, 0));
}

#[tokio::test(start_paused = true)]
async fn in_parallel_the_models_call_is_dropped_and_nothing_of_it_is_left() {
    let slow = || Turn::text("one two three four").and_call("1", "tool", json!({})).delay(ms(10));
    for (guard_takes, _case) in [(25, "while it speaks"), (500, "after it was done")] {
        let (model, watch, log) = (ScriptedModel::new([slow()]), Watch::default(), Log::default());
        let agent = under(guard(refuse(), guard_takes).at(GuardStage::Input).parallel(), &model)
            .tool(crate::common::slow("tool", 1, &log))
            .middleware(watch.clone())
            .build()
            .expect("builds");
        let end = finished(agent.run("a bad thing").await);
        assert_eq!((end.answer.as_str(), model.calls(), model.open()), ("No.", 1, 0));
        assert_eq!(shown(&watch), "No.", "what was shown was taken back");
        assert!(log.seen().is_empty(), "no tool ran");
    }
}

#[tokio::test(start_paused = true)]
async fn in_parallel_good_input_is_answered_as_soon_as_both_are_done() {
    for (guard_takes, all_in_all) in [(5, 50), (200, 200)] {
        let model = ScriptedModel::new([Turn::text("one two three four").delay(ms(10))]);
        let agent =
            under(guard(refuse(), guard_takes).at(GuardStage::Input).parallel(), &model).build().expect("builds");
        let began = tokio::time::Instant::now();
        assert_eq!(finished(agent.run("a good thing").await).answer, "one two three four");
        assert_eq!(began.elapsed().as_millis(), all_in_all);
    }
}

#[tokio::test(start_paused = true)]
async fn replaced_input_is_what_the_model_sees_and_what_is_kept() {
    let model = ScriptedModel::new([Turn::text("ok"), Turn::text("ok")]);
    let replace = GuardVerdict::Replace("a good thing".into());
    let agent = under(guard(replace, 0).at(GuardStage::Input), &model).build().expect("builds");
    let end = finished(agent.run("a bad thing").await);
    assert_eq!(model.requests()[0].texts(), ["a good thing"]);
    assert_eq!(end.history.iter().map(Message::text).collect::<Vec<_>>(), ["a good thing", "ok"]);
}

#[tokio::test(start_paused = true)]
async fn a_blocking_guard_lets_nothing_of_an_answer_out_before_it_passed() {
    for (verdict, answer) in [(refuse(), "No."), (GuardVerdict::Replace("good".into()), "good")] {
        for parallel in [false, true] {
            let (model, watch) = (ScriptedModel::new([Turn::text("so bad it is")]), Watch::default());
            let guard = guard(verdict.clone(), 5).at(GuardStage::Output);
            let guard = if parallel { guard.parallel() } else { guard };
            let agent = under(guard, &model).middleware(watch.clone()).build().expect("builds");
            let end = finished(agent.run("hello").await);
            assert_eq!((end.answer.as_str(), shown(&watch).as_str()), (answer, answer));
            let heard = watch.pick(|kind| match kind {
                EventKind::Chunk(Chunk::Text { delta, .. }) => Some(delta),
                _ => None,
            });
            assert_eq!(heard.concat().contains("bad"), parallel, "{heard:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tools_are_refused_replaced_and_can_end_the_run() {
    let calls = || ScriptedModel::new([Turn::call("1", "tool", json!({"x": "bad"})), Turn::text("done")]);
    for (stage, verdict, result, answer) in [
        (GuardStage::ToolInput, refuse(), "No.", "done"),
        (GuardStage::ToolOutput, refuse(), "No.", "done"),
        (GuardStage::ToolOutput, GuardVerdict::Replace("good".into()), "good", "done"),
        (GuardStage::ToolInput, GuardVerdict::Replace("{\"x\": 1}".into()), "a bad result", "done"),
        (GuardStage::ToolInput, GuardVerdict::Replace("no JSON".into()), "Not run: a check replaced", "done"),
        (GuardStage::ToolInput, GuardVerdict::Finish("The end.".into()), "Not run: the run was finished.", "The end."),
        (GuardStage::ToolOutput, GuardVerdict::Finish("The end.".into()), "Not run: the run was finished.", "The end."),
    ] {
        let agent = under(guard(verdict.clone(), 0).at(stage), &calls()).tool(gives("tool", json!("a bad result")));
        let end = finished(agent.build().expect("builds").run("go").await);
        assert!(results(&end.history)[0].1.starts_with(result), "{stage:?} {verdict:?}: {:?}", results(&end.history));
        assert_eq!(end.answer, answer, "{stage:?} {verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_fails_or_is_late_lets_nothing_pass_unless_it_fails_open() {
    let late = || guard(GuardVerdict::Pass, 5000).timeout(Duration::from_secs(1));
    for broken in [fails(), late()] {
        for stage in [GuardStage::Input, GuardStage::Output, GuardStage::ToolInput, GuardStage::ToolOutput] {
            for open in [false, true] {
                let model = ScriptedModel::new([Turn::call("1", "tool", json!({})), Turn::text("done")]);
                let guard = broken.clone().at(stage);
                let guard = if open { guard.fail_open() } else { guard };
                let agent = under(guard, &model).tool(gives("tool", json!("given"))).build().expect("builds");
                let end = agent.run("hello").await;
                match (open, stage) {
                    (true, _) => assert_eq!(results(&finished(end).history)[0].1, "given"),
                    (false, GuardStage::Input | GuardStage::Output) => {
                        let e = end.expect_err("nothing passes");
                        assert_eq!(
                            (e.kind(), e.message()),
                            (ErrorKind::ContentFiltered, "the check 'guard' could not be made")
                        );
                    }
                    (false, _) => {
                        assert!(results(&finished(end).history)[0].1.ends_with("the check 'guard' could not be made."));
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn moderation_goes_by_thresholds_and_a_score_that_is_no_number_passes_nothing() {
    let words = || WordList::new().word("violence", "stab");
    for (moderation, text, answer) in [
        (Moderation::new(words()), "Stab them", "I cannot help with that."),
        (Moderation::new(words()), "stable", "ok"),
        (Moderation::new(words()).threshold("violence", 1.5), "stab", "ok"),
        (Moderation::new(words()).threshold("violence", f64::NAN).answer("Hm."), "hello", "Hm."),
    ] {
        let model = ScriptedModel::new([Turn::text("ok")]);
        let agent = under(moderation.guard(), &model).build().expect("builds");
        assert_eq!(finished(agent.run(text).await).answer, answer, "{text}");
    }
    let model = ScriptedModel::new([Turn::text("I would stab them.")]);
    let agent = under(Moderation::new(words()).guard(), &model).build().expect("builds");
    assert_eq!(finished(agent.run("What now?").await).answer, "I cannot help with that.", "output too");
}

#[tokio::test]
async fn a_configuration_sets_how_guards_are_run_by_their_names() {
    let config = r#"{"guards": {"guard": {"stages": ["input"], "on_error": "open", "timeout": 1.5}}}"#;
    let config: GuardrailsConfig = serde_json::from_str(config).expect("parses");
    let model = ScriptedModel::new([Turn::text("ok")]);
    let agent =
        Agent::builder("main", model).middleware(Guardrails::from(config).guard(fails())).build().expect("builds");
    assert_eq!(finished(agent.run("hello").await).answer, "ok");
    assert!(serde_json::from_str::<GuardrailsConfig>(r#"{"guards": {"guard": {"stage": "input"}}}"#).is_err());
}
