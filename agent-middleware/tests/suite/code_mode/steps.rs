//! A program's calls as steps of the run, and other events during the program.

use agent_core::{AssistantMessage, Block, ExitReason, Flow, Message, RunRequest, ToolOutput, testing::Turn};
use agent_middleware::{Approval, before_model_fn, before_tool_fn};
use serde_json::json;

use super::world::{Outside, builder, code_mode, finished, program, said};

#[tokio::test]
async fn approval_decides_on_each_call_of_a_program() {
    let outside = Outside::default();
    let (agent, model) = builder([program("p", "say('a')\nadd(1, 2)\nsay('b')"), Turn::text("so")], &outside);
    let agent = agent.middleware(code_mode()).middleware(Approval::new().deny("add"));
    finished(agent.build().expect("builds").run("go").await);
    let result = &model.requests()[1].results()[0].1;
    assert!(
        result.starts_with("Traceback") && result.contains("line 2") && result.contains("RuntimeError"),
        "{result}"
    );
    assert_eq!(outside.done(), ["p.1: say {\"name\":\"a\"}"]);
}

#[tokio::test]
async fn arguments_that_a_hook_changed_are_those_of_the_tool_and_the_program_goes_on() {
    let outside = Outside::default();
    let (agent, model) = builder([program("p", "say('a') + say('b')"), Turn::text("so")], &outside);
    let edits = before_tool_fn("edits", |_, req| {
        if &*req.call.name == "run_code" {
            return Ok(Flow::Continue);
        }
        let name = req.args["name"].as_str().expect("a name").to_uppercase();
        req.args = std::sync::Arc::new(json!({"name": name}));
        Ok(Flow::<ToolOutput>::Continue)
    });
    let agent = agent.middleware(code_mode()).middleware(edits).build().expect("builds");
    finished(agent.run("go").await);
    assert_eq!(model.requests()[1].results(), [("p".into(), "AB".into())]);
}

#[tokio::test]
async fn what_is_said_while_a_program_is_under_way_comes_after_it() {
    let outside = Outside::default();
    let (agent, model) = builder([program("p", "say('a') + say('b')"), Turn::text("so")], &outside);
    let speaks = before_tool_fn("speaks", |cx, req| {
        cx.steer(Message::user(format!("at {}", req.call.id)))?;
        Ok(Flow::<ToolOutput>::Continue)
    });
    let agent = agent.middleware(code_mode()).middleware(speaks).build().expect("builds");
    let end = finished(agent.run("go").await);
    let wanted = ["user: go", "calls run_code(p)", "p: ab", "user: at p", "user: at p.1", "user: at p.2"];
    assert_eq!(said(&model.requests()[1].messages), wanted);
    assert_eq!(said(end.history.iter())[..6], wanted);
}

#[tokio::test]
async fn a_program_that_the_run_has_no_steps_for_is_ended_and_the_conversation_says_so() {
    for final_answer in [false, true] {
        let outside = Outside::default();
        let (agent, model) = builder([program("p", "for n in range(9): say(str(n))"), Turn::text("so")], &outside);
        let agent = agent.middleware(code_mode()).max_steps(4).final_answer(final_answer).build().expect("builds");
        let end = finished(agent.run("go").await);
        assert_eq!(end.reason, ExitReason::StepLimit);
        let said = said(end.history.iter());
        assert_eq!(said[..2], ["user: go", "calls run_code(p)"], "{said:?}");
        assert!(
            said[2].starts_with("p!: The program was stopped: ") && said[2].contains("called say, say, say."),
            "{said:?}"
        );
        assert_eq!((said.len(), model.calls()), if final_answer { (4, 2) } else { (3, 1) });
        assert_eq!(outside.done().len(), 3);
    }
}

