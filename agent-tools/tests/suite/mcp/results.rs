//! Results, progress and errors.

use agent_core::{ErrorKind, Part, message::MediaSource};
use serde_json::json;

use super::{double::Double, support::*, wild};

#[tokio::test]
async fn structured_content_is_the_value_and_the_model_is_shown_the_content() {
    let output = call(&Double::new().client(), "double_add", json!({"a": 40, "b": 2})).await.expect("adds");
    assert_eq!(output.as_value(), Some(&json!({"sum": 42})));
    assert_eq!(output.to_text(), r#"{"sum":42}"#);
    assert!(!output.is_error());
}

#[tokio::test]
async fn text_images_sound_and_resources_are_parts() {
    let output = call(&Double::new().client(), "double_zoo", json!({})).await.expect("looks");
    let [lion, image, sound, text, map, link] = output.content() else { panic!("{output:?}") };
    assert_eq!(lion.as_text(), Some("a lion"));
    let media = |part: &Part| match part {
        Part::Image(media) | Part::Document(media) => (media.source.clone(), media.mime.clone().unwrap_or_default()),
        other => panic!("{other:?}"),
    };
    assert!(matches!(image, Part::Image(_)));
    assert_eq!(media(image), (MediaSource::Base64("aW1n".into()), "image/png".into()));
    assert_eq!(media(sound), (MediaSource::Base64("c291bmQ=".into()), "audio/wav".into()));
    assert_eq!(media(map), (MediaSource::Base64("cGRm".into()), "application/pdf".into()));
    assert_eq!(text.as_text(), Some("[resource zoo://lion]\nIt roars."));
    assert_eq!(link.as_text(), Some("[link to the resource zoo://all named 'everything']"));
}

#[tokio::test]
async fn a_call_that_failed_is_an_error_result_and_one_that_was_refused_an_error_of_kind_tool() {
    let client = Double::new().client();
    let failed = call(&client, "double_fail", json!({})).await.expect("a result");
    assert!(failed.is_error() && failed.to_text() == "no lion today");
    let refused = call(&client, "double_refuse", json!({})).await.expect_err("refused");
    assert_eq!((refused.kind(), refused.message()), (ErrorKind::Tool, "there is no such lion"));
}

#[tokio::test]
async fn progress_becomes_events_of_the_run() {
    let run = run(|_| {});
    let told = progress(run.cx());
    let output = call_in(run.cx(), &Double::new().client(), "double_slow", json!({"end": true})).await.expect("ends");
    assert_eq!(output.to_text(), "done");
    until(|| told.lock().expect("free").len() == 3).await;
    let mut told = told.lock().expect("free").clone();
    told.sort_by_key(|progress| progress["progress"].as_f64().map(|p| p as u64));
    assert_eq!(told[2], json!({"progress": 3.0, "total": 3.0, "message": "step 3"}));
}

#[tokio::test]
async fn a_result_that_is_too_large_is_an_error_that_says_so() {
    let client = Double::new().builder().max_result(1000).build().expect("builds");
    let fits = call(&client, "double_big", json!({"size": 800})).await.expect("fits");
    assert_eq!(fits.to_text().len(), 800);
    let error = call(&client, "double_big", json!({"size": 2000})).await.expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::Tool);
    assert!(error.message().contains("the limit is 1000"), "{error}");
    // Exceeds the message limit: the message is not even read completely.
    let error = call(&client, "double_big", json!({"size": 20 * 1024 * 1024})).await.expect_err("much too large");
    assert!(error.message().contains("and the limit is"), "{error}");
    assert!(call(&client, "double_echo", json!({"text": "a"})).await.is_ok(), "the connection lives");
}

#[tokio::test]
async fn calls_of_one_server_run_together() {
    let client = Double::new().client();
    let calls = (0..50).map(|i| {
        let client = client.clone();
        async move { call(&client, "double_echo", json!({"text": format!("{i}")})).await.expect("called").to_text() }
    });
    let texts = futures::future::join_all(calls).await;
    assert!(texts.iter().enumerate().all(|(i, text)| *text == i.to_string()));
}

#[tokio::test]
async fn structured_content_that_does_not_fit_the_output_schema_is_an_error_that_says_where() {
    let result = async |gives: &str| {
        let client = wild::builder(&format!("structured {gives}")).build().expect("builds");
        call(&client, "wild_work", json!({})).await
    };
    assert_eq!(result(r#"{"sum":42}"#).await.expect("fits").as_value(), Some(&json!({"sum": 42})));
    let error = result(r#"{"sum":"many"}"#).await.expect_err("another type");
    assert!(error.kind() == ErrorKind::Tool && error.message().contains("sum"), "{error}");
    let error = result("null").await.expect_err("none");
    assert!(error.message().contains("output schema"), "{error}");
    let trusting = wild::builder(r#"structured {"sum":"many"}"#).unchecked_output().build().expect("builds");
    assert_eq!(call(&trusting, "wild_work", json!({})).await.expect("taken").as_value(), Some(&json!({"sum": "many"})));
}
