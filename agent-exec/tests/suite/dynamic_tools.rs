//! Tools that come and go during a run.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use agent_core::{
    Error, ErrorKind, Finished, Flow, Key, Result, RunCx, RunEnd, RunRequest, StateField, StateSchema, Tool,
    ToolOutput, Toolset, async_trait,
    testing::{HookTrace, ScriptedModel, Turn},
    tool::{OutputText, WireKey},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::{Value, json};

use crate::common::{FnTool, double, finished, gives, results, tool};

const FOUND: Key<Vec<String>> = Key::new("found");

/// Tools that a run has to search for, unless there are only a few.
struct Searchable {
    search: Arc<dyn Tool>,
    catalogue: Vec<Arc<dyn Tool>>,
    few: usize,
}

impl Searchable {
    fn new(names: &[&str], few: usize) -> Self {
        let known: Vec<_> = names.iter().map(ToString::to_string).collect();
        let search = move |keywords: &str| {
            if keywords.trim().is_empty() {
                return json!({"told": "Say what to search for."});
            }
            let hits: Vec<_> = known.iter().filter(|name| name.contains(keywords)).collect();
            if hits.is_empty() {
                return json!({"told": format!("No tool matches '{keywords}'.")});
            }
            let names = hits.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", ");
            json!({"found": hits, "told": format!("Found and loaded {} tool(s): {names}.", hits.len())})
        };
        let search = tool("search_tools", move |req| {
            let value = search(req.args["keywords"].as_str().unwrap_or_default());
            async { Ok(ToolOutput::value(value)) }
        });
        let told = OutputText::Field { source: Some("told".into()), render: None };
        let search = search.with(|o| o.writes(FOUND.name(), Some("found")).text(told));
        let catalogue = names.iter().map(|name| Arc::new(gives(name, json!("ran"))) as Arc<dyn Tool>).collect();
        Self { search: Arc::new(search), catalogue, few }
    }
}

#[async_trait]
impl Toolset for Searchable {
    async fn tools(&self, cx: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        if self.catalogue.len() < self.few {
            return Ok(self.catalogue.clone());
        }
        let found = cx.state().get(&FOUND)?.unwrap_or_default();
        let found = self.catalogue.iter().filter(|tool| found.contains(&tool.spec().name));
        Ok(std::iter::once(&self.search).chain(found).cloned().collect())
    }
}

const CATALOGUE: [&str; 8] = ["get_weather", "get_time", "send_mail", "read_mail", "add", "mul", "plot", "map"];

fn searching(model: ScriptedModel, set: Searchable) -> AgentBuilder {
    let schema = StateSchema::default().key(FOUND.name(), StateField::of::<Vec<String>>());
    Agent::builder("a", model).state(schema).toolset(set)
}

fn search(id: &str, keywords: &str) -> Turn {
    Turn::call(id, "search_tools", json!({ "keywords": keywords }))
}

/// A tool set that offers the current contents of its list, and counts how often it was queried.
#[derive(Clone, Default)]
struct Shelf {
    tools: Arc<Mutex<Vec<Arc<dyn Tool>>>>,
    asked: Arc<AtomicUsize>,
}

impl Shelf {
    fn of(tools: impl IntoIterator<Item = FnTool>) -> Self {
        let shelf = Self::default();
        shelf.tools.lock().expect("free").extend(tools.into_iter().map(|t| Arc::new(t) as Arc<dyn Tool>));
        shelf
    }
}

#[async_trait]
impl Toolset for Shelf {
    async fn tools(&self, _: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.tools.lock().expect("free").clone())
    }
}

async fn run(builder: AgentBuilder) -> Finished {
    finished(builder.build().expect("builds").run("go").await)
}

// --- searching ---