#[tokio::test]
async fn a_tool_that_ends_the_run_ends_it_in_a_program_too() {
    let outside = Outside::default();
    let (agent, _) = builder([program("p", "say('end')\nsay('never')")], &outside);
    let end = finished(agent.middleware(code_mode()).exit_on(["say"]).build().expect("builds").run("go").await);
    assert_eq!((end.reason, end.answer.as_str()), (ExitReason::Tool("say".into()), "end"));
    let said = said(end.history.iter());
    assert!(said.len() == 3 && said[2].starts_with("p!: The program was stopped: the run was over."), "{said:?}");
}

/// Replaces the conversation at this step.
fn shortens(step: u32, shorten: fn(Vec<Message>) -> Vec<Message>) -> impl agent_core::Middleware {
    before_model_fn("shortens", move |cx, _| {
        if cx.step() == step {
            let history = agent_core::History::from_messages(shorten(cx.history().iter().cloned().collect()))?;
            cx.replace_history(history, "compact_auto");
        }
        Ok(Flow::Continue)
    })
}

#[tokio::test]
async fn a_program_whose_results_were_taken_away_ends_with_an_error_that_says_so() {
    let away: fn(Vec<Message>) -> Vec<Message> = |_| vec![Message::user("In short: go.")];
    let changed: fn(Vec<Message>) -> Vec<Message> = |messages| {
        let cleared = messages.into_iter().map(|message| match message {
            Message::Tool(result) => {
                Message::Tool(agent_core::ToolMessage::text(result.call_id(), result.name(), "[cleared]", false))
            }
            other => other,
        });
        cleared.collect()
    };
    for (shorten, first) in [(away, "user: In short: go."), (changed, "user: go")] {
        let outside = Outside::default();
        let (agent, model) = builder([program("p", "say('a')\nsay('b')\nsay('c')"), Turn::text("so")], &outside);
        let agent = agent.middleware(shortens(4, shorten)).middleware(code_mode()).build().expect("builds");
        let end = finished(agent.run("go").await);
        let said = said(end.history.iter());
        assert_eq!(said[..2], [first, "calls run_code(p)"], "{said:?}");
        assert!(said[2].contains("the conversation was shortened") && said[2].contains("called say, say."), "{said:?}");
        assert_eq!((said.len(), model.calls(), outside.done().len()), (4, 2, 2));
    }
}

#[tokio::test]
async fn what_the_model_thought_goes_back_to_it_as_it_was() {
    let outside = Outside::default();
    let mut blocks = vec![Block::reasoning("I think."), Block::text("I look.")];
    blocks.push(Block::tool_call("p", "run_code", json!({"code": "say('a') + say('b')"}).to_string()));
    let message = AssistantMessage::new(blocks);
    let (agent, model) = builder([Turn::message(message.clone()), Turn::text("so")], &outside);
    let end = finished(agent.middleware(code_mode()).build().expect("builds").run("go").await);
    assert_eq!(model.requests()[1].messages[1], Message::Assistant(message.clone()));
    assert_eq!(end.history.get(1), Some(&Message::Assistant(message)));
}

#[tokio::test]
async fn runs_at_once_have_programs_of_their_own() {
    let outside = Outside::default();
    let runs = (0..4).map(|n| {
        let (agent, model) = builder([program("p", &format!("say('{n}') + say('x')")), Turn::text("so")], &outside);
        (agent.middleware(code_mode()).build().expect("builds"), model)
    });
    let runs: Vec<_> = runs.collect();
    let ends = futures::future::join_all(runs.iter().map(|(agent, _)| agent.run("go"))).await;
    ends.into_iter().for_each(|end| drop(finished(end)));
    for (n, (_, model)) in runs.iter().enumerate() {
        assert_eq!(model.requests()[1].results(), [("p".into(), format!("{n}x"))]);
    }
}

#[tokio::test]
async fn a_run_that_does_not_offer_programs_offers_its_tools() {
    let outside = Outside::default();
    let (agent, model) = builder([Turn::text("so")], &outside);
    let agent = agent.middleware(code_mode()).build().expect("builds");
    finished(agent.start(RunRequest::user("go").tools_named(["say", "add"])).await);
    assert_eq!(model.requests()[0].tools, ["add", "say"]);
}
