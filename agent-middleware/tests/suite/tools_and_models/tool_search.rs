//! Deferred tools.

use agent_core::{
    Checkpoint, History, Middleware, ModelParams, ModelRequest, RunRequest, ToolCall, ToolChoice, ToolRequest,
    ToolSpec, ToolSpecs,
    testing::{ScriptedModel, Turn, detached_run},
};
use agent_exec::Agent;
use agent_middleware::{ToolSearch, tools::ToolSearchConfig};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::{asks, finished, offered, results, run, says, tool};

fn search(id: &str, query: &str) -> Turn {
    Turn::call(id, "search_tools", json!({"query": query}))
}

fn agent(model: &ScriptedModel, deferred: ToolSearch) -> Agent {
    Agent::builder("a", model.clone())
        .tool(tool("look", "Looks."))
        .tool(tool("slack_send", "Sends a message."))
        .tool(tool("slack_list", "Lists channels."))
        .tool(tool("mail_send", "Sends mail, not to Slack."))
        .tool(tool("HTTPClient", "Gets a page."))
        .middleware(deferred)
        .build()
        .expect("builds")
}

fn all_but_look() -> ToolSearch {
    ToolSearch::new().defer("slack_*").defer("mail_send").defer("HTTPClient")
}

#[tokio::test]
async fn a_deferred_tool_is_offered_and_runs_once_it_was_found() {
    let model = ScriptedModel::new([
        search("c1", "+slack send"),
        Turn::call("c2", "slack_send", json!({})),
        Turn::text("sent"),
    ]);
    run(&agent(&model, all_but_look().max_results(1))).await;
    let with_send = vec!["look", "search_tools", "slack_send"];
    assert_eq!(offered(&model), [vec!["look", "search_tools"], with_send.clone(), with_send]);
    let answers = results(&model);
    assert_eq!(answers, ["Found and loaded 1 tool(s): slack_send. Use them directly as tools.", "slack_send"]);
}

#[tokio::test]
async fn searches_rank_require_and_split_words_and_say_when_there_is_nothing() {
    for (query, expected) in [
        ("send", "Found and loaded 2 tool(s): slack_send, mail_send. Use them directly as tools."),
        ("slack", "Found and loaded 3 tool(s): slack_send, slack_list, mail_send. Use them directly as tools."),
        ("+slack send", "Found and loaded 2 tool(s): slack_send, slack_list. Use them directly as tools."),
        ("http", "Found and loaded 1 tool(s): HTTPClient. Use them directly as tools."),
        ("post", "Found and loaded 1 tool(s): mail_send. Use them directly as tools."),
        ("  ", "No tool keywords provided. Say in a few words what the tool should do."),
        (" bees ", "No tools found matching these keywords: bees. Try other or fewer keywords."),
        ("look", "No tools found matching these keywords: look. Try other or fewer keywords."),
    ] {
        let model = ScriptedModel::new([search("c1", query), Turn::text("so")]);
        run(&agent(&model, all_but_look().hint("mail_send", "post letter"))).await;
        assert_eq!(results(&model), [expected], "{query}");
    }
}

#[tokio::test]
async fn a_call_of_a_tool_that_was_not_loaded_does_not_run() {
    let both = Turn::calls([("c1", "search_tools", json!({"query": "mail"})), ("c2", "mail_send", json!({}))]);
    let model = ScriptedModel::new([both, Turn::text("so")]);
    run(&agent(&model, all_but_look())).await;
    assert_eq!(results(&model)[1], "Tool 'mail_send' is not loaded: find it with 'search_tools' first.");
}

#[tokio::test]
async fn nothing_is_hidden_below_the_threshold_and_there_is_then_no_search() {
    let all = ["look", "slack_send", "slack_list", "mail_send", "HTTPClient"];
    let shown = async |deferred: ToolSearch| {
        let model = says(&["hi"]);
        run(&agent(&model, deferred)).await;
        offered(&model).remove(0)
    };
    assert_eq!(shown(all_but_look().threshold(5)).await, all);
    assert_eq!(shown(all_but_look().threshold(4)).await, ["look", "search_tools"]);
    assert_eq!(shown(ToolSearch::new().defer("jira_*")).await, all, "nothing is deferred");
    assert_eq!(shown(ToolSearch::new()).await, all);
}

#[tokio::test]
async fn tools_can_be_brought_along_and_the_search_can_have_another_name() {
    let model = ScriptedModel::new([Turn::call("c1", "find", json!({"query": "extra"})), Turn::text("so")]);
    run(&agent(&model, ToolSearch::new().tool(tool("extra", "")).search_tool("find"))).await;
    let offered = offered(&model);
    assert_eq!((offered[0].len(), offered[0].last().map(String::as_str)), (6, Some("find")));
    assert_eq!(offered[1].last().map(String::as_str), Some("extra"));
}

#[tokio::test]
async fn a_run_that_chose_its_tools_finds_those_alone() {
    let model = ScriptedModel::new([search("c1", "send"), Turn::text("so")]);
    let request = RunRequest::user("Go.").tools_named(["search_tools", "mail_send"]);
    finished(agent(&model, all_but_look()).start(request).await);
    assert_eq!(results(&model), ["Found and loaded 1 tool(s): mail_send. Use them directly as tools."]);

    let model = says(&["hi"]);
    finished(agent(&model, all_but_look()).start(RunRequest::user("Go.").tools_named(["look", "mail_send"])).await);
    assert_eq!(offered(&model), [["look", "mail_send"]], "what cannot be found is not hidden");
}

