//! Files of NexAU, through the loader.

use std::fs;

use agent::{
    config::{DifferenceKind, Loader},
    testing::ScriptedModel,
};

use super::{loader, loader_of};

/// A folder with an agent file that begins as all of these do, and what its keys refer to.
fn folder(keys: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let head =
        "type: agent\nname: helper\nllm_config: {model: m, base_url: 'http://127.0.0.1:1', api_key: '${env.SECRET}'}\n";
    for (name, text) in [
        ("agent.yaml", format!("{head}{keys}")),
        ("other.yaml", head.replace("helper", "other") + "description: Helps.\n"),
        ("prompts/p.md", "Be {{ tone }}.\n".to_owned()),
        ("prompts/q.md", "Be brief.\n".to_owned()),
        ("skills/a/SKILL.md", "---\nname: a\ndescription: Helps.\n---\nDo it.\n".to_owned()),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("makes it");
        fs::write(path, text).expect("writes");
    }
    folder
}

fn wrong(keys: &str) -> String {
    loader().load(folder(keys).path().join("agent.yaml")).expect_err("is wrong").to_string()
}

#[test]
fn prompts_in_files_are_put_in() {
    for (keys, prompt) in [
        ("system_prompt: ./prompts/p.md\nsystem_prompt_type: jinja\n", "Be {{ tone }}."),
        ("system_prompt: ${this_file_dir}/prompts/q.md\nsystem_prompt_type: file\n", "Be brief."),
        (
            "system_prompt: [prompts/p.md, prompts/q.md]\nsystem_prompt_type: file\nsystem_prompt_suffix: ' Now.'\n",
            "Be {{ tone }}.\n\nBe brief. Now.",
        ),
        ("variables: {team: {lead: Ada}}\nsystem_prompt: For ${variables.team.lead}.\n", "For Ada."),
    ] {
        let files = folder(keys);
        let loaded = loader().load(files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(serde_json::to_value(&loaded.definition().system_prompt).expect("is data"), prompt, "{keys}");
    }
}

#[test]
fn a_problem_of_a_translated_file_stands_at_its_place() {
    let told = wrong("sub_agents:\n  - {name: b, config_path: none.yaml}\n");
    assert!(told.contains("agent.yaml:5:28: the file ") && told.contains("cannot be read"), "{told}");
}

#[test]
fn a_part_in_python_is_the_programs_and_what_the_program_lacks_is_refused_or_left_out() {
    let keys = "tools:\n  - {name: add, yaml_path: t.yaml, binding: 'acme:add', extra_kwargs: {b: 2}}\n  - {name: mail, yaml_path: t.yaml, binding: 'acme:mail', permissions: {allow: ['**']}}\nstop_tools: [mail, add]\nmiddlewares:\n  - import: acme.hooks:AuditMiddleware\n";
    let told = wrong(keys);
    assert!(
        !told.contains("acme:add") && told.contains("agent.yaml:6:46: ") && told.contains("AuditMiddleware"),
        "{told}"
    );
    let loaded = loader().lenient().load(folder(keys).path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    let left_out = loaded.differences().iter().filter(|it| it.kind == DifferenceKind::Impossible);
    let left_out: Vec<_> = left_out.map(|it| it.path.as_str()).collect();
    assert_eq!(left_out, ["/tools/1/binding", "/middlewares/0/import"]);
    let agent = loaded.into_builder().build().expect("builds");
    assert_eq!(agent.tools().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["add"]);
    assert!(agent.tools()[0].parameters.pointer("/properties/b").is_none(), "the file gives it");
}

/// Forms of agent files in NexAU's documentation; `T` is the module of its tools, and `M` that of its middlewares.
const FORMS: [&str; 16] = [
    "description: Helps.\nmax_iterations: 20\nmax_context_tokens: 100000\nretry_attempts: 3\ntimeout: 600\n",
    "tool_call_mode: xml\n",
    "tool_call_mode: structured\n",
    "system_prompt:\n  - {content: One., cache: true}\n  - {content: Two., cache: false}\n",
    "context: {user: Ada}\nsystem_prompt: For {{ user }}.\n",
    "initial_state: {k: 1}\ninitial_config: {k: 1}\n",
    "tools:\n  - {name: read_file, yaml_path: t, binding: 'T.file_tools:read_file'}\n  - {name: write_file, yaml_path: t, binding: 'T.file_tools:write_file', permissions: {allow: ['src/**'], deny: [secrets/]}}\n",
    "tools:\n  - {name: web_search, yaml_path: t, binding: 'T.web_tools:google_web_search'}\n  - {name: web_fetch, yaml_path: t, binding: 'T.web_tools:web_fetch', lazy: true}\n",
    "tools:\n  - {name: complete_task, yaml_path: t, binding: 'T.session_tools:complete_task'}\nstop_tools: [complete_task]\n",
    "tools:\n  - {name: write_todos, yaml_path: t, binding: 'T.session_tools:write_todos', defer_loading: false}\n  - {name: ask_user, yaml_path: t, binding: 'T.session_tools:ask_user'}\n",
    "sub_agents:\n  - {name: other, config_path: ./other.yaml}\nmax_running_subagents: 2\n",
    "skills: [./skills]\n",
    "mcp_servers:\n  - {name: fs, type: stdio, command: echo, args: [-y], env: {A: b}, timeout: 30}\n  - {name: far, type: http, url: 'http://127.0.0.1:1', headers: {A: b}}\n",
    "middlewares:\n  - import: M.context_compaction:ContextCompactionMiddleware\n    params: {threshold: 0.75, compaction_strategy: tool_result_compaction}\n  - import: M.long_tool_output:LongToolOutputMiddleware\n    params: {max_output_chars: 100, head_chars: 50, tail_chars: 50}\n",
    "middlewares:\n  - import: M.llm_failover:LLMFailoverMiddleware\n    params: {fallback_providers: [{name: b, llm_config: {model: b, api_type: anthropic_chat_completion}}]}\n",
    "tracers:\n  - import: nexau.archs.tracer.adapters.langfuse:LangfuseTracer\n    params: {}\n",
];

#[test]
fn the_documented_forms_of_files_are_read_strictly_and_make_agents() {
    for form in FORMS {
        let form =
            form.replace("T.", "nexau.archs.tool.builtin.").replace("M.", "nexau.archs.main_sub.execution.middleware.");
        let files = folder(&form);
        let loader: Loader = loader_of(&ScriptedModel::new([]));
        let loaded = loader.load(files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{form}\n{e}"));
        assert!(loaded.differences().iter().all(|it| it.kind != DifferenceKind::Impossible), "{form}");
        loaded.into_builder().build().unwrap_or_else(|e| panic!("{form}\n{e}"));
    }
}

/// Loads a file of NexAU with NexAU's own environment variables.
fn with_variables(path: &std::path::Path) -> Result<agent::config::Loaded, agent::config::Problems> {
    let environment = |name: &str| {
        let value = match name {
            "LLM_MODEL" => "qwen",
            "LLM_BASE_URL" => "http://127.0.0.1:1/v1",
            "LLM_API_KEY" => "sk-1",
            _ => return None,
        };
        Some(value.to_owned())
    };
    Loader::new().environment(environment).load(path)
}

fn file(text: &str) -> tempfile::TempDir {
    let folder = folder("");
    fs::write(folder.path().join("agent.yaml"), text).expect("writes");
    folder
}

#[test]
fn several_skills_are_one_set_of_tools() {
    let files = folder("skills: [./skills/a, ./skills/b]\n");
    fs::create_dir(files.path().join("skills/b")).expect("makes it");
    fs::write(files.path().join("skills/b/SKILL.md"), "---\nname: b\ndescription: Helps.\n---\nDo it.\n")
        .expect("writes");
    let loaded = loader().load(files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    let agent = loaded.into_builder().build().expect("builds");
    assert!(agent.tools().iter().any(|tool| tool.name == "load_skill"));
}

#[test]
fn a_sub_agent_without_a_description_has_one_and_a_difference_says_so() {
    let files = folder("sub_agents:\n  - {name: other, config_path: other.yaml}\n");
    let other = fs::read_to_string(files.path().join("other.yaml")).expect("reads");
    fs::write(files.path().join("other.yaml"), other.replace("description: Helps.\n", "")).expect("writes");
    let loaded = loader().load(files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    assert!(loaded.definition().sub_agents["other"].description.contains("other"));
    assert!(loaded.differences().iter().any(|it| it.nexau.contains("without a description")));
}

#[test]
fn variables_that_nexau_reads_are_read_where_the_file_says_nothing() {
    let files = file("type: agent\nname: a\nllm_config: {temperature: 0}\n");
    let loaded = with_variables(&files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    let addresses: Vec<_> = loaded.model_addresses().collect();
    assert_eq!(addresses, [("openai:qwen@chat", Some("http://127.0.0.1:1/v1"))]);
    assert!(loaded.differences().iter().all(|it| !it.path.starts_with("/llm_config")), "{:?}", loaded.differences());
}

#[test]
fn a_file_with_llm_config_is_one_of_nexau_without_a_type_too() {
    let files = file("name: a\nllm_config: {model: m}\nmax_iterations: 3\n");
    let loaded = with_variables(&files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.definition().max_steps, 3);
}

#[test]
fn what_is_no_agent_and_what_is_misspelt_is_named_with_its_place_and_the_nearest_word() {
    let head =
        "type: agent\nname: a\nllm_config: {model: m, base_url: 'http://127.0.0.1:1', api_key: '${env.LLM_API_KEY}'}\n";
    for (text, told) in [
        ("type: plugin\nname: a\ntools: []\n".to_owned(), &["agent.yaml:1:7: this is a plugin of NexAU"][..]),
        ("type: tool\nname: a\ninput_schema: {}\n".to_owned(), &["agent.yaml:1:7: this is a tool of NexAU"]),
        ("type: agnet\nname: a\n".to_owned(), &["agent.yaml:1:7: unknown type 'agnet'", "did you mean 'agent'?"]),
        (
            format!("{head}max_iteration: 3\n"),
            &["agent.yaml:4:16: unknown key 'max_iteration'", "did you mean 'max_iterations'?"],
        ),
        (
            format!("{head}tools:\n  - {{name: x, yaml_path: t, bindng: 'a:b'}}\n"),
            &["unknown key 'bindng'", "did you mean 'binding'?"],
        ),
        (format!("{head}middlewares:\n  - {{type: x}}\n"), &["requires the key 'import'"]),
        (
            "type: agent\nname: a\ndescription: A.\nllm_config:\n  temperature: 1\n  model: ${env.NO_MODEL}\n"
                .to_owned(),
            &["agent.yaml:6:10: the environment variable NO_MODEL is not set"],
        ),
    ] {
        let problems = with_variables(&file(&text).path().join("agent.yaml")).expect_err(&text).to_string();
        assert!(told.iter().all(|told| problems.contains(told)), "{text}\n{problems}");
    }
}

#[test]
fn parameters_that_may_be_misspelt_and_stop_tools_that_are_missing_are_differences() {
    let files = file(
        "type: agent\nname: a\nllm_config: {model: m, temprature: 0, top_k: 5}\nstop_tools: [nobody]\nvariables: {api: anthropic_chat_completion}\n",
    );
    let loaded = with_variables(&files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    let told: Vec<_> = loaded.differences().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|it| it.contains("did you mean 'temperature'?")), "{told:?}");
    assert!(told.iter().all(|it| !it.contains("top_p")), "{told:?}");
    assert!(told.iter().any(|it| it.contains("agent.yaml:4:14: ") && it.contains("stop tool")), "{told:?}");
    loaded.into_builder().build().expect("builds");
}

#[test]
fn an_api_type_of_a_variable_is_followed() {
    let files = file(
        "type: agent\nname: a\nvariables: {api: '${env.NO_API:-anthropic_chat_completion}'}\nllm_config: {model: m, api_type: '${variables.api}'}\n",
    );
    let loaded = with_variables(&files.path().join("agent.yaml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.definition().model.name, "anthropic:m@messages");
}
