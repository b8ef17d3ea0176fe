//! Teams as files.

use std::{fs, path::Path};

use agent::{
    config::{Format, LoadedFile, LoadedTeam, Loader, Problems, Registry},
    prelude::*,
    team::TeamEndReason,
    testing::{ScriptedModel, Turn},
};
use serde_json::json;

use super::loader;

fn team(text: &str) -> Result<LoadedTeam, Problems> {
    match loader().read_file(text, Format::Yaml)? {
        LoadedFile::Team(team) => Ok(*team),
        other => panic!("no team: {other:?}"),
    }
}

/// The problems of a team, as shown to a person.
fn wrong(text: &str) -> String {
    match loader().read_file(text, Format::Yaml) {
        Ok(_) => panic!("nothing is wrong with:\n{text}"),
        Err(problems) => problems.to_string(),
    }
}

fn registry(lead: ScriptedModel, builder: ScriptedModel) -> Registry {
    Registry::builtin().model("lead", lead).model("builder", builder)
}

#[tokio::test(start_paused = true)]
async fn a_team_of_files_and_inline_agents_runs_with_its_limits_and_roles() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writes");
    write(
        "team.yaml",
        "
name: release
description: Makes releases.
models: {quick: {name: 'offline:any'}}
variables: {folder: out}
team:
  leader: agents/lead.yaml
  members:
    builder: {description: writes code, agent: {name: builder, model: builder}}
    reader: agents/reader.yaml
  max_members: 2
  board: {deliverables: '${variables.folder}'}
  watchdog: {max_idle_turns: 1}
",
    );
    fs::create_dir(folder.path().join("agents")).expect("a folder");
    write("agents/lead.yaml", "{name: lead, model: lead}");
    write("agents/reader.yaml", "{name: reader, description: reads files, model: quick}");
    let lead = ScriptedModel::new([
        Turn::calls([
            ("1", "spawn_teammate", json!({"role_name": "builder"})),
            ("2", "create_task", json!({"title": "Build it"})),
            ("3", "claim_task", json!({"task_id": "T-001", "assignee_agent_id": "builder-1"})),
        ]),
        Turn::text("I wait."),
        Turn::call("4", "finish_team", json!({"summary": "It is built."})),
    ]);
    let builder = ScriptedModel::new([
        Turn::calls([
            ("1", "update_task_status", json!({"task_id": "T-001", "status": "completed"})),
            ("2", "message", json!({"to_agent_id": "leader", "content": "Done."})),
        ]),
        Turn::text("I am done."),
    ]);
    let loader = Loader::new().registry(registry(lead, builder));
    let LoadedFile::Team(team) = loader.load_file(folder.path().join("team.yaml")).unwrap_or_else(|e| panic!("{e}"))
    else {
        panic!("a team")
    };
    assert_eq!((team.name(), team.description(), team.files().len()), ("release", "Makes releases.", 3));
    let slots: Vec<_> = team.agents().map(|(slot, agent)| (slot, agent.definition().name.as_str())).collect();
    assert_eq!(slots, [("leader", "lead"), ("builder", "builder"), ("reader", "reader")]);
    let team = team.into_team().await.unwrap_or_else(|e| panic!("{e}"));
    let about = &team.leader().expect("a leader").tools()[0].description;
    assert!(about.contains("- builder: writes code") && about.contains("- reader: reads files"), "{about}");
    let end = team.run("Make it.").await.expect("runs");
    assert_eq!((end.reason, end.text.as_str()), (TeamEndReason::Finished, "It is built."));
    let task = end.board.tasks().next().expect("a task");
    assert!(task.deliverable_path.starts_with("out/T-001"), "{}", task.deliverable_path);
}

