//! Requests of a server: elicitation, sampling, roots.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Answer, ErrorKind, ToolOutput,
    engine::{RunDriver, RunParts},
    run::Question,
    testing::{ScriptedModel, Turn},
};
use agent_tools::mcp::{Client, ELICITATION, Elicitation};
use serde_json::{Value, json};

use super::{double::Double, support::*, wild};

/// Makes a call that waits for an answer; returns its run and its question.
async fn asked(client: &Client) -> (RunDriver, Question) {
    let run = run(|_| {});
    let error = call_in(run.cx(), client, "double_ask", json!({})).await.expect_err("waits");
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    let [question] = error.questions() else { panic!("{error}") };
    (run, question.clone())
}

/// Returns the result of the call when its run resumes with the answer.
async fn goes_on(client: &Client, (before, question): (RunDriver, Question), value: Value) -> ToolOutput {
    let mut answer = Answer::from(value);
    answer.digest = question.digest;
    let run = run_as((**before.cx().ids()).clone(), |parts: &mut RunParts| {
        parts.answers.insert(question.id, answer);
    });
    call_in(run.cx(), client, "double_ask", json!({})).await.expect("goes on")
}

#[tokio::test]
async fn a_question_of_a_server_suspends_the_run_and_its_answer_is_given_when_the_call_is_made_again() {
    let double = Double::new();
    let client = double.builder().elicitation().build().expect("builds");
    let waiting = asked(&client).await;
    assert_eq!(waiting.1.kind, ELICITATION);
    assert_eq!(
        (&waiting.1.payload["server"], &waiting.1.payload["message"]),
        (&json!("double"), &json!("Who are you?"))
    );
    assert!(waiting.1.schema.is_some());
    // Another process: another client, another connection.
    let elsewhere = double.builder().elicitation().build().expect("builds");
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(goes_on(&elsewhere, waiting, answer).await.to_text(), r#"Accept {"mood":7,"name":"Ada"}"#);
    assert_eq!(
        double.count("ask"),
        2,
        "the tool is called again from its beginning, and what was left out is the default"
    );
}

#[tokio::test]
async fn a_person_may_decline() {
    let client = Double::new().builder().elicitation().build().expect("builds");
    let waiting = asked(&client).await;
    assert_eq!(goes_on(&client, waiting, json!({"action": "decline"})).await.to_text(), "Decline null");
}

#[tokio::test]
async fn who_answers_at_once_is_asked_in_the_call_which_is_made_once_and_an_answer_that_does_not_fit_is_none() {
    let double = Double::new();
    let answers = async |answer: Value| {
        let client = double.builder().elicitation_by(move |asked: Elicitation| {
            assert_eq!((&*asked.server, &*asked.message, asked.url), ("double", "Who are you?", None));
            let answer = answer.clone();
            async move { Ok(Some(answer).filter(|answer| !answer.is_null())) }
        });
        call(&client.build().expect("builds"), "double_ask", json!({})).await.expect("answered").to_text()
    };
    assert_eq!(answers(json!({"name": "Ada"})).await, r#"Accept {"mood":7,"name":"Ada"}"#);
    assert_eq!(double.count("ask"), 1);
    assert_eq!(answers(Value::Null).await, "Decline null");
    let wrong = answers(json!({"name": 7})).await;
    assert!(wrong.starts_with("nobody could be asked") && wrong.contains("does not fit"), "{wrong}");
}

#[tokio::test]
async fn what_was_answered_at_once_is_kept_and_not_asked_again_when_the_run_goes_on() {
    let (double, asked) = (Double::new(), Arc::new(AtomicUsize::new(0)));
    let count = asked.clone();
    let client = double.builder().elicitation_by(move |_: Elicitation| {
        let times = count.fetch_add(1, Ordering::AcqRel);
        async move { Ok(Some(json!({"name": format!("Ada {times}")}))) }
    });
    let (client, run) = (client.build().expect("builds"), run(|_| {}));
    let first = call_in(run.cx(), &client, "double_ask", json!({})).await.expect("answered").to_text();
    // The same step of the run, resumed with its journalled results.
    let stood = run.engine().log().at_rest();
    let again = run_as((**run.cx().ids()).clone(), |_| {});
    again.engine().log().adopt(&stood);
    let second = call_in(again.cx(), &client, "double_ask", json!({})).await.expect("answered").to_text();
    assert_eq!((first, asked.load(Ordering::Acquire)), (second, 1));
}

#[tokio::test]
async fn nobody_and_no_model_is_asked_unless_the_client_says_so() {
    let client = Double::new().client();
    let asked = call(&client, "double_ask", json!({})).await.expect("answered").to_text();
    assert!(asked.starts_with("nobody could be asked") || asked == "Decline null", "{asked}");
    let thought = call(&client, "double_think", json!({})).await.expect("answered").to_text();
    assert!(thought.starts_with("no model"), "{thought}");
}

#[tokio::test]
async fn a_server_may_ask_the_model_that_it_is_given_and_the_run_pays_for_it() {
    let model = ScriptedModel::new([Turn::text("42")]);
    let client = Double::new().builder().sampling(model.clone()).build().expect("builds");
    let thought = call(&client, "double_think", json!({})).await.expect("answered").to_text();
    assert!(thought.contains("42"), "{thought}");
    assert_eq!(model.requests()[0].texts(), ["What is 6 x 7?"]);
    model.assert_finished();
}

#[tokio::test]
async fn calls_of_a_server_that_may_ask_run_one_at_a_time_so_that_each_question_finds_its_call() {
    let client = Double::new().builder().elicitation().build().expect("builds");
    let (one, two) = (run(|_| {}), run(|_| {}));
    let (a, b) = tokio::join!(
        call_in(one.cx(), &client, "double_ask", json!({"a": 1})),
        call_in(two.cx(), &client, "double_ask", json!({"b": 1})),
    );
    for error in [a.expect_err("waits"), b.expect_err("waits")] {
        assert_eq!(error.questions().len(), 1);
    }
}

#[tokio::test]
async fn a_server_is_told_of_the_roots() {
    let client = Double::new().builder().root("file:///srv/a").root("file:///srv/b").build().expect("builds");
    let told = call(&client, "double_where", json!({})).await.expect("told");
    assert_eq!(told.to_text(), "file:///srv/a file:///srv/b");
}

#[tokio::test(start_paused = true)]
async fn a_late_question_of_a_call_that_was_given_up_never_goes_to_another_run() {
    let builder = wild::builder("late").elicitation().timeout(Duration::from_secs(5));
    let client = builder.build().expect("builds");
    let error = call(&client, "wild_work", json!({})).await.expect_err("hangs");
    assert!(error.message().contains("did not answer"), "{error}");
    // On the same connection, the late request of the first call would arrive now.
    let error = call(&client, "wild_work", json!({})).await.expect_err("hangs, on a connection of its own");
    assert!(error.questions().is_empty() && error.message().contains("did not answer"), "{error}");
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_refused_after_a_hundred_times() {
    let model = ScriptedModel::new((0..100).map(|_| Turn::text("and on")));
    let client = Double::new().builder().sampling(model.clone()).build().expect("builds");
    let told = call(&client, "double_nag", json!({})).await.expect("told").to_text();
    assert_eq!((&*told, model.requests().len()), ("100 answers", 100));
}

#[tokio::test]
async fn what_a_model_said_is_found_by_what_was_asked_in_whatever_order_that_is_asked_again() {
    let model = ScriptedModel::new([Turn::text("one"), Turn::text("two")]);
    let client = Double::new().builder().sampling(model).build().expect("builds");
    let asked = run(|_| {});
    let first = call_in(asked.cx(), &client, "double_think", json!({"of": ["a", "b"]})).await.expect("asked").to_text();
    assert!(first.contains("a: one") && first.contains("b: two"), "{first}");
    let stood = asked.engine().log().at_rest();
    let again = run(|parts: &mut RunParts| {
        let mut left = stood.clone();
        left.ids = (*parts.ids).clone();
        parts.log.adopt(&left);
    });
    let again = call_in(again.cx(), &client, "double_think", json!({"of": ["b", "a"]})).await.expect("told").to_text();
    assert!(again.contains("a: one") && again.contains("b: two"), "{again}");
}

#[tokio::test]
async fn a_question_that_is_too_long_is_refused() {
    let client = Double::new().builder().elicitation().build().expect("builds");
    let told = call(&client, "double_ask", json!({"long": 100_000})).await.expect("told").to_text();
    assert!(told.contains("nobody could be asked") && told.contains("the limit is 65536"), "{told}");
}
