//! Invalid answers.

use agent_core::{Chunk, ErrorKind, FinishReason, Usage, testing::Turn};
use agent_tools::{AnswerMode, InvalidAnswer};
use serde_json::json;

use super::{BERN, ask, ask_and_listen, bern, cities, info, model};

const BAD: &str = r#"{"people": "many"}"#;

#[tokio::test]
async fn the_model_is_told_everything_that_is_wrong_in_one_message() {
    let turns = [Turn::text(BAD).usage(Usage::new(10, 5)), Turn::text(BERN).usage(Usage::new(20, 6))];
    let model = model(turns, info().with_json_schema());
    let answer = cities().call(&model, ask()).await.expect("answers");
    assert_eq!(answer.value, bern());
    assert_eq!((answer.response.usage.calls, answer.response.usage.total()), (2, 41), "both calls were used");
    let texts = model.requests()[1].texts();
    assert_eq!(texts[..2], ["Which city?", BAD]);
    assert!(texts[2].contains(r#"'name' is required; 'people' must be an integer, got "many""#), "{}", texts[2]);
    model.assert_finished();
}

#[tokio::test]
async fn an_answer_by_tool_is_corrected_by_tool() {
    let bad = Turn::call("c1", "final_answer", json!({"name": "Bern"}));
    let model = model([bad, Turn::call("c1", "final_answer", json!(bern()))], info());
    assert_eq!(cities().call(&model, ask()).await.expect("answers").value, bern());
    let again = &model.requests()[1];
    assert_eq!(again.tools, ["final_answer"], "offered once");
    assert_eq!(again.roles(), ["user", "assistant", "user"], "no call is left without a result");
    assert!(again.texts()[2].contains("Call `final_answer` again"), "{}", again.texts()[2]);
}

#[tokio::test]
async fn an_answer_that_never_fits_fails_for_good_and_is_kept() {
    let model = model([Turn::text("I would rather not."), Turn::text(BAD)], info());
    let e = cities().call(&model, ask()).await.expect_err("does not fit");
    assert_eq!((e.kind(), e.is_retryable()), (ErrorKind::InvalidAnswer, false));
    let kept = InvalidAnswer::of(&e).expect("kept");
    assert_eq!(kept.text, BAD);
    assert!(kept.problems.contains("'name' is required") && e.message().contains(&kept.problems), "{e}");
    model.assert_finished();
}

#[tokio::test]
async fn without_repair_the_model_is_called_once() {
    let model = model([Turn::text("no")], info());
    let e = cities().retries(0).call(&model, ask()).await.expect_err("does not fit");
    assert_eq!((e.kind(), model.calls()), (ErrorKind::InvalidAnswer, 1));
}

#[tokio::test]
async fn a_silent_model_is_asked_again_without_its_silence() {
    let model = model([Turn::text(""), Turn::text(BERN)], info());
    assert_eq!(cities().call(&model, ask()).await.expect("answers").value, bern());
    assert_eq!(model.requests()[1].roles(), ["user", "user"]);
}

#[tokio::test]
async fn who_listens_is_told_to_drop_the_refused_answer() {
    let (req, heard) = ask_and_listen();
    cities().call(&model([Turn::text("no"), Turn::text(BERN)], info()), req).await.expect("answers");
    let heard = heard.lock().expect("free");
    let restart = heard.iter().position(|chunk| *chunk == Chunk::Restart).expect("a restart");
    let texts = |chunks: &[Chunk]| {
        chunks
            .iter()
            .filter_map(|c| if let Chunk::Text { delta, .. } = c { Some(delta.as_str()) } else { None })
            .collect()
    };
    let (before, after): (String, String) = (texts(&heard[..restart]), texts(&heard[restart..]));
    assert_eq!((before.as_str(), after.as_str()), ("no", BERN));
}

#[tokio::test]
async fn an_own_check_is_part_of_what_must_fit() {
    let few = cities().mode(AnswerMode::Prompt).check(|city| match city.people {
        0..1_000 => Ok(()),
        many => Err(format!("'people' must be below 1000, got {many}: name a village")),
    });
    let village = r#"{"name": "Gimmelwald", "people": 130}"#;
    let model = model([Turn::text(BERN), Turn::text(village)], info());
    assert_eq!(few.call(&model, ask()).await.expect("answers").value.people, 130);
    assert!(model.requests()[1].texts()[2].contains("got 134000: name a village"));
    assert!(few.read(BERN).is_err() && few.read(village).is_ok());
}

#[tokio::test]
async fn what_was_cut_or_withheld_is_not_asked_for_again() {
    let cut = model([Turn::text(r#"{"name": "Be"#).finish(FinishReason::Length)], info());
    let e = cities().call(&cut, ask()).await.expect_err("cut");
    assert!(e.kind() == ErrorKind::InvalidAnswer && e.message().contains("max_tokens"), "{e}");
    assert_eq!(InvalidAnswer::of(&e).expect("kept").text, r#"{"name": "Be"#);
    let withheld = model([Turn::text("").finish(FinishReason::ContentFilter)], info());
    let e = cities().call(&withheld, ask()).await.expect_err("withheld");
    assert_eq!(e.kind(), ErrorKind::ContentFiltered);
}
