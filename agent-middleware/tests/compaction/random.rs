//! Whatever is compacted however, every provider takes it.

use std::sync::{Arc, LazyLock};

use agent_core::{
    ApproximateCounter, AssistantMessage, Block, CompactionMode, History, Media, Message, ModelRequest, Part,
    TokenCounter, ToolMessage,
    testing::{ScriptedModel, Turn, detached_run},
};
use agent_llm::{
    AnthropicCodec, AnthropicProfile, Codec, GeminiCodec, GeminiProfile, OpenAiChatCodec, OpenAiResponsesCodec,
    Profile, conformance::refusals,
};
use agent_middleware::{
    CacheAware, ClampMessages, ClearToolResults, DedupReads, Keep, OffloadToolResults, SlidingWindow, Strategy,
    Summary, Task, Tiers, Unit,
};
use proptest::{prelude::*, strategy::Strategy as _};

use crate::common::block_on;

static CODECS: LazyLock<[Arc<dyn Codec>; 4]> = LazyLock::new(|| {
    let openai = || Profile::compatible("acme", "http://server.test/v1");
    [
        Arc::new(OpenAiChatCodec::new("m", openai()).expect("sound")),
        Arc::new(OpenAiResponsesCodec::new("m", openai()).expect("sound")),
        Arc::new(AnthropicCodec::new("m", AnthropicProfile::compatible("acme", "http://server.test")).expect("sound")),
        Arc::new(GeminiCodec::new("m", GeminiProfile::compatible("acme", "http://server.test/v1beta")).expect("sound")),
    ]
});

fn keep() -> impl proptest::strategy::Strategy<Value = Keep> {
    prop_oneof![
        (0usize..6).prop_map(Keep::Iterations),
        (0usize..9).prop_map(Keep::Messages),
        (0usize..4).prop_map(Keep::UserRounds),
        (0u64..300).prop_map(Keep::Tokens),
    ]
}

fn strategy() -> impl proptest::strategy::Strategy<Value = Arc<dyn Strategy>> {
    prop_oneof![
        keep().prop_map(|keep| Arc::new(SlidingWindow::keeping(keep)) as Arc<dyn Strategy>),
        keep().prop_map(|keep| Arc::new(ClearToolResults::new().keep(keep)) as Arc<dyn Strategy>),
        keep().prop_map(|keep| Arc::new(OffloadToolResults::new().keep(keep).over(20).preview(5)) as Arc<dyn Strategy>),
        (0usize..40, 0usize..40).prop_map(|(a, b)| Arc::new(ClampMessages::new().to(a, b)) as Arc<dyn Strategy>),
        Just(Arc::new(DedupReads::new()) as Arc<dyn Strategy>),
        Just(Arc::new(CacheAware::default()) as Arc<dyn Strategy>),
        keep().prop_map(|keep| {
            let tiers = Tiers::new().then(ClearToolResults::new().keep(keep)).then(SlidingWindow::keeping(keep));
            Arc::new(tiers.then(ClampMessages::new().to(9, 9))) as Arc<dyn Strategy>
        }),
        keep().prop_map(|keep| {
            let model = ScriptedModel::new((0..9).map(|_| Turn::text("notes")));
            Arc::new(Summary::new(model).keep(keep)) as Arc<dyn Strategy>
        }),
    ]
}

/// A user speaks, or the model does, with calls or without; sometimes there is a picture.
fn turn() -> impl proptest::strategy::Strategy<Value = Vec<Message>> {
    let words = || "[a-z]{1,12}( [a-z]{1,12}){0,30}";
    prop_oneof![
        2 => (words(), any::<bool>()).prop_map(|(text, picture)| {
            let image = picture.then(|| Part::Image(Media::base64("aGk=", "image/png")));
            vec![Message::User(agent_core::UserMessage::new([Part::text(text)].into_iter().chain(image).collect()))]
        }),
        1 => words().prop_map(|text| vec![Message::assistant(text)]),
        4 => (prop::option::of(words()), prop::collection::vec((words(), any::<bool>()), 1..4)).prop_map(|(text, results)| {
            let calls = (0..results.len()).map(|n| Block::tool_call(format!("c{n}"), "look", r#"{"a":1}"#));
            let said = AssistantMessage::new(text.map(Block::text).into_iter().chain(calls).collect());
            let results = results.into_iter().enumerate().map(|(n, (text, failed))| {
                Message::Tool(ToolMessage::text(format!("c{n}"), "look", text, failed))
            });
            [Message::Assistant(said)].into_iter().chain(results).collect()
        }),
    ]
}

fn conversation() -> impl proptest::strategy::Strategy<Value = History> {
    let all = prop::collection::vec(turn(), 0..16).prop_map(|turns| turns.concat());
    all.prop_map(|rest| History::from_messages([Message::user("task")].into_iter().chain(rest)).expect("paired"))
}

/// A few hundred; with `COMPACTIONS=100000` as many as that.
fn cases() -> u32 {
    std::env::var("COMPACTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn no_compaction_leaves_what_a_provider_refuses(
        history in conversation(),
        strategies in prop::collection::vec(strategy(), 1..4),
        target in 0u64..400,
        emergency in any::<bool>(),
    ) {
        let run = detached_run(History::default());
        let mode = if emergency { CompactionMode::Emergency } else { CompactionMode::Regular };
        let mut units = Unit::split(&history);
        for strategy in &strategies {
            let task = Task::new(run.cx(), &ApproximateCounter, target).with_mode(mode);
            units = block_on(strategy.compact(&task, units)).expect("compacts");
            let smaller = Unit::join(units.clone()).expect("paired");
            let mut request = ModelRequest::new(run.cx().clone());
            request.messages = smaller.clone();
            for codec in CODECS.iter() {
                let refused = refusals(&**codec, &request);
                prop_assert!(refused.is_empty(), "{} after {}: {refused:?}\n{smaller:?}", codec.origin().wire(), strategy.name());
            }
            prop_assert_eq!(Unit::split(&smaller), units.clone());
        }
        prop_assert!(ApproximateCounter.history(&history) > 0);
    }
}

#[test]
fn the_judge_itself_sees_what_is_wrong() {
    let run = detached_run(History::default());
    let mut request = ModelRequest::new(run.cx().clone());
    request.messages = History::from_messages([Message::assistant("hi"), Message::user("hello")]).expect("paired");
    let refused: Vec<_> = CODECS.iter().map(|codec| refusals(&**codec, &request).len()).collect();
    assert_eq!(refused, [0, 0, 1, 0], "Anthropic's wire wants a user to speak first");
}
