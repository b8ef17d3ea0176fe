//! Tools for models without tool calling.

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Block, Chunk, ChunkSink, ErrorKind, FinishReason, History, Message, Model, ModelInfo,
    ModelParams, ModelRequest, ModelResponse, OutputFormat, Result, ToolChoice, ToolMessage, ToolSpec, async_trait,
    model::{Collector, MessageBuilder},
    testing::{ScriptedModel, Seen, Turn},
    tool::WebSearch,
};
use agent_llm::XmlTools;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::common::{listen, request, run};

const CALL: &str = "<tool_use>\n<tool_name>weather</tool_name>\n<parameter>\n<city>Bern</city>\n<days>2</days>\n</parameter>\n</tool_use>";

fn weather() -> ToolSpec {
    let properties = json!({
        "city": {"type": "string", "description": "A city."},
        "days": {"type": "integer"},
        "at": {"$ref": "#/$defs/At"},
    });
    let defs = json!({"At": {"type": "object"}});
    let schema = json!({"type": "object", "properties": properties, "required": ["city"], "$defs": defs});
    ToolSpec::new("weather", "Says what the weather is like.", schema)
}

fn asks(messages: impl IntoIterator<Item = Message>) -> ModelRequest {
    let mut req = request(messages);
    req.tools = [weather()].into_iter().collect();
    req
}

fn ask() -> ModelRequest {
    asks([Message::user("Do I need a hat?")])
}

fn old(turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    ScriptedModel::new(turns).with_info(ModelInfo::new("old").without_tools().with_json_schema())
}

/// Decodes the text of a model as `XmlTools` does.
async fn understood(text: &str, req: ModelRequest) -> (ModelResponse, Seen) {
    let model = XmlTools::new(old([Turn::text(text)]));
    let response = model.call(req).await.expect("answers");
    (response, model.get_ref().requests().remove(0))
}

fn called(message: &AssistantMessage) -> Vec<(String, Value)> {
    let arguments = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    message.calls().map(|call| (call.name.to_string(), arguments(&call.arguments))).collect()
}

// --- system prompt ---

#[tokio::test]
async fn tools_are_told_in_the_system_prompt_and_not_offered() {
    let (_, seen) = understood("No.", ask()).await;
    let system = seen.system.expect("a system prompt");
    for told in [
        "## weather\n\nSays what the weather is like.",
        "- `city` (string, required): A city.\n",
        "- `days` (integer, optional)\n",
        r##"- `at` (optional) JSON Schema: {"$ref":"#/$defs/At"}"##,
        r#"`$defs` of these schemas: {"At":{"type":"object"}}"#,
        "<use_parallel_tool_calls>",
    ] {
        assert!(system.contains(told), "{told} is not in:\n{system}");
    }
    assert!(seen.tools.is_empty());
    assert_eq!(seen.params.stop, ["</tool_use>", "</use_parallel_tool_calls>"]);
}

#[tokio::test]
async fn what_is_asked_of_calls_is_told_in_words() {
    let mut req = ask();
    req.system = Some(agent_core::SystemMessage::new(vec!["Be kind.".into()]));
    req.params = ModelParams::default().tool_choice(ToolChoice::Tool("weather".into())).into();
    Arc::make_mut(&mut req.params).parallel_tool_calls = Some(false);
    let (_, seen) = understood(CALL, req).await;
    let system = seen.system.expect("a system prompt");
    assert!(system.starts_with("Be kind.\n# Tools") && system.contains("must be a call of `weather`"), "{system}");
    assert!(!system.contains("parallel"), "{system}");
    assert_eq!((seen.params.tool_choice, seen.params.parallel_tool_calls), (None, None));
    assert_eq!(seen.params.stop, ["</tool_use>"]);
}

#[tokio::test]
async fn without_stop_sequences_calls_end_all_the_same() {
    let model = XmlTools::new(old([Turn::text(format!("{CALL}\nTool execution results: sun"))])).without_stop();
    let response = model.call(ask()).await.expect("answers");
    assert_eq!((response.message.calls().count(), response.message.text().as_str()), (1, ""));
    assert!(model.get_ref().requests()[0].params.stop.is_empty());
}

