//! Personal data outside of streams: to the model, to tools, from tools, and in complete answers.

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Block, ErrorKind, Message, ModelRequest, ModelResponse, Text, ToolMessage, ToolOutput,
    ToolRequest,
    message::{Citation, Origin, Raw, ServerCall},
    middleware::Middlewares,
};
use agent_middleware::{
    Pii, before_model_fn,
    pii::{PiiConfig, PiiKind, PiiPattern, PiiStrategy},
};
use serde_json::json;
use tower::ServiceExt;

use super::{
    common::{alone, call, model_stack, root, tool_stack},
    speak,
};

fn redacts_mail() -> Pii {
    Pii::builder().redact(PiiKind::Email).build().expect("sound")
}

/// Returns the messages that a model receives with `list`, and those that the run stores.
async fn sent(list: &Middlewares, messages: &[Message]) -> (Vec<String>, Vec<String>) {
    let run = root(|_| {});
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let model = model_stack(list, move |req: ModelRequest| {
        *log.lock().expect("free") = req.messages.iter().map(Message::text).collect();
        async { Ok(ModelResponse::new("ok")) }
    });
    for message in messages {
        run.push(message.clone()).expect("fits");
        model.clone().oneshot(ModelRequest::new(run.cx().clone())).await.expect("answers");
    }
    let seen = std::mem::take(&mut *seen.lock().expect("free"));
    (seen, run.cx().history().iter().map(Message::text).collect())
}

#[tokio::test]
async fn a_model_is_shown_a_view_and_the_history_stays() {
    let messages = [Message::user("I am a@b.co"), Message::assistant("Hello a@b.co"), Message::user("bye")];
    let (seen, kept) = sent(&alone(redacts_mail()), &messages).await;
    assert_eq!(seen, ["I am [EMAIL]", "Hello [EMAIL]", "bye"]);
    assert_eq!(kept, ["I am a@b.co", "Hello a@b.co", "bye"]);
}

