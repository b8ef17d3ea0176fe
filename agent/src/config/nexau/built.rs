//! Tests that build the translated parts.

use std::sync::Arc;

use serde_json::{Value, json};

use super::translate;
use crate::{
    Agent, Middleware, Model,
    middleware::{Builtin, Permissions, permissions::Policy},
    testing::ScriptedModel,
};

/// The configurations of the middlewares of these keys, in their order.
fn middleware(keys: Value) -> Vec<(String, Value)> {
    let mut file = json!({"name": "a", "llm_config": {"model": "m", "api_type": "anthropic_chat_completion"}});
    if let Value::Object(keys) = keys {
        file.as_object_mut().expect("an object").extend(keys);
    }
    let (agent, _) = translate(file);
    let entry = |entry: &Value| match entry {
        Value::String(name) => (name.clone(), Value::Null),
        entry => {
            let (name, config) = entry.as_object().and_then(|entry| entry.iter().next()).expect("one name");
            (name.clone(), config.clone())
        }
    };
    agent["middleware"].as_array().expect("a list").iter().map(entry).collect()
}

/// Returns the policy of calls in the translated file.
fn permissions(keys: Value) -> impl Fn(&str, Value) -> Policy {
    let (_, config) = middleware(keys).into_iter().find(|(name, _)| name == "approval").expect("permissions");
    let permissions: Permissions = serde_json::from_value(config["permissions"].clone()).expect("permissions");
    move |tool, arguments| permissions.decide(tool, &arguments).policy
}

fn tool(name: &str, of: &str, permissions: Value) -> Value {
    let binding = format!("nexau.archs.tool.builtin.{of}");
    let mut tool = json!({"name": name, "yaml_path": "t.yaml", "binding": binding});
    if !permissions.is_null() {
        tool["permissions"] = permissions;
    }
    tool
}

#[test]
fn a_tool_with_permissions_is_allowed_denied_or_asked_about_and_others_run() {
    let decide = permissions(json!({
        "tools": [
            tool("read_file", "file_tools:read_file", Value::Null),
            tool("write_file", "file_tools:write_file", json!({"allow": ["src/**", "*.md", "doc/", "!src/gen"], "deny": ["**/.env", "secrets/", "/etc"]})),
            tool("replace", "file_tools:replace", json!({"allow": [], "deny": []})),
            tool("web_fetch", "web_tools:web_fetch", json!({"allow": ["docs.rs", "*.acme.example"], "deny": ["evil.example"]})),
            {"name": "send", "yaml_path": "s.yaml", "binding": "acme:send", "permissions": {"allow": ["**"]}},
        ],
        "mcp_servers": [
            {"name": "open", "type": "http", "url": "https://a.example"},
            {"name": "shut", "type": "http", "url": "https://b.example",
                "permissions": {"allow": ["mcp__shut__look"], "deny": ["mcp__shut__drop"]}},
        ],
        "sub_agents": [{"name": "b", "config_path": "b.yaml"}],
    }));
    for (tool, arguments, policy) in [
        ("read_file", json!({"path": "/etc/passwd"}), Policy::Allow),
        ("write_file", json!({"path": "src/a.rs"}), Policy::Allow),
        ("write_file", json!({"path": "deep/notes.md"}), Policy::Allow),
        ("write_file", json!({"path": "doc/a/b.txt"}), Policy::Allow),
        ("write_file", json!({"path": "src/gen/a.rs"}), Policy::Ask),
        ("write_file", json!({"path": "src/secrets/a.rs"}), Policy::Deny),
        ("write_file", json!({"path": "/etc/passwd"}), Policy::Deny),
        ("write_file", json!({"path": "src/../b.rs"}), Policy::Ask),
        ("write_file", json!({"path": "src/.env"}), Policy::Deny),
        ("edit_file", json!({"path": "src/a.rs"}), Policy::Ask),
        ("web_fetch", json!({"url": "https://docs.rs/serde"}), Policy::Allow),
        ("web_fetch", json!({"url": "https://docs.rs.evil.net/"}), Policy::Ask),
        ("web_fetch", json!({"url": "https://a.acme.example/"}), Policy::Ask),
        ("web_fetch", json!({"url": "https://x.evil.example/"}), Policy::Deny),
        ("send", json!({}), Policy::Allow),
        ("open_anything", json!({}), Policy::Allow),
        ("shut_look", json!({}), Policy::Allow),
        ("shut_drop", json!({}), Policy::Deny),
        ("shut_other", json!({}), Policy::Ask),
        ("Agent", json!({"agent": "b"}), Policy::Allow),
        ("unheard_of", json!({}), Policy::Ask),
    ] {
        assert_eq!(decide(tool, arguments.clone()), policy, "{tool} {arguments}");
    }
}