#[tokio::test]
async fn earlier_calls_and_results_are_written_out() {
    let asks_two = AssistantMessage::new(vec![
        Block::text("Let me look."),
        Block::tool_call("a", "weather", r#"{"city": "A & B", "days": 2}"#),
        Block::tool_call("b", "weather", "{}"),
    ]);
    let image = agent_core::Part::Image(agent_core::Media::url("http://acme.test/map.png"));
    let sunny = ToolMessage::new("a", "weather", Arc::new(vec!["Sun <b>".into(), image.clone()]), false);
    let history = [
        Message::user("Hat?"),
        Message::Assistant(asks_two),
        Message::Tool(sunny),
        Message::Tool(ToolMessage::text("b", "weather", "'city' is required", true)),
        Message::assistant("Yes."),
        Message::user("And tomorrow?"),
    ];
    let (response, seen) = understood(CALL, asks(history)).await;
    assert_eq!(seen.roles(), ["user", "assistant", "user", "assistant", "user"]);
    let texts = seen.texts();
    assert_eq!(
        texts[1],
        "Let me look.\n\n<use_parallel_tool_calls>\n<parallel_tool>\n<tool_name>weather</tool_name>\n<parameter>\n\
         <city>A &amp; B</city>\n<days>2</days>\n</parameter>\n</parallel_tool>\n<parallel_tool>\n\
         <tool_name>weather</tool_name>\n<parameter>\n\n</parameter>\n</parallel_tool>\n</use_parallel_tool_calls>"
    );
    assert_eq!(
        texts[2],
        "Tool execution results:\n<tool_result>\n<tool_name>weather</tool_name>\n<result>\nSun <b>\n</result>\n\
         </tool_result>\n<tool_result>\n<tool_name>weather</tool_name>\n<error>\n'city' is required\n</error>\n</tool_result>"
    );
    let Message::User(results) = &seen.messages[2] else { panic!("a user message") };
    assert_eq!(results.parts()[1], image);
    assert_eq!(&*response.message.calls().next().expect("a call").id, "call_3", "two were made before");
}

// --- parsing ---

#[tokio::test]
async fn a_call_is_a_call_and_the_text_before_it_is_text() {
    let (response, _) = understood(&format!("Let me look.\n\n{CALL}"), ask()).await;
    assert_eq!(response.finish, FinishReason::ToolCalls);
    assert_eq!(
        response.message.blocks(),
        [Block::text("Let me look."), Block::tool_call("call_1", "weather", r#"{"city":"Bern","days":2}"#)]
    );
}

#[tokio::test]
async fn markup_never_reaches_who_reads_and_text_does_not_wait() {
    let model = XmlTools::new(old([Turn::text(format!("Let me look. {CALL} Sun!"))]));
    let mut req = ask();
    let heard = listen(&mut req);
    let response = model.call(req).await.expect("answers");
    let heard = heard.lock().expect("lock");
    assert_eq!(
        heard[..2],
        [Chunk::Text { index: 0, delta: "Let".into() }, Chunk::Text { index: 0, delta: " me".into() }]
    );
    let mut rebuilt = MessageBuilder::default();
    heard.iter().for_each(|chunk| rebuilt.push(chunk));
    assert_eq!(rebuilt.into_blocks(), response.message.blocks());
    assert!(!format!("{heard:?}").contains("tool_name"), "{heard:?}");
    let ends = heard.iter().filter(|chunk| matches!(chunk, Chunk::End { .. })).count();
    assert_eq!(ends, 2);
}

#[tokio::test]
async fn a_layer_that_drops_text_drops_it_from_the_message() {
    let model = XmlTools::new(old([Turn::text(format!("secret {CALL}"))]));
    let mut req = ask();
    req.sink = ChunkSink::default().with(|c| Ok(Some(c).filter(|c| !matches!(c, Chunk::Text { .. }))));
    let message = model.call(req).await.expect("answers").message;
    assert_eq!((message.text().as_str(), message.calls().count()), ("", 1));
    let model = XmlTools::new(old([Turn::text(CALL)]));
    let mut req = ask();
    req.sink = ChunkSink::default().with(|_| Err(agent_core::Error::new(ErrorKind::ContentFiltered, "no")));
    assert_eq!(model.call(req).await.expect_err("ended").kind(), ErrorKind::ContentFiltered);
}

#[tokio::test]
async fn an_answer_without_calls_is_left_as_it_came() {
    let origin = agent_core::message::Origin::new("w", "p", "m");
    let raw = agent_core::message::Raw::parse(origin, r#"{"content": "A <b>bold</b> answer.\n"}"#).expect("JSON");
    let said = AssistantMessage::from_provider(vec![Block::text("A <b>bold</b> answer.\n")], raw);
    let model = XmlTools::new(old([Turn::message(said.clone())]));
    let mut req = ask();
    let heard = listen(&mut req);
    let response = model.call(req).await.expect("answers");
    assert!(response.message.ptr_eq(&said) && response.finish == FinishReason::Stop);
    let mut rebuilt = MessageBuilder::default();
    heard.lock().expect("lock").iter().for_each(|chunk| rebuilt.push(chunk));
    assert_eq!(rebuilt.into_blocks(), said.blocks());
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_no_call_that_could_be_run() {
    let model = XmlTools::new(old([Turn::text(&CALL[..60]).finish(FinishReason::Length)]));
    let response = model.call(ask()).await.expect("answers");
    assert_eq!(response.finish, FinishReason::Length);
    assert!(called(&response.message)[0].1.is_string(), "arguments that are no JSON");
}

#[tokio::test]
async fn reasoning_is_not_searched_for_calls_and_keeps_its_place() {
    let said = AssistantMessage::new(vec![Block::reasoning(CALL), Block::text(CALL), Block::reasoning("done")]);
    let model = XmlTools::new(old([Turn::message(said)]));
    let message = model.call(ask()).await.expect("answers").message;
    assert_eq!((&message.blocks()[0], message.calls().count()), (&Block::reasoning(CALL), 1));
    assert_eq!(message.blocks().len(), 3);
}

// --- models and requests without XML tools ---

#[tokio::test]
async fn a_model_that_takes_tools_is_left_alone() {
    let model = XmlTools::new(ScriptedModel::new([Turn::text(CALL)]));
    let response = model.call(ask()).await.expect("answers");
    assert_eq!((response.message.calls().count(), response.message.text().as_str()), (0, CALL));
    let seen = &model.get_ref().requests()[0];
    assert!(seen.tools == ["weather"] && seen.system.is_none() && seen.params.stop.is_empty());
}

#[tokio::test]
async fn only_a_request_that_offers_tools_can_be_answered_with_calls() {
    let mut none = ask();
    none.params = ModelParams::default().tool_choice(ToolChoice::None).into();
    for req in [request([Message::user("hi")]), none] {
        let (response, seen) = understood(CALL, req).await;
        assert_eq!((response.message.calls().count(), response.message.text().as_str()), (0, CALL));
        assert!(seen.system.is_none() && seen.tools.is_empty());
    }
}

#[tokio::test]
async fn what_is_known_of_the_model_is_that_it_takes_tools_now() {
    let info = XmlTools::new(old([])).info();
    assert_eq!((info.name.as_str(), info.tools, info.json_schema), ("old", true, false));
    let native = ScriptedModel::new([]).with_info(ModelInfo::new("new").with_json_schema());
    assert!(XmlTools::new(native).info().json_schema);
}

#[tokio::test]
async fn a_tool_that_only_a_provider_runs_is_refused() {
    let mut req = ask();
    req.tools = [ToolSpec::of_server(WebSearch::new())].into_iter().collect();
    let e = XmlTools::new(old([])).call(req).await.expect_err("nobody runs it");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("leave out 'web_search'"), "{e}");
}

#[tokio::test]
async fn a_form_that_the_provider_enforces_leaves_no_room_for_calls() {
    let mut req = ask();
    req.params = ModelParams::default().output(OutputFormat::json()).into();
    let e = XmlTools::new(old([])).call(req.clone()).await.expect_err("both");
    assert_eq!(e.kind(), ErrorKind::Config);
    req.tools = agent_core::ToolSpecs::default();
    XmlTools::new(old([Turn::text("{}")])).call(req).await.expect("one of them is fine");
}

// --- properties of every text and every call ---

/// A model that emits a text in these pieces.
struct Says(Vec<String>);

#[async_trait]
impl Model for Says {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("says").without_tools()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let mut collector = Collector::new(&req.sink);
        for delta in &self.0 {
            collector.push(Chunk::Text { index: 0, delta: delta.clone() })?;
            tokio::task::yield_now().await;
        }
        collector.push(Chunk::End { index: 0 })?;
        Ok(ModelResponse::new(collector.finish(AssistantMessage::from(self.0.concat().as_str()))))
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Returns the blocks of the message parsed from these pieces, and those that its chunks produce.
fn blocks(pieces: Vec<String>) -> (Vec<Block>, Vec<Block>) {
    let mut req = ask();
    let rebuilt = Arc::new(Mutex::new(MessageBuilder::default()));
    let sink = rebuilt.clone();
    req.sink = ChunkSink::default().with_observer(move |chunk| sink.lock().expect("lock").push(chunk));
    let message = block_on(XmlTools::new(Says(pieces)).call(req)).expect("answers").message;
    let rebuilt = rebuilt.lock().expect("lock").clone().into_blocks();
    (message.blocks().to_vec(), rebuilt)
}

fn any_answer() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "text ",
        "\n",
        "`",
        "```\n",
        "<",
        "é🦀",
        CALL,
        "<tool_use>",
        "</tool_use>",
        "<tool_name>weather</tool_name>",
        "<parameter>",
        "</parameter>",
        "<city>",
        "</city>",
        "<use_parallel_tool_calls>",
        "</use_parallel_tool_calls>",
    ]);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

/// Arguments that match the tool of [`typed`].
fn any_arguments() -> impl Strategy<Value = Map<String, Value>> {
    let text = prop_oneof![
        "\\PC{0,12}",
        "[ \n\t<>&;a\\]\\[\\{\\}\"'0-9]{0,12}",
        prop::sample::select(vec![CALL, "]]>", "<![CDATA[a]]>", "</text>", "null", "12", "&amp;lt;", "\r\n a \r\n"])
            .prop_map(str::to_owned),
    ];
    let number = any::<f64>().prop_filter_map("a number", |n| serde_json::Number::from_f64(n).map(Value::Number));
    let object = prop::collection::btree_map("[a-z<>\"' ]{0,4}", text.clone(), 0..3);
    (
        prop::option::of(text.clone()),
        prop::option::of(any::<i64>()),
        prop::option::of(number),
        prop::option::of(prop::collection::vec(text.clone(), 0..3)),
        prop::option::of(object),
        prop::option::of(any::<bool>()),
        prop::collection::btree_map("[a-z<>\"'& =]{0,8}", text, 0..3),
    )
        .prop_map(|(text, whole, number, list, object, flag, others)| {
            let others = others.into_iter().map(|(name, text)| (format!("{name}-"), Value::String(text)));
            let typed = [
                ("text", text.map(Value::from)),
                ("whole", whole.map(Value::from)),
                ("number", number),
                ("list", list.map(Value::from)),
                ("object", object.map(|o| json!(o))),
                ("flag", flag.map_or(Some(Value::Null), |flag| Some(flag.into()))),
            ];
            let typed = typed.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            typed.chain(others).collect()
        })
}

fn typed() -> ToolSpec {
    let properties = json!({
        "text": {"type": "string"}, "whole": {"type": "integer"}, "number": {"type": "number"},
        "list": {"type": "array", "items": {"type": "string"}}, "object": {"type": "object"},
        "flag": {"type": ["boolean", "null"]},
    });
    ToolSpec::new("typed", "", json!({"type": "object", "properties": properties, "additionalProperties": true}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn where_chunks_end_does_not_matter(
        text in any_answer(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let characters: Vec<_> = text.chars().collect();
        let mut ends: Vec<_> = places.iter().map(|place| place.index(characters.len())).collect();
        ends.sort_unstable();
        ends.push(characters.len());
        let starts = [0].into_iter().chain(ends.clone());
        let pieces = starts.zip(ends.clone()).map(|(start, end)| characters[start..end].iter().collect()).collect();
        let (whole, whole_rebuilt) = blocks(vec![text.clone()]);
        let (in_pieces, rebuilt) = blocks(pieces);
        prop_assert_eq!(&in_pieces, &whole);
        prop_assert_eq!(&rebuilt, &whole_rebuilt);
        prop_assert_eq!(&rebuilt, &whole, "what is shown is what is kept");
    }

    #[test]
    fn calls_that_are_written_out_are_read_as_what_they_were(
        arguments in prop::collection::vec(any_arguments(), 1..3),
        text in "[a-zA-Z .\n]{0,12}",
    ) {
        let calls: Vec<_> = arguments.into_iter().map(|fields| ("typed".to_owned(), Value::Object(fields))).collect();
        let made = calls.iter().zip(1..).map(|((name, args), n)| Block::tool_call(n.to_string(), name.as_str(), args.to_string()));
        let said = AssistantMessage::new([Block::text(text.clone())].into_iter().chain(made).collect());
        let results = said.calls().map(|call| ToolMessage::text(call.id.clone(), call.name.clone(), "ok", false)).collect();
        let mut history = History::default();
        history.push(Message::user("go")).expect("pushes");
        history.push_turn(said, results).expect("paired");

        let with_tools = || {
            let mut req = ModelRequest::new(run(history.iter().cloned()).cx().clone());
            req.tools = [typed()].into_iter().collect();
            req
        };
        let model = XmlTools::new(old([Turn::text("")]));
        block_on(model.call(with_tools())).expect("answers");
        let written = model.get_ref().requests()[0].texts()[1].clone();

        let model = XmlTools::new(Says(vec![written]));
        let message = block_on(model.call(with_tools())).expect("answers").message;
        prop_assert_eq!(called(&message), calls);
        let heard = message.text();
        prop_assert_eq!(heard.trim(), text.trim());
    }
}
