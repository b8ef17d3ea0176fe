//! Routing of calls to models.

use agent_core::{
    EventKind, History, Message, Model, ModelInfo, ModelRequest, ModelResponse, Part, Result, State, StateField,
    StateSchema, ToolSpec, UserMessage, async_trait,
    engine::{RunDriver, RunParts},
    testing::detached_run,
};
use agent_llm::{
    ModelRouter, ScriptedModel, Turn,
    router::{Condition, ModelRouterBuilder, Rule},
};
use serde_json::json;

use super::observed;

/// A model that answers with its own name.
struct Named(&'static str);

#[async_trait]
impl Model for Named {
    fn info(&self) -> ModelInfo {
        ModelInfo::new(self.0)
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let asked = req.model.as_ref().map(|info| info.name.clone()).unwrap_or_default();
        Ok(ModelResponse::new(asked.as_str()))
    }
}

fn router() -> ModelRouterBuilder {
    ModelRouter::builder(Named("large"))
}

async fn asked(model: &ModelRouter, req: &ModelRequest) -> String {
    model.call(req.clone()).await.expect("answers").message.text()
}

#[tokio::test]
async fn the_first_rule_that_holds_picks_the_model_and_else_it_is_the_first() {
    let (_run, req, reports) = observed();
    let model = router()
        .route("never", Named("a"), Condition::Any(vec![]))
        .route("short", Named("b"), Rule::when(|req| req.messages.len() < 2))
        .route("always", Named("c"), Condition::All(vec![]))
        .build()
        .expect("builds");
    assert_eq!(asked(&model, &req).await, "b");
    let model = router().route("never", Named("a"), Condition::Any(vec![])).build().expect("builds");
    assert_eq!(asked(&model, &req).await, "large");
    let routes: Vec<_> = reports
        .seen()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::Custom { name, value } if name == "model_route" => Some(value),
            _ => None,
        })
        .collect();
    assert_eq!(routes, [json!({"route": "short", "model": "b"}), json!({"route": "default", "model": "large"})]);
}

/// A run at step 5, with a topic in its state.
fn at_step_five() -> RunDriver {
    let history = History::from_messages([
        Message::User(UserMessage::new(vec![Part::text("x".repeat(400))])),
        Message::assistant("so"),
    ]);
    let detached = detached_run(history.expect("paired"));
    let cx = detached.cx();
    let mut parts =
        RunParts::new(cx.ids().clone(), detached.engine().emitter().clone(), detached.engine().log().clone());
    let schema = StateSchema::default().key("topic", StateField::of::<String>());
    parts.state = State::new(schema, [("topic".to_owned(), json!("bees"))].into()).expect("fits");
    parts.step = 5;
    RunDriver::new(parts)
}

#[tokio::test]
async fn each_condition_says_what_its_name_says() {
    let run = at_step_five();
    let mut req = ModelRequest::new(run.cx().clone());
    req.tools = [ToolSpec::new("f", "", json!({}))].into_iter().collect();
    let topic = |is: &str| Condition::State { key: "topic".into(), is: json!(is) };
    let not = |condition| Condition::Not(Box::new(condition));
    for (condition, holds) in [
        (Condition::TokensOver(90), true),
        (Condition::TokensOver(200), false),
        (Condition::ToolsOver(0), true),
        (Condition::ToolsOver(1), false),
        (Condition::StepOver(4), true),
        (Condition::StepOver(5), false),
        (Condition::Media, false),
        (topic("bees"), true),
        (topic("ants"), false),
        (Condition::All(vec![topic("bees"), Condition::Media]), false),
        (Condition::Any(vec![topic("ants"), not(Condition::Media)]), true),
    ] {
        let text = serde_json::to_string(&condition).expect("serialises");
        let read: Condition = serde_json::from_str(&text).expect("reads");
        assert_eq!(read, condition);
        let model = router().route("other", Named("other"), read).build().expect("builds");
        assert_eq!(asked(&model, &req).await == "other", holds, "{text}");
    }
    let image = agent_core::Media::url("https://example.org/a.png");
    run.push(Message::User(UserMessage::new(vec![Part::Image(image)]))).expect("fits");
    let model = router().route("sees", Named("sees"), Condition::Media).build().expect("builds");
    assert_eq!(asked(&model, &ModelRequest::new(run.cx().clone())).await, "sees");
}

#[tokio::test]
async fn a_function_comes_before_the_rules_which_decide_if_it_names_no_route() {
    let (run, req, reports) = observed();
    let model = router()
        .route("always", Named("a"), Condition::All(vec![]))
        .choice("b", Named("b"), "nothing")
        .choose(|req: ModelRequest| async move {
            let said = req.messages.last().map(Message::text).unwrap_or_default();
            Ok(Some(said).filter(|said| said != "hi"))
        })
        .build()
        .expect("builds");
    assert_eq!(asked(&model, &req).await, "a");
    for (said, expected, warned) in [("b", "b", 0), ("default", "large", 0), ("zebra", "a", 1)] {
        run.push(Message::user(said)).expect("fits");
        assert_eq!(asked(&model, &ModelRequest::new(run.cx().clone())).await, expected);
        let warnings = reports.seen().into_iter().filter(|kind| matches!(kind, EventKind::Warning { .. })).count();
        assert_eq!(warnings, warned, "{said}");
    }
}

#[tokio::test]
async fn a_model_picks_once_for_each_run_and_what_it_uses_counts() {
    let classifier = ScriptedModel::new([Turn::text("Hard."), Turn::text("`default`"), Turn::text("both")]);
    let model = router()
        .choice("hard", Named("hard"), "proofs")
        .default_is_good_for("all else")
        .classify_with(classifier.clone())
        .build()
        .expect("builds");
    for expected in ["hard", "large", "large"] {
        let (run, req, reports) = observed();
        assert_eq!((asked(&model, &req).await.as_str(), asked(&model, &req).await.as_str()), (expected, expected));
        assert_eq!(run.cx().usage().calls, 1, "the one call of the classifier");
        let warned = reports.seen().into_iter().any(|kind| matches!(kind, EventKind::Warning { .. }));
        assert_eq!(warned, classifier.calls() == 3, "'both' is no route");
    }
    let seen = classifier.requests().remove(0);
    assert_eq!(seen.texts(), ["<message>\nhi\n</message>"]);
    assert!(seen.system.expect("is told").ends_with("\n- hard: proofs\n- default: all else"));
}

#[test]
fn a_router_that_cannot_work_is_refused_with_what_to_change() {
    let refused = |builder: ModelRouterBuilder| builder.build().expect_err("is refused").message().to_owned();
    let always = || Condition::All(vec![]);
    assert!(refused(router()).contains("a second model"));
    assert!(refused(router().route("a", Named("a"), always()).route("a", Named("b"), always())).contains("named 'a'"));
    assert!(refused(router().route("default", Named("a"), always())).contains("named 'default'"));
    assert!(refused(router().choice("a", Named("a"), "b")).contains("nothing leads to the choice 'a'"));
    let twice = router().choice("a", Named("a"), "b").choose(|_: ModelRequest| async { Ok(None) });
    assert!(refused(twice.classify_with(Named("c"))).contains("not both"));
}

#[test]
fn its_info_holds_for_all_of_them() {
    let small = ScriptedModel::new([]).with_info(ModelInfo::new("small").with_context_window(100).without_tools());
    let model = router().route("small", small, Condition::Media).build().expect("builds").info();
    assert_eq!((model.name.as_str(), model.context_window, model.tools), ("large", Some(100), false));
}
