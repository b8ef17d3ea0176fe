//! Patterns whose course models direct: supervisor, swarm, magentic.

use std::{sync::Arc, time::Duration};

use agent_core::{
    AssistantMessage, Block, ErrorKind, Journal, MemoryJournal, Message,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_team::{
    Team, TeamEndReason, TeamRequest,
    pattern::{Magentic, Pattern, PatternReason, Scope, Supervisor, Swarm},
};
use serde_json::json;

use crate::common::{Thinker, clock, mortal::Mortal, scripted};

fn scope() -> Scope {
    Scope::new("s", "r")
}

fn says(text: impl Into<String>) -> AssistantMessage {
    AssistantMessage::new(vec![Block::text(text)])
}

fn thinker(name: &str, think: impl Fn(&[Message]) -> AssistantMessage + Send + Sync + 'static) -> Agent {
    Agent::builder(name, Thinker::new(think)).build().expect("builds")
}

/// The newest message.
fn last(messages: &[Message]) -> String {
    messages.last().map(Message::text).unwrap_or_default()
}

#[tokio::test]
async fn a_supervisor_gives_tasks_with_what_workers_need_and_answers_from_their_reports() {
    let answer = Turn::text("12 pages, 3 pictures.").expect(|seen| match seen.texts().last() {
        Some(text) if text.contains("reader, on \"Count the pages.\":\n12") && text.contains("eye, on") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let lead = scripted("lead", [Turn::text("ASK reader: Count the pages."), Turn::text("ASK eye: Count."), answer]);
    let reader = scripted("reader", [Turn::text("12")]);
    let workers = [(reader, "reads"), (scripted("eye", [Turn::text("3")]), "sees")];
    let end = Supervisor::new(lead, workers, 5).expect("limited").run(&scope(), "Describe it.").await.expect("runs");
    assert_eq!((end.text.as_str(), end.reason, end.parts.len()), ("12 pages, 3 pictures.", PatternReason::Done, 5));
}

#[tokio::test]
async fn a_supervisor_that_only_asks_ends_after_its_rounds_and_one_that_asks_nobody_fails() {
    let lead = scripted("lead", (0..3).map(|_| Turn::text("ASK reader: More.")));
    let reader = scripted("reader", [Turn::text("one"), Turn::text("two")]);
    let end = Supervisor::new(lead, [(reader, "")], 2).expect("limited").run(&scope(), "Go.").await.expect("runs");
    assert_eq!((end.text.as_str(), end.reason), ("two", PatternReason::Rounds));
    let lead = scripted("lead", [Turn::text("ASK nobody: Go.")]);
    let lost = Supervisor::new(lead, [(scripted("reader", []), "")], 2).expect("limited").run(&scope(), "Go.").await;
    assert!(lost.expect_err("nobody").message().contains("asked 'nobody', which is no worker; workers: reader"));
}

fn progress(next: &str, progress: bool) -> Turn {
    Turn::text(json!({"done": false, "progress": progress, "next": next, "instruction": "Do it."}).to_string())
}

#[tokio::test]
async fn a_magentic_manager_plans_again_when_the_work_stalls() {
    let replanned = Turn::text("Another plan.").expect(|seen| match seen.texts().last() {
        Some(text) if text.contains("made no progress") && text.contains("a, on \"Do it.\":\none") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let manager = scripted(
        "manager",
        [
            Turn::text("A plan."),
            progress("a", false),
            progress("a", false),
            replanned,
            progress("a", true),
            Turn::text(r#"Here: {"done": true, "answer": "It is done."}"#),
        ],
    );
    let a = scripted("a", [Turn::text("one"), Turn::text("two")]);
    let magentic = Magentic::builder(manager).agent(a, "works").rounds(9).max_stalls(2).build().expect("limited");
    let end = magentic.run(&scope(), "Do it all.").await.expect("runs");
    assert_eq!((end.text.as_str(), end.reason), ("It is done.", PatternReason::Done));
}

#[tokio::test]
async fn a_magentic_pattern_ends_as_stalled_after_its_plans_and_after_its_rounds() {
    let turns = || [Turn::text("A plan."), Turn::text("no JSON"), Turn::text("B plan."), Turn::text("{}")];
    let a = || scripted("a", []);
    let stalled = Magentic::builder(scripted("m", turns())).agent(a(), "").rounds(9).max_stalls(1).max_replans(1);
    let end = stalled.build().expect("limited").run(&scope(), "Go.").await.expect("runs");
    assert_eq!((end.text.as_str(), end.reason), ("", PatternReason::Stalled));
    let busy = scripted("m", [Turn::text("A plan."), progress("a", true)]);
    let a = scripted("a", [Turn::text("one")]);
    let busy = Magentic::builder(busy).agent(a, "").rounds(1).build().expect("limited");
    let end = busy.run(&scope(), "Go.").await.expect("runs");
    assert_eq!((end.text.as_str(), end.reason), ("one", PatternReason::Rounds));
}

#[tokio::test(start_paused = true)]
async fn a_person_approves_the_plan_or_has_another_one_written() {
    let second = Turn::text("Plan 2.").expect(|seen| match seen.texts().last() {
        Some(text) if text.contains("was not approved: shorter") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let manager = scripted("m", [Turn::text("Plan 1."), second, Turn::text(r#"{"done": true, "answer": "Done."}"#)]);
    let magentic = Magentic::builder(manager).agent(scripted("a", []), "").rounds(3).approve_plan();
    let team =
        Team::builder("team").pattern(magentic.build().expect("limited")).clock(clock()).build().expect("builds");
    let end = team.start(TeamRequest::user("Go.").session("s").run_id("r")).await.expect("waits");
    assert_eq!((&end.reason, end.questions.len()), (&TeamEndReason::Waiting, 1));
    let asked = &end.questions[0];
    assert_eq!((asked.question.kind.as_str(), &asked.question.payload), ("approve_plan", &json!({"plan": "Plan 1."})));
    let answer = |asked: &agent_team::TeamQuestion, value| {
        TeamRequest::resume("s").answer(asked.member.clone(), asked.question.id.clone(), value)
    };
    let no = json!({"approve": false, "feedback": "shorter"});
    let end = team.start(answer(asked, no)).await.expect("waits again");
    assert_eq!((&end.reason, &end.questions[0].question.payload["plan"]), (&TeamEndReason::Waiting, &json!("Plan 2.")));
    let end = team.start(answer(&end.questions[0], json!(true))).await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "Done."));
}

#[tokio::test(start_paused = true)]
async fn the_active_agent_of_a_swarm_is_kept_over_turns_of_a_team() {
    let triage = ScriptedModel::new([
        Turn::call("c1", "transfer_to_billing", json!({"reason": "an invoice"})),
        Turn::text("Anything else?"),
    ]);
    let billing = ScriptedModel::new([
        Turn::text("It is corrected."),
        Turn::text("You are welcome."),
        Turn::call("c2", "transfer_to_triage", json!({"reason": "something else"})),
    ]);
    let agent = |name: &str, model: ScriptedModel| Agent::builder(name, model).build().expect("builds");
    let swarm = Swarm::new(agent("triage", triage), "first questions", [(agent("billing", billing), "invoices")], 4);
    let store = MemoryJournal::default();
    let team = Team::builder("desk").pattern(swarm.expect("limited")).store(store).build().expect("builds");
    let mut said = Vec::new();
    for (run, text) in [("r1", "My invoice is wrong."), ("r2", "Thanks."), ("r3", "And my password?")] {
        let end = team.start(TeamRequest::user(text).session("ada").run_id(run)).await.expect("runs");
        said.push(end.text);
    }
    assert_eq!(said, ["It is corrected.", "You are welcome.", "Anything else?"]);
}

/// Runs a pattern in processes of which the first dies at each entry, and compares the result.
async fn survives(build: impl Fn(Arc<dyn Journal>) -> Pattern, text: &str) {
    let team = |store: Arc<dyn Journal>| {
        Team::builder("team").pattern(build(store.clone())).store(store).clock(clock()).build().expect("builds")
    };
    let request = || TeamRequest::user("Go.").session("s").run_id("r");
    let counted = Mortal::new(MemoryJournal::default(), u64::MAX, false);
    let whole = team(Arc::new(counted.clone())).start(request()).await.expect("runs");
    assert_eq!((&whole.reason, whole.text.as_str()), (&TeamEndReason::Finished, text));
    let turns = |end: &agent_team::TeamEnd| end.members.iter().map(|member| member.turns).collect::<Vec<_>>();
    for dies_at in 1..=counted.written() {
        for is_written in [false, true] {
            let journal = MemoryJournal::default();
            let process = Mortal::new(journal.clone(), dies_at, is_written);
            let mortal = team(Arc::new(process.clone()));
            tokio::select! {
                biased;
                () = process.died() => {}
                end = mortal.start(request()) => panic!("it lived: {end:?}"),
            }
            drop(mortal);
            tokio::time::sleep(Duration::from_millis(1)).await; // lets aborted tasks end
            let end = team(Arc::new(journal)).start(request()).await.expect("runs");
            assert_eq!((&end.reason, &end.text), (&whole.reason, &whole.text), "died at {dies_at}: {is_written}");
            assert_eq!(turns(&end), turns(&whole), "died at {dies_at}: {is_written}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_died_at_any_entry_ends_as_one_that_did_not() {
    let build = |_: Arc<dyn Journal>| {
        let lead = thinker("lead", |messages| match last(messages).contains("Reports:") {
            true => says("12 pages."),
            false => says("ASK reader: Count."),
        });
        Supervisor::new(lead, [(thinker("reader", |_| says("12")), "reads")], 3).expect("limited").into()
    };
    survives(build, "12 pages.").await;
}

#[tokio::test(start_paused = true)]
async fn a_magentic_pattern_that_died_at_any_entry_ends_as_one_that_did_not() {
    let build = |_: Arc<dyn Journal>| {
        let manager = thinker("manager", |messages| {
            let asked = last(messages);
            match (asked.contains("Answer with one JSON object"), asked.contains("Reports:")) {
                (false, _) => says("Count the pages."),
                (true, false) => says(r#"{"progress": true, "next": "reader", "instruction": "Count."}"#),
                (true, true) => says(r#"{"done": true, "answer": "12 pages."}"#),
            }
        });
        let magentic = Magentic::builder(manager).agent(thinker("reader", |_| says("12")), "reads").rounds(3);
        magentic.build().expect("limited").into()
    };
    survives(build, "12 pages.").await;
}

#[tokio::test(start_paused = true)]
async fn a_swarm_that_died_at_any_entry_ends_as_one_that_did_not() {
    let build = |_: Arc<dyn Journal>| {
        let triage = thinker("triage", |_| {
            let call = Block::tool_call("c1", "transfer_to_billing", json!({"reason": "an invoice"}).to_string());
            AssistantMessage::new(vec![call])
        });
        let billing = thinker("billing", |_| says("It is corrected."));
        Swarm::new(triage, "", [(billing, "invoices")], 4).expect("limited").into()
    };
    survives(build, "It is corrected.").await;
}

#[test]
fn a_directed_pattern_that_cannot_end_or_begin_is_refused_when_it_is_built() {
    let agent = || scripted("a", []);
    let none: [(Agent, &str); 0] = [];
    let config = |refused: agent_core::Result<()>| assert_eq!(refused.expect_err("refused").kind(), ErrorKind::Config);
    config(Supervisor::new(agent(), none.clone(), 1).map(drop));
    config(Supervisor::new(agent(), [(agent(), "")], 0).map(drop));
    config(Magentic::builder(agent()).rounds(1).build().map(drop));
    config(Magentic::builder(agent()).agent(agent(), "").build().map(drop));
    config(Magentic::builder(agent()).agent(agent(), "").rounds(0).build().map(drop));
    config(Magentic::builder(agent()).agent(agent(), "").rounds(1).max_stalls(0).build().map(drop));
    config(Swarm::new(agent(), "", none, 1).map(drop));
    config(Swarm::new(agent(), "", [(scripted("b", []), "")], 0).map(drop));
    config(Swarm::new(agent(), "", [(agent(), "")], 1).map(drop));
}