#[tokio::test]
async fn a_turn_with_calls_is_shown_whole_and_goes_on_being_shown_in_the_same_words() {
    let run = root(|_| {});
    let list = alone(redacts_mail());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let model = model_stack(&list, move |req: ModelRequest| {
        log.lock().expect("free").push(req.messages.clone());
        async { Ok(ModelResponse::new("ok")) }
    });
    for turn in 0..3 {
        let said = AssistantMessage::new(vec![Block::tool_call("1", "f", r#"{"to": "a@b.co"}"#)]);
        run.push(Message::user(format!("turn {turn} of a@b.co"))).expect("fits");
        run.push_turn(said, &[ToolMessage::text("1", "f", "sent to a@b.co", false)]).expect("fits");
        model.clone().oneshot(ModelRequest::new(run.cx().clone())).await.expect("answers");
    }
    let seen = seen.lock().expect("free");
    assert!(seen.windows(2).all(|two| two[1].continues(&two[0])), "what was shown is not made anew");
    let shown = format!("{:?}", seen[2]);
    assert_eq!((seen[2].len(), shown.contains("a@b.co"), shown.matches("[EMAIL]").count()), (9, false, 9));
}

#[tokio::test]
async fn blocked_input_fails_the_call_without_saying_what_it_was() {
    let pii = Pii::builder().rule(PiiKind::Email, PiiStrategy::Block).build().expect("sound");
    let run = root(|_| {});
    run.push(Message::user("I am a@b.co")).expect("fits");
    let model = model_stack(&alone(pii), |_| async { unreachable!("the model is not called") });
    let e = model.oneshot(ModelRequest::new(run.cx().clone())).await.expect_err("is blocked");
    assert_eq!((e.kind(), e.context("middleware")), (ErrorKind::ContentFiltered, Some("pii")));
    assert!(e.message().ends_with("(email)") && !e.message().contains("a@b.co"), "{e}");
}

#[tokio::test]
async fn an_answer_that_came_whole_loses_the_providers_own_json_where_it_changes() {
    let run = root(|_| {});
    let list = alone(redacts_mail());
    for (said, raw_left) in [("a@b.co", false), ("nothing", true)] {
        let model = model_stack(&list, move |req: ModelRequest| async move {
            let raw = Raw::parse(Origin::new("w", "p", "m"), json!({"content": said}).to_string()).expect("JSON");
            let mut res =
                ModelResponse::new(req.sink.collect(AssistantMessage::from_provider(vec![Block::text(said)], raw))?);
            res.details.insert("also".to_owned(), json!(["c@d.co"]));
            Ok(res)
        });
        let res = model.oneshot(ModelRequest::new(run.cx().clone())).await.expect("answers");
        assert_eq!(res.message.raw().is_some(), raw_left);
        assert!(!serde_json::to_string(&res).expect("serialises").contains("@"), "{res:?}");
    }
}

#[tokio::test]
async fn a_citation_says_no_place_in_a_text_that_is_another() {
    let list = alone(redacts_mail());
    for (said, place) in [("a@b.co is it", None), ("it is that", Some(6..10))] {
        let mut cited = Citation::of_url("https://b.test");
        cited.bytes = Some(6..10);
        let mut text = Text::new(said);
        text.citations.push(cited);
        let said = AssistantMessage::new(vec![Block::Text(text)]);
        let model = model_stack(&list, move |req: ModelRequest| {
            let said = said.clone();
            async move { Ok(ModelResponse::new(req.sink.collect(said)?)) }
        });
        let run = root(|_| {});
        let res = model.oneshot(ModelRequest::new(run.cx().clone())).await.expect("answers");
        let places: Vec<_> = res.message.citations().map(|cited| cited.bytes.clone()).collect();
        assert_eq!(places, [place]);
    }
}

#[tokio::test]
async fn what_a_tool_of_the_provider_gave_is_rewritten_with_the_providers_own_json() {
    let list = alone(redacts_mail());
    let json = r#"{"type":"web_search_result","text":"write to a@b.co","n":1}"#;
    let mut found = ServerCall::new("s1", "web_search", Raw::parse(Origin::new("w", "p", "m"), json).expect("JSON"));
    (found.input, found.output) = (Some("who is a@b.co?".into()), Some("write to a@b.co".into()));
    let said = AssistantMessage::new(vec![Block::Server(found)]);
    let model = model_stack(&list, move |req: ModelRequest| {
        let said = said.clone();
        async move { Ok(ModelResponse::new(req.sink.collect(said)?)) }
    });
    let run = root(|_| {});
    let res = model.oneshot(ModelRequest::new(run.cx().clone())).await.expect("answers");
    let [Block::Server(call)] = res.message.blocks() else { panic!("{:?}", res.message) };
    assert_eq!((call.input.as_deref(), call.output.as_deref()), (Some("who is [EMAIL]?"), Some("write to [EMAIL]")));
    assert_eq!(call.raw.json(), r#"{"n":1,"text":"write to [EMAIL]","type":"web_search_result"}"#);
}

#[tokio::test]
async fn an_answer_in_the_models_place_is_looked_at_too() {
    let answer = before_model_fn("cache", |_, _| Ok(agent_core::Flow::Answer(ModelResponse::new("it is a@b.co"))));
    let list: Middlewares = Arc::new([Arc::new(redacts_mail()), Arc::new(answer)]);
    let run = root(|_| {});
    let (_, res) = speak(&list, run.cx(), Vec::new()).await;
    assert_eq!(res.expect("answers").message.text(), "it is [EMAIL]");
}

#[tokio::test]
async fn what_a_tool_gives_is_redacted_in_text_and_value() {
    let value = json!({"status": "error", "error": "no a@b.co", "list": ["c@d.org", 5]});
    let tool = tool_stack(&alone(redacts_mail()), move |_| {
        let value = value.clone();
        async move { Ok(ToolOutput::value(value)) }
    });
    let run = root(|_| {});
    let out = tool.oneshot(call(run.cx(), "1", "f", json!({"to": "a@b.co"}))).await.expect("gives");
    assert!(out.is_error() && !out.to_text().contains('@'), "{out:?}");
    assert_eq!(out.as_value().expect("a value")["list"], json!(["[EMAIL]", 5]));
}

#[tokio::test]
async fn a_blocked_output_is_not_shown_and_the_model_is_told_why() {
    let pii = Pii::builder().rule(PiiKind::Secret, PiiStrategy::Block).build().expect("sound");
    let tool = tool_stack(&alone(pii), |_| async { Ok(ToolOutput::text("key sk-abcdefghijklmnop1234")) });
    let run = root(|_| {});
    let out = tool.oneshot(call(run.cx(), "1", "read", json!({}))).await.expect("gives");
    let told = "The output of 'read' is not shown: this was withheld: it holds what must not go further (secret).";
    assert_eq!((out.is_error(), out.to_text().as_str()), (true, told));
}

#[tokio::test]
async fn arguments_reach_the_tool_as_they_are_unless_they_are_looked_at() {
    for (looked_at, strategy, given) in [
        (false, PiiStrategy::Redact, Some("a@b.co")),
        (true, PiiStrategy::Redact, Some("[EMAIL]")),
        (true, PiiStrategy::Block, None),
    ] {
        let pii = Pii::builder().rule(PiiKind::Email, strategy).tool_input(looked_at).build().expect("sound");
        let tool = tool_stack(&alone(pii), |req: ToolRequest| async move {
            Ok(ToolOutput::value(json!({"n": req.args["to"].as_str().map(str::len)})))
        });
        let run = root(|_| {});
        let out = tool.oneshot(call(run.cx(), "1", "f", json!({"to": "a@b.co"}))).await.expect("gives");
        match given {
            Some(given) => assert_eq!(out.as_value(), Some(&json!({"n": given.len()}))),
            None => assert_eq!(out.to_text(), "Not run: the arguments hold what this tool must not be given (email)."),
        }
    }
}

#[tokio::test]
async fn a_call_whose_streamed_arguments_were_blocked_is_refused_when_it_is_to_run() {
    let pii = || Pii::builder().rule(PiiKind::Email, PiiStrategy::Block).tool_input(true).build().expect("sound");
    let list = alone(pii());
    let run = root(|_| {});
    let said = AssistantMessage::new(vec![Block::tool_call("1", "f", r#"{"to":"a@b.co"}"#)]);
    let chunks = Arc::new(Mutex::new(Vec::new()));
    let log = chunks.clone();
    let model = model_stack(&list, move |req: ModelRequest| {
        let said = said.clone();
        async move { req.sink.collect(said).map(ModelResponse::new) }
    });
    let mut req = ModelRequest::new(run.cx().clone());
    req.sink = req.sink.with_observer(move |chunk| log.lock().expect("free").push(format!("{chunk:?}")));
    let message = model.oneshot(req).await.expect("answers").message;
    let arguments = &message.calls().next().expect("calls").arguments;
    assert_eq!(arguments, r#"{"to":"[BLOCKED_EMAIL]"}"#);
    assert!(!chunks.lock().expect("free").concat().contains("a@b.co"));
    let tool = tool_stack(&list, |_| async { unreachable!("the tool is not run") });
    let args = serde_json::from_str(arguments).expect("JSON");
    assert!(tool.oneshot(call(run.cx(), "1", "f", args)).await.expect("is told").is_error());
}

#[test]
fn of_findings_that_overlap_nothing_is_left_and_the_strictest_holds() {
    let pattern = |name, regex| PiiKind::Pattern(PiiPattern::new(name, regex));
    let pii = Pii::builder()
        .rule(pattern("first", "aabb"), PiiStrategy::Mask)
        .redact(pattern("second", "bbcc"))
        .rule(pattern("third", "dd"), PiiStrategy::Mask)
        .build()
        .expect("sound");
    assert_eq!(pii.redact("xaabbccx dd").expect("redacts"), "x[SECOND]x **");
}

#[test]
fn a_hash_is_the_same_for_the_same_and_needs_a_key() {
    let hashing =
        |key: &str| Pii::builder().rule(PiiKind::Email, PiiStrategy::Hash).hash_key(key).build().expect("sound");
    let text = hashing("k").redact("a@b.co a@b.co c@d.co").expect("redacts");
    let words: Vec<_> = text.split(' ').collect();
    assert!(words[0] == words[1] && words[1] != words[2], "{text}");
    assert!(words[0].starts_with("[EMAIL:") && words[0].len() == 24, "{text}");
    assert_ne!(hashing("other").redact("a@b.co").expect("redacts"), words[0]);
    let e = Pii::builder().rule(PiiKind::Email, PiiStrategy::Hash).build().expect_err("no key");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("set hash_key"), "{e}");
    assert!(!format!("{:?}{:?}", hashing("s3cret"), Pii::builder().hash_key("s3cret")).contains("s3cret"));
}

#[test]
fn a_configuration_is_data_and_refuses_what_it_does_not_know() {
    let config: PiiConfig = serde_json::from_value(json!({
        "rules": [
            {"find": "email", "strategy": "mask"},
            {"find": {"pattern": {"name": "badge", "regex": "B-\\d+", "scope": "word"}}}
        ],
        "tool_input": true
    }))
    .expect("parses");
    assert!(config.input && config.output && config.tool_output && config.tool_input);
    let pii = Pii::from_config(config).expect("sound");
    assert_eq!(pii.redact("jo@example.com B-7").expect("redacts"), "**@*******.com [BADGE]");
    for wrong in
        [json!({"rule": []}), json!({"rules": [{"find": "emails"}]}), json!({"rules": [{"find": "email", "x": 1}]})]
    {
        assert!(serde_json::from_value::<PiiConfig>(wrong.clone()).is_err(), "{wrong}");
    }
    for (name, regex) in [("badge", "(unclosed"), ("A b", "x"), ("huge", "(a{1000}){1000}")] {
        let e = Pii::builder().redact(PiiKind::Pattern(PiiPattern::new(name, regex))).build().expect_err("is refused");
        assert_eq!(e.kind(), ErrorKind::Config, "{e}");
    }
}