#[cfg(feature = "shell")]
#[test]
fn no_trick_of_a_shell_gets_past_the_permissions_of_commands() {
    let decide = permissions(json!({"tools": [
        tool("sh", "shell_tools:run_shell_command", json!({"allow": ["git log", "ls", "echo"], "deny": ["rm"]})),
        // Without permissions of its own, and the same tool here.
        tool("run_code_tool", "run_code_tool:run_code_tool", Value::Null),
    ]}));
    let bash = |line: &str| decide("bash", json!({"command": line}));
    assert_eq!((bash("git log --oneline"), bash("cargo test")), (Policy::Allow, Policy::Ask));
    for line in ["rm -rf x", "ls\nrm -rf x", "ls & rm -rf x", "echo $(rm -rf x)"] {
        assert_eq!(bash(line), Policy::Deny, "{line}");
    }
    for line in ["echo hi>/etc/passwd", "cat `rm x`", "find . -delete", "git branch -D main", "git log --output=f"] {
        assert_ne!(bash(line), Policy::Allow, "{line}");
    }
    assert_eq!(decide("bash_input", json!({"input": "rm -rf x\n"})), Policy::Ask, "into a program that runs");
}

#[test]
fn the_middlewares_are_made_and_stand_in_an_order_that_works() {
    let import =
        |class: &str, params: Value| json!({"import": format!("nexau.archs.main_sub.m:{class}"), "params": params});
    let all = middleware(json!({
        "max_iterations": 9,
        "max_context_tokens": 100_000,
        "middlewares": [
            import("RoundAndTokenReminderMiddleware", json!({"max_context_tokens": 1000, "desired_max_tokens": 100})),
            import("ContextCompactionMiddleware", json!({"compaction_strategy": "llm_summary", "threshold": 0.8})),
            import("LongToolOutputMiddleware", json!({"max_output_chars": 200, "head_chars": 100, "tail_chars": 100})),
            import("RuntimeEnvironmentMiddleware", json!({})),
            import("LoggingMiddleware", json!({"tool_preview_chars": 50, "log_model_calls": true})),
        ],
        "tools": [
            tool("todos", "session_tools:write_todos", Value::Null),
            {"name": "late", "yaml_path": "l.yaml", "binding": "acme:late", "defer_loading": true, "permissions": {}},
        ],
        "tracers": [{"import": "nexau.archs.tracer.adapters.langfuse:LangfuseTracer"}],
        "sub_agents": [{"name": "b", "config_path": "b.yaml"}],
    }));
    let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
    let order = "logging long_tool_output delegation runtime_environment todo_list tool_search approval context_compaction \
                 prompt_caching reminders telemetry";
    assert_eq!(names.join(" "), order);
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::new([]));
    let made = all.into_iter().filter_map(|(name, config)| {
        let builtin = Builtin::find(&name).filter(|_| cfg!(feature = "telemetry") || name != "telemetry")?;
        Some(builtin.make(config, &model, &[]).unwrap_or_else(|e| panic!("{name}: {e}")))
    });
    let made: Vec<Arc<dyn Middleware>> = made.collect();
    assert!(made.len() >= 10);
    Agent::builder("a", model.clone()).middlewares(made).build().expect("it can work");
}