#[tokio::test(start_paused = true)]
async fn every_pattern_has_a_name_in_files() {
    let a = "{name: a, model: small}";
    let b = "{name: b, model: small}";
    for (name, keys, text) in [
        ("sequence", format!("sequence: [{a}, {b}]"), "done"),
        ("parallel", format!("parallel: [{a}, {b}]"), "done\n\ndone"),
        ("map_reduce", format!("map_reduce: {{map: {a}, reduce: {b}, split: lines, concurrency: 1}}"), "done"),
        ("debate", format!("debate: {{debaters: [{a}], judge: {b}, rounds: 1}}"), "done"),
        ("optimiser", format!("optimiser: {{writer: {a}, evaluator: {b}, rounds: 2}}"), "done"),
        ("group_chat", format!("group_chat: {{agents: [{a}, {b}], rounds: 2}}"), "done"),
        ("group_chat", format!("group_chat: {{agents: [{a}, {b}], rounds: 9, until: one}}"), "done"),
        (
            "supervisor",
            format!("supervisor: {{manager: {a}, workers: [{{name: b, description: d, model: small}}], rounds: 1}}"),
            "done",
        ),
        ("swarm", format!("swarm: {{agents: [{a}, {{name: b, description: d, model: small}}]}}"), "done"),
        (
            "magentic",
            format!("magentic: {{manager: {a}, agents: [{b}], rounds: 1, max_stalls: 1, max_replans: 1}}"),
            "",
        ),
        ("router", format!("router: {{chooser: {a}, agents: [{{name: done, model: small}}]}}"), "done"),
    ] {
        let loaded = team(&format!("name: t\nteam:\n  {keys}\n")).unwrap_or_else(|e| panic!("{name}: {e}"));
        let team = loaded.into_team().await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(team.pattern().expect("a pattern").name(), name);
        let end = team.run("a\nb").await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(end.text, text, "{name}: {end:?}");
    }
}

#[test]
fn what_is_wrong_with_a_team_is_said_at_its_place_with_the_nearest_word() {
    let lead = "leader: {name: lead, model: small}";
    for (keys, place, message, help) in [
        ("leadr: {name: lead, model: small}", "3:3", "unknown key 'leadr'", "did you mean 'leader'?"),
        (&*format!("{lead}\n  max_membres: 2"), "4:3", "unknown key 'max_membres'", "did you mean 'max_members'?"),
        (&*format!("{lead}\n  max_members: 0"), "4:16", "0 is too small; the least is 1", ""),
        (&*format!("{lead}\n  watchdog: {{idle: 3}}"), "4:14", "unknown key 'idle'", "idle_after"),
        (
            &*format!("{lead}\n  debate: {{debaters: [], judge: {{name: j, model: small}}, rounds: 1}}"),
            "4:22",
            "empty",
            "",
        ),
        (
            &*format!("{lead}\n  sequence: [{{name: a, model: small}}]"),
            "4:3",
            "a team has one course of work, and this one has 'leader' and 'sequence'",
            "leave one of them out",
        ),
        (
            "sequence: [{name: a, model: small}]\n  members: {b: {name: b, model: small}}",
            "4:3",
            "'members' is for teams with a leader",
            "leave it out",
        ),
        ("max_rounds: 3", "3:3", "the team has neither a leader nor a pattern", "sequence, parallel"),
        ("leader: {name: lead, modle: small}", "3:24", "unknown key 'modle'", "did you mean 'model'?"),
        ("leader: {name: lead, model: smal}", "3:31", "unknown model 'smal'", ""),
        ("leader: {name: lead, model: small, store: memory}", "3:38", "has no 'store' of its own", "team's file"),
        ("leader: nobody.yaml", "3:11", "the file 'nobody.yaml' cannot be read", ""),
        ("leader: 3", "3:11", "is expected here", ""),
    ] {
        let told = wrong(&format!("name: t\nteam:\n  {keys}\n"));
        assert!(told.contains(&format!("agent:{place}: ")), "{keys}: {told}");
        assert!(told.contains(message) && told.contains(help), "{keys}: {told}");
    }
    let told = wrong("nmae: t\nteam: {leader: {name: lead, model: small}}\n");
    assert!(told.contains("agent:1:1: unknown key 'nmae'") && told.contains("did you mean 'name'?"), "{told}");
    let told = wrong("name: t\ntools: []\nteam: {leader: {name: lead, model: small}}\n");
    assert!(told.contains("agent:2:1: unknown key 'tools'"), "{told}");
}

#[test]
fn a_teams_file_where_an_agents_is_expected_says_so_and_names_an_agent() {
    let text = "name: t\nteam:\n  leader: lead.yaml\n";
    let told = loader().read(text, Format::Yaml).expect_err("a team").to_string();
    assert!(told.contains("2:1: this file describes a team, and an agent is expected"), "{told}");
    assert!(told.contains("such as 'lead.yaml'") && told.contains("`agent run`"), "{told}");
    let nested = "name: t\nteam: {leader: {name: u, team: {leader: {name: a, model: small}}}}\n";
    assert!(wrong(nested).contains("this file describes a team, and an agent is expected"));
}