#[tokio::test]
async fn two_runs_at_once_do_not_share_what_they_found() {
    let model = ScriptedModel::new([]);
    let [first, second] = ["slack", "mail"].map(|query| {
        let model = ScriptedModel::new([search("c1", query), Turn::text("so")]);
        (model.clone(), agent(&model, all_but_look().max_results(1)))
    });
    drop(model);
    tokio::join!(run(&first.1), run(&second.1));
    assert_eq!(offered(&first.0)[1], ["look", "search_tools", "slack_send"]);
    assert_eq!(offered(&second.0)[1], ["look", "search_tools", "mail_send"]);
}

#[tokio::test]
async fn a_second_run_of_an_agent_begins_without_what_the_first_found() {
    let model = ScriptedModel::new([search("c1", "slack"), Turn::text("so"), Turn::text("hi")]);
    let agent = agent(&model, all_but_look());
    let first = run(&agent).await;
    run(&agent).await;
    assert_eq!(offered(&model)[1].len(), 5);
    assert_eq!(offered(&model)[2], ["look", "search_tools"]);
    assert_eq!(first.tool_calls["search_tools"], 1);
}

#[tokio::test]
async fn a_run_that_goes_on_in_another_process_still_knows_what_it_found() {
    let model = ScriptedModel::new([
        search("c1", "mail"),
        Turn::calls([
            ("c2", "wait", json!({})),
            ("c3", "mail_send", json!({})),
            ("c4", "search_tools", json!({"query": "http"})),
        ]),
        Turn::text("so"),
    ]);
    let agent = || {
        Agent::builder("a", model.clone())
            .tool(tool("mail_send", ""))
            .tool(tool("http_get", ""))
            .tool(asks("wait"))
            .middleware(ToolSearch::new().defer("mail_send").defer("http_get"))
            .build()
            .expect("builds")
    };
    let end = agent().run("Go.").await.expect("runs");
    let checkpoint = end.checkpoint().expect("waits").to_json().expect("serialises");
    let checkpoint = Checkpoint::from_json(&checkpoint).expect("parses");
    let answers = checkpoint.questions.iter().map(|q| (q.id.clone(), json!("well"))).collect::<Vec<_>>();
    finished(agent().start(RunRequest::resume(checkpoint, answers)).await);
    assert_eq!(offered(&model)[2], ["wait", "search_tools", "mail_send", "http_get"]);
    let found = "Found and loaded 1 tool(s): http_get. Use them directly as tools.";
    assert_eq!(results(&model)[1..], ["well", "mail_send", found]);
}

#[tokio::test]
async fn a_tool_that_the_model_must_call_is_shown() {
    let model = ScriptedModel::new([Turn::call("c1", "mail_send", json!({})), Turn::text("so")]);
    let agent = Agent::builder("a", model.clone())
        .tool(tool("mail_send", ""))
        .params(ModelParams::default().tool_choice(ToolChoice::Tool("mail_send".into())))
        .middleware(ToolSearch::new().defer("*"))
        .build()
        .expect("builds");
    run(&agent).await;
    assert_eq!(offered(&model)[0], ["search_tools", "mail_send"]);
    assert_eq!(results(&model), ["mail_send"]);
}

#[test]
fn the_configuration_is_data_and_refuses_what_it_does_not_know() {
    let config: ToolSearchConfig =
        serde_json::from_value(json!({"tools": ["jira_*"], "hints": {"jira_create": "ticket"}, "threshold": 8}))
            .expect("reads");
    assert_eq!((config.max_results, config.search_tool.as_str()), (5, "search_tools"));
    assert!(serde_json::from_value::<ToolSearchConfig>(json!({"tool": []})).is_err());
}

/// Returns the tools that are shown before each of these searches and after the last.
async fn shown_between(queries: Vec<String>) -> Vec<Vec<String>> {
    let deferred = ToolSearch::new().defer("x*").max_results(2);
    let names = ["xa", "look", "xab", "xbc", "search_tools", "xc", "xca", "stay"];
    let offered: ToolSpecs = names.iter().map(|name| ToolSpec::new(*name, "", json!({}))).collect();
    let run = detached_run(History::default());
    let search = Middleware::tools(&deferred).remove(0);
    let mut all = Vec::new();
    for query in queries.into_iter().map(Some).chain([None]) {
        let mut req = ModelRequest::new(run.cx().clone());
        req.tools = offered.clone();
        deferred.before_model(run.cx(), &mut req).await.expect("shows");
        all.push(req.tools.iter().map(|tool| tool.name.clone()).collect());
        if let Some(query) = query {
            let args = json!({"query": query});
            let name = "search_tools".into();
            let call = ToolCall { id: "c".into(), name, arguments: args.to_string(), raw: None };
            let mut call = ToolRequest::new(run.cx().clone(), call, args);
            call.offered = offered.clone();
            search.call(call).await.expect("searches");
        }
    }
    all
}

proptest! {
    #[test]
    fn searches_only_ever_append_tools_so_that_what_is_cached_stays_of_use(queries in vec("[+]?[abcd]{1,2}", 0..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("starts");
        let shown = runtime.block_on(shown_between(queries));
        prop_assert_eq!(&shown[0], &["look", "search_tools", "stay"]);
        for (before, after) in shown.iter().zip(&shown[1..]) {
            prop_assert!(after.starts_with(before) && after.len() <= before.len() + 2, "{:?}", shown);
        }
    }
}