// Haystack 42
#[tokio::test]
async fn a_tool_that_was_found_is_offered_from_the_next_call_on() {
    let model =
        ScriptedModel::new([search("1", "weather"), Turn::call("2", "get_weather", json!({})), Turn::text("done")]);
    let end = run(searching(model.clone(), Searchable::new(&CATALOGUE, 8))).await;
    let offered: Vec<_> = model.requests().into_iter().map(|seen| seen.tools).collect();
    let both = vec!["search_tools", "get_weather"];
    assert_eq!(offered, [vec!["search_tools"], both.clone(), both]);
    let told: Vec<_> = results(&end.history).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(told, ["Found and loaded 1 tool(s): get_weather.", "ran"]);
}

// Haystack 42
#[tokio::test]
async fn a_search_without_words_or_hits_loads_nothing() {
    let model = ScriptedModel::new([search("1", " "), search("2", "zebra"), Turn::text("done")]);
    let end = run(searching(model.clone(), Searchable::new(&CATALOGUE, 8))).await;
    let told: Vec<_> = results(&end.history).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(told, ["Say what to search for.", "No tool matches 'zebra'."]);
    assert!(model.requests().iter().all(|seen| seen.tools == ["search_tools"]));
}

// Haystack 42
#[tokio::test]
async fn few_tools_are_offered_at_once_and_need_no_search() {
    let model = ScriptedModel::new([Turn::text("done")]);
    run(searching(model.clone(), Searchable::new(&["add", "mul"], 8))).await;
    assert_eq!(model.requests()[0].tools, ["add", "mul"]);
}

// Haystack 42
#[tokio::test]
async fn what_one_run_found_is_not_offered_to_another() {
    let model = ScriptedModel::new([search("1", "weather"), Turn::text("done"), Turn::text("done")]);
    let agent = searching(model.clone(), Searchable::new(&CATALOGUE, 8)).build().expect("builds");
    finished(agent.run("first").await);
    finished(agent.run("second").await);
    assert_eq!(model.requests()[2].tools, ["search_tools"]);
}

// Haystack 42
#[tokio::test]
async fn a_tool_that_was_not_found_yet_is_unknown() {
    let model = ScriptedModel::new([Turn::call("1", "get_weather", json!({})), Turn::text("done")]);
    let end = run(searching(model, Searchable::new(&CATALOGUE, 8))).await;
    assert_eq!(results(&end.history)[0].1, "Tool 'get_weather' not found. Available tools: search_tools");
}

// --- changing sets ---

#[tokio::test]
async fn a_set_is_asked_once_before_every_model_call_even_if_it_has_nothing() {
    for tools in [vec![], vec![gives("g", json!("ran"))]] {
        let shelf = Shelf::of(tools);
        let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 1})), Turn::text("done")]);
        run(Agent::builder("a", model).tool(double("f")).toolset(shelf.clone())).await;
        assert_eq!(shelf.asked.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_tool_that_goes_is_offered_no_more() {
    let shelf = Shelf::default();
    let tools = shelf.tools.clone();
    let clear = tool("clear", move |_| {
        tools.lock().expect("free").clear();
        async { Ok(ToolOutput::text("cleared")) }
    });
    shelf.tools.lock().expect("free").push(Arc::new(clear));
    let model = ScriptedModel::new([Turn::call("1", "clear", json!({})), Turn::text("done")]);
    run(Agent::builder("a", model.clone()).tool(double("f")).toolset(shelf)).await;
    let offered: Vec<_> = model.requests().into_iter().map(|seen| seen.tools).collect();
    assert_eq!(offered, [vec!["f", "clear"], vec!["f"]]);
}

#[tokio::test]
async fn hooks_checks_and_exits_hold_for_tools_that_came_later() {
    let trace = HookTrace::new("t");
    let strict = gives("late", json!("ran")).takes(json!({"x": {"type": "integer"}}), &["x"]);
    let calls = [("1", "late", json!({"x": "one"})), ("2", "late", json!({"x": 1}))];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::call("3", "late", json!({"x": 2}))]);
    let end =
        run(Agent::builder("a", model).toolset(Shelf::of([strict])).middleware(trace.clone()).exit_on(["late"])).await;
    let told = results(&end.history);
    assert!(told[0].2 && told[0].1.contains("'x' must be an integer"), "{told:?}");
    assert_eq!((end.answer.as_str(), end.steps), ("ran", 2), "an exit tool that failed once does not end the run");
    assert_eq!(trace.seen_of("t.before_tool(").len(), 2);
}