#[test]
fn shared_models_are_for_all_agents_and_an_agents_own_come_first() {
    let text = "
name: t
models: {one: {name: 'offline:any'}, two: {name: 'offline:any'}}
team:
  sequence:
    - {name: a, model: one}
    - {name: b, model: two, models: {two: {name: 'offline:script', options: {turns: [hi]}}}}
";
    let loaded = team(text).unwrap_or_else(|e| panic!("{e}"));
    let built: Vec<_> = loaded.agents().map(|(_, agent)| agent.builder().build().expect("builds")).collect();
    assert_eq!((&*built[0].model().name, &*built[1].model().name), ("offline", "script"));
}

#[test]
fn the_schema_for_editors_takes_teams_and_agents() {
    let loader = loader();
    let schema = jsonschema::validator_for(loader.schema()).expect("a schema");
    let agent = json!({"name": "a", "model": "small"});
    for good in [
        agent.clone(),
        json!({"name": "t", "team": {"leader": "lead.yaml", "members": {"b": {"description": "d", "agent": agent}}}}),
        json!({"name": "t", "store": "memory", "team": {"sequence": [agent, "b.yaml"], "max_rounds": "${env.FIVE}"}}),
    ] {
        let errors: Vec<_> = schema.iter_errors(&good).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{good}: {errors:?}");
    }
    for bad in [
        json!({"name": "a"}),
        json!({"name": "a", "model": "small", "tems": {}}),
        json!({"name": "t", "team": {"leadr": "lead.yaml"}}),
        json!({"name": "t", "tools": [], "team": {"leader": "lead.yaml"}}),
        json!({"name": "t", "team": {"sequence": []}}),
    ] {
        assert!(!schema.is_valid(&bad), "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_example_teams_run_without_a_key() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/agents/teams"));
    for (name, text) in [("release.yaml", "The change is built and tested."), ("panel.yaml", "")] {
        let loaded = Loader::new().load_file(folder.join(name)).unwrap_or_else(|e| panic!("{e}"));
        let LoadedFile::Team(team) = loaded else { panic!("{name}: a team") };
        assert!(!team.description().is_empty(), "{name}");
        let team = team.into_team().await.unwrap_or_else(|e| panic!("{e}"));
        let end = team.run("Should we build a parser?").await.expect("runs");
        assert_eq!(end.reason, TeamEndReason::Finished, "{name}: {end:?}");
        assert!(end.text.contains(text) && !end.text.is_empty(), "{name}: {}", end.text);
    }
}

#[test]
fn a_script_that_is_none_is_refused() {
    for (options, why) in [
        ("{}", "its option 'turns' is a list of answers"),
        ("{turns: []}", "its option 'turns' is a list of answers"),
        ("{turns: [{say: hi}]}", "an answer is a text, or a map of 'text' and 'calls'"),
        ("{turns: [hi], loop: true}", "unknown option 'loop'"),
    ] {
        let text = format!("{{name: a, model: {{name: 'offline:script', options: {options}}}}}");
        let told = super::wrong(&text);
        assert!(told.contains(why), "{options}: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn agents_of_nexau_are_the_leader_and_the_members_of_a_team() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writes");
    let llm = "llm_config: {model: gpt-5, base_url: 'https://llm.example', api_key: '${env.SECRET}', api_type: openai_chat_completion}";
    write("leader.yaml", &format!("type: agent\nname: team_leader\nsystem_prompt: You lead.\n{llm}\n"));
    write(
        "builder.yaml",
        &format!("type: agent\nname: builder\ndescription: Builds.\nsystem_prompt: You build.\n{llm}\n"),
    );
    write("team.yaml", "{name: nexau_building_team, team: {leader: leader.yaml, members: {builder: builder.yaml}}}");
    let loaded = loader().every_model("small").load_file(folder.path().join("team.yaml"));
    let LoadedFile::Team(team) = loaded.unwrap_or_else(|e| panic!("{e}")) else { panic!("a team") };
    let team = team.into_team().await.unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<_> = team.leader().expect("a leader").tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names.iter().filter(|name| *name == "spawn_teammate").count(), 1, "{names:?}");
    let end = team.run("Build it.").await.expect("runs");
    assert_eq!(end.reason, TeamEndReason::Quiescent);
}
