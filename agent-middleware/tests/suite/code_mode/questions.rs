//! Programs with a question to a person in the middle.

use std::collections::BTreeSet;

use agent_core::{Checkpoint, Effect, RunEnd, RunRequest, Tool, ToolOutput, testing::Turn, tool::Doubt};
use agent_exec::AgentBuilder;
use agent_middleware::Approval;
use agent_tools::{ToolExt, from_schema};
use serde_json::{Value, json};

use super::world::{Outside, builder, code_mode, finished, program, said};

fn waits(end: agent_core::Result<RunEnd>) -> Checkpoint {
    match end.expect("does not fail") {
        RunEnd::Interrupted(checkpoint) => *checkpoint,
        other => panic!("{other:?}"),
    }
}

/// Resumes in another process, which has the model's other turns, with this answer to every
/// question.
async fn answered(checkpoint: Checkpoint, agent: AgentBuilder, value: impl Fn(&str) -> Value) -> Vec<String> {
    let checkpoint: Checkpoint =
        serde_json::from_str(&serde_json::to_string(&checkpoint).expect("serialises")).expect("parses");
    let answers: Vec<_> =
        checkpoint.questions.iter().map(|question| (question.id.clone(), value(&question.id))).collect();
    let agent = agent.build().expect("builds");
    said(finished(agent.start(RunRequest::resume(checkpoint, answers)).await).history.iter())
}

#[tokio::test]
async fn a_question_of_a_call_inside_is_asked_and_the_program_goes_on_with_the_answer() {
    let outside = Outside::default();
    let (agent, _) = builder([program("p", "a = say('a')\nb = ask('well?')\na + b + say('c')")], &outside);
    let checkpoint = waits(agent.middleware(code_mode()).build().expect("builds").run("go").await);
    assert_eq!(checkpoint.questions.len(), 1);
    let (agent, model) = builder([Turn::text("so")], &outside);
    let said = answered(checkpoint, agent.middleware(code_mode()), |_| json!("B")).await;
    assert_eq!(said, ["user: go", "calls run_code(p)", "p: aBc", "assistant: so"]);
    assert_eq!(model.calls(), 1);
    let says = outside.done().into_iter().filter(|line| line.contains("say")).collect::<Vec<_>>();
    assert_eq!(says, ["p.1: say {\"name\":\"a\"}", "p.3: say {\"name\":\"c\"}"]);
}

#[tokio::test]
async fn a_question_of_one_of_several_calls_waits_and_the_others_are_not_made_again() {
    let outside = Outside::default();
    let code = "import asyncio\nawait asyncio.gather(say('a'), ask('well?'), add(1, 2), ask('and?'))";
    let (agent, _) = builder([program("p", code)], &outside);
    let checkpoint = waits(agent.middleware(code_mode()).build().expect("builds").run("go").await);
    assert_eq!(checkpoint.questions.len(), 2, "both are asked at once");
    let (agent, _) = builder([Turn::text("so")], &outside);
    let said = answered(checkpoint, agent.middleware(code_mode()), |id| id.split('/').next().into()).await;
    assert_eq!(said, ["user: go", "calls run_code(p)", "p: ['a', 'p.2', 3, 'p.4']", "assistant: so"]);
    let made = |what: &str| outside.done().iter().filter(|line| line.contains(what)).count();
    assert_eq!((made("say"), made("add")), (1, 1));
}

#[tokio::test]
async fn approval_of_the_program_itself_is_asked_for_before_it_makes_a_call() {
    for (decision, wanted, calls) in [
        (json!({"decision": "approve"}), "p: ab", 2),
        (json!({"decision": "reject", "reason": "Not today."}), "Not today.", 0),
    ] {
        let outside = Outside::default();
        let ask = || Approval::new().ask("run_code");
        let (agent, _) = builder([program("p", "say('a') + say('b')")], &outside);
        let agent = agent.middleware(code_mode()).middleware(ask()).build().expect("builds");
        let checkpoint = waits(agent.run("go").await);
        let shown = checkpoint.questions[0].payload.to_string();
        assert!(shown.contains("say('a') + say('b')"), "whoever decides sees the program: {shown}");
        assert!(outside.done().is_empty());
        let (agent, _) = builder([Turn::text("so")], &outside);
        let said = answered(checkpoint, agent.middleware(code_mode()).middleware(ask()), |_| decision.clone()).await;
        assert!(said.len() == 4 && said[2].contains(wanted), "{said:?}");
        assert_eq!(outside.done().len(), calls);
    }
}

/// A tool whose effect cannot be looked up, and which is cut off in its first call.
fn pay(outside: &Outside, cut_off: bool) -> impl Tool {
    let outside = outside.clone();
    let parameters = json!({"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]});
    let pay = from_schema("pay", "", parameters, move |args: Value, req: agent_core::ToolRequest| {
        let outside = outside.clone();
        async move {
            outside.note(format!("{}: pay {args}", req.call.id));
            if cut_off {
                req.cx.cancellation().cancel();
                std::future::pending::<()>().await;
            }
            Ok::<_, agent_core::Error>(ToolOutput::text("paid"))
        }
    });
    pay.with_options(|options| options.effect(Effect::AtMostOnce))
}

#[tokio::test]
async fn a_call_of_a_program_that_may_have_happened_is_asked_about_and_never_made_twice_in_silence() {
    for (answer, wanted, payments) in [
        (json!({"happened": "paid before"}), "p: a paid before b", 1),
        (json!("did_not"), "p: a paid b", 2),
        (json!("unknown"), "not known whether it happened", 1),
    ] {
        let outside = Outside::default();
        let code = "' '.join([say('a'), pay('Ada'), say('b')])";
        let agent = |turns: Vec<Turn>, cut_off| {
            let (agent, _) = builder(turns, &outside);
            agent.tool(pay(&outside, cut_off)).middleware(code_mode())
        };
        let cut_off = agent(vec![program("p", code)], true).build().expect("builds");
        let end = cut_off.run("go").await.expect("is cancelled");
        let RunEnd::Cancelled(checkpoint) = end else { panic!("{end:?}") };
        let asked = agent(vec![], false).build().expect("builds").start(RunRequest::resume(*checkpoint, [])).await;
        let checkpoint = waits(asked);
        assert_eq!((&*checkpoint.questions[0].kind, checkpoint.questions.len()), (Doubt::KIND, 1));
        let said = answered(checkpoint, agent(vec![Turn::text("so")], false), |_| answer.clone()).await;
        assert!(said.len() == 4 && said[2].contains(wanted), "{said:?}");
        let done = outside.done();
        assert_eq!(done.iter().filter(|line| line.starts_with("p.2: pay")).count(), payments, "{done:?}");
        assert_eq!(done.iter().filter(|line| line.starts_with("p.1: say")).count(), 1, "{done:?}");
        assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), if wanted.starts_with("p: ") { 3 } else { 2 });
    }
}
