//! Sub-agents that ask their parent.

use agent_core::{ExitReason, RunRequest};
use agent_middleware::AskParent;

use super::*;
use crate::common::{finished, stopped};

/// Builds a helper that asks a question, and then repeats the answer.
fn curious(ask: AskParent) -> Agent {
    let model = thinks(|spoke, history| match spoke {
        0 => call("q", "ask_parent", json!({"question": "Which year?"})),
        _ => says(format!("heard: {}", last(history))),
    });
    built(Agent::builder("helper", model).middleware(ask))
}

#[tokio::test]
async fn the_callers_model_answers_by_calling_the_sub_agent_again() {
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "research", json!({})),
        1 => ask("b", "1990", json!({"id": first_id(history)})),
        _ => says(last(history)),
    });
    let end = finished(built(boss(model, curious(AskParent::new()))).run("go").await);
    let question = "Which year?\n\n[Sub-agent 'helper' asks this before it goes on: call it again, with its id and your \
                    answer.]";
    assert_eq!(texts(&end), [question, "heard: 1990"]);
}

#[tokio::test]
async fn a_caller_that_cannot_recall_tells_the_whole_task_again() {
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "research", json!({})),
        _ => says(last(history)),
    });
    let boss =
        Agent::builder("boss", model).middleware(Delegation::new().to("helper", "Helps.", curious(AskParent::new())));
    let end = finished(built(boss).run("go").await);
    let question = "Which year?\n\n[Sub-agent 'helper' asks this before it goes on: call it again, with the whole task and \
                    your answer in it.]";
    assert_eq!(texts(&end), [question]);
}

#[tokio::test]
async fn one_in_the_background_asks_with_its_report() {
    let model = thinks(|spoke, history| match spoke {
        0 => ask("a", "research", json!({"background": true})),
        _ if last(history).contains("asks this") => ask("b", "1990", json!({"id": first_id(history)})),
        _ if last(history).starts_with("heard") => "done".into(),
        _ => "I wait.".into(),
    });
    let end = finished(built(boss(model, curious(AskParent::new()))).run("go").await);
    assert_eq!(texts(&end)[1], "heard: 1990");
}

#[tokio::test]
async fn a_person_may_answer_instead() {
    let model =
        || thinks(|spoke, history| if spoke == 0 { ask("a", "research", json!({})) } else { says(last(history)) });
    let agent = || built(boss(model(), curious(AskParent::new().person())));
    let (kind, checkpoint) = stopped(agent().run("go").await);
    assert_eq!((kind, questions(&checkpoint)), ("interrupted", vec!["a/q/ask_parent"]));
    assert_eq!(checkpoint.questions[0].payload, json!({"question": "Which year?", "path": "boss/helper"}));
    let answer = ("a/q/ask_parent".to_owned(), json!("1990"));
    let end = finished(agent().start(RunRequest::resume(checkpoint, [answer])).await);
    assert_eq!(texts(&end), ["heard: 1990"]);
}

#[tokio::test]
async fn an_agent_that_nobody_called_is_told_to_decide() {
    let end = finished(curious(AskParent::new()).run("go").await);
    assert_eq!(end.reason, ExitReason::Text);
    assert_eq!(texts(&end), ["Nobody called this agent: decide by yourself, and say what you assumed."]);
}
