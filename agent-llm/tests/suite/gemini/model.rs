//! The model as built by users, over a transport.

use agent_core::{ErrorKind, Model};
use agent_llm::LayeredModel;
use serde_json::json;

use super::{
    common::{Answer, Provider, ask, ask_to_stream, listen, say},
    support::{events, frames, response, text},
};

fn model(provider: &Provider) -> LayeredModel {
    let model = agent_llm::model("gemini:gemini-2.5-flash").api_key("a-very-secret-key").transport(provider.clone());
    model.context_window(1_000).build().expect("a model")
}

#[tokio::test(start_paused = true)]
async fn a_model_shows_its_key_and_answers_whole_or_streamed() {
    let whole = Answer::json(200, response(&[text("ab")], Some("STOP")).to_string());
    let stream = events(&frames(&[vec![text("a")], vec![text("b")]]));
    let provider = Provider::new([whole, Answer::stream([say(stream)])]);
    let model = model(&provider);
    assert_eq!(model.info().context_window, Some(1_000));
    let answered = model.call(ask()).await.expect("an answer");
    assert_eq!(provider.header("x-goog-api-key").as_deref(), Some("a-very-secret-key"));
    let mut req = ask_to_stream();
    let heard = listen(&mut req);
    let streamed = model.call(req).await.expect("an answer");
    assert_eq!(streamed.message.blocks(), answered.message.blocks());
    assert_eq!(heard.lock().expect("lock").len(), 3);
    assert_eq!(provider.bodies()[1], json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}));
}

#[tokio::test(start_paused = true)]
async fn a_token_of_vertex_is_a_bearer_and_no_error_repeats_it() {
    let said = json!({"error": {"code": 401, "message": "bad ya29-secret-token", "status": "UNAUTHENTICATED"}});
    let provider = Provider::new([Answer::json(401, said.to_string())]);
    let model = agent_llm::model("vertex:gemini-2.5-flash").option("project", "p");
    let model = model.api_key("ya29-secret-token").transport(provider.clone()).build().expect("a model");
    let error = model.call(ask()).await.expect_err("refused");
    assert_eq!(provider.header("authorization").as_deref(), Some("Bearer ya29-secret-token"));
    assert_eq!(error.kind(), ErrorKind::Authentication);
    assert!(!format!("{error:?}").contains("ya29-secret-token"), "{error:?}");
}