// Haystack 41
#[tokio::test]
async fn two_tools_of_one_name_end_the_run_before_the_model_is_asked() {
    let (one, two) = (Shelf::of([double("g")]), Shelf::of([double("g")]));
    for builder in [
        Agent::builder("a", ScriptedModel::new([])).tool(double("g")).toolset(one.clone()),
        Agent::builder("a", ScriptedModel::new([])).toolset(one).toolset(two),
    ] {
        let e = builder.build().expect("builds").run("go").await.expect_err("refused");
        assert_eq!((e.kind(), e.message()), (ErrorKind::Config, "two tools are named 'g': rename one"));
    }
}

#[tokio::test]
async fn a_set_that_fails_ends_the_run_with_its_error() {
    struct Down;

    #[async_trait]
    impl Toolset for Down {
        async fn tools(&self, _: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
            Err(Error::new(ErrorKind::Transport, "the tool server is down"))
        }
    }

    let model = ScriptedModel::new([]);
    let e = Agent::builder("a", model.clone()).toolset(Down).build().expect("builds").run("go").await;
    assert_eq!((e.expect_err("fails").kind(), model.calls()), (ErrorKind::Transport, 0));
}

#[tokio::test]
async fn a_run_that_waited_in_a_changing_tool_finds_it_again() {
    let ask = || tool("ask", async |req| req.ask::<String>("name", Value::Null).map(ToolOutput::text));
    let model = ScriptedModel::new([Turn::call("1", "ask", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model).toolset(Shelf::of([ask()])).build().expect("builds");
    let end = agent.run("go").await.expect("waits");
    let RunEnd::Interrupted(checkpoint) = end else { panic!("{end:?}") };
    let end = agent.start(RunRequest::resume(*checkpoint, [("1/name".to_owned(), json!("Ada"))])).await;
    assert_eq!(results(&finished(end).history)[0].1, "Ada");
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_a_changing_tool_holds_over_all_runs_too() {
    let log = crate::common::Log::default();
    let narrow = crate::common::slow("narrow", 100, &log).with(|o| o.concurrency(1));
    let model = ScriptedModel::new((0..2).map(|i| Turn::call(&i.to_string(), "narrow", json!({}))));
    let agent = Agent::builder("a", model).toolset(Shelf::of([narrow])).max_steps(1).build().expect("builds");
    let started = tokio::time::Instant::now();
    let (one, two) = tokio::join!(agent.run("go"), agent.run("go"));
    assert_eq!((finished(one).tool_calls["narrow"], finished(two).tool_calls["narrow"]), (1, 1));
    assert_eq!(started.elapsed(), crate::common::ms(200));
}

#[tokio::test]
async fn tools_that_did_not_change_are_not_written_for_the_provider_again() {
    let log = crate::common::Log::default();
    let noted = log.clone();
    let write = crate::common::hooks::before_model(move |_, req| {
        req.tools.written(WireKey::new(&"wire"), |specs| {
            noted.note(specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(" "));
            Vec::new()
        });
        Ok(Flow::Continue)
    });
    let model = ScriptedModel::new([
        Turn::call("1", "add", json!({})),
        search("2", "weather"),
        Turn::call("3", "get_weather", json!({})),
        Turn::text("done"),
    ]);
    run(searching(model, Searchable::new(&CATALOGUE, 8)).middleware(write)).await;
    assert_eq!(log.seen(), ["search_tools", "search_tools get_weather"]);
}
