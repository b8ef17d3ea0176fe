//! Documents, and the tools generated from them.

use std::time::Duration;

use agent_core::{Effect, ErrorKind, Tool};
use agent_tools::openapi::OpenApi;
use serde_json::{Value, json};

use super::api;

pub(crate) const PETS: &str = r##"
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers:
  - url: "{scheme}://pets.example.org/v1"
    variables: {scheme: {default: https}}
security: [{key: []}]
paths:
  /pets:
    parameters:
      - {$ref: "#/components/parameters/Limit"}
    get:
      operationId: listPets
      summary: Lists pets
      description: All pets, newest first.
      tags: [pets, reading]
      parameters:
        - {name: page, in: query, schema: {type: integer}}
        - {name: "filter[kind]", in: query, style: form, explode: false, schema: {type: array, items: {type: string}}}
    post:
      operationId: createPet
      tags: [pets]
      requestBody: {$ref: "#/components/requestBodies/Pet"}
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}}
    get: {operationId: get pet!, tags: [pets, reading], security: []}
    put:
      operationId: replacePet
      tags: [pets]
      requestBody: {$ref: "#/components/requestBodies/Pet"}
    delete: {operationId: deletePet, deprecated: true}
    patch:
      parameters:
        - {name: Idempotency-Key, in: header, required: true, schema: {type: string}}
        - {name: id, in: query, schema: {type: integer}}
        - {name: X-Key, in: header, schema: {type: string}}
        - {name: Authorization, in: header, schema: {type: string}}
      requestBody:
        content: {application/merge-patch+json: {schema: {type: object, additionalProperties: true}}}
  /upload:
    post:
      operationId: upload
      requestBody: {required: true, content: {multipart/form-data: {schema: {type: object}}}}
  /secret:
    get: {operationId: secret, security: [{other: []}]}
components:
  parameters:
    Limit: {name: limit, in: query, description: At most so many., schema: {type: integer, minimum: 0, exclusiveMinimum: true, maximum: 100}}
  requestBodies:
    Pet: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: string, readOnly: true}
        name: {type: string, pattern: "^[A-Z](?=x)", example: Ada}
        nick: {type: string, nullable: true}
        parent: {$ref: "#/components/schemas/Pet"}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    other: {type: http, scheme: bearer}
"##;

#[test]
fn operations_become_tools_with_valid_names_and_the_effects_of_their_methods() {
    let pets = OpenApi::builder(PETS).secret("key", "hush-hush").build().expect("builds");
    let tools = pets.tools().into_tools().expect("names are unique");
    let seen: Vec<_> = tools.iter().map(|tool| (tool.spec().name, tool.options().effect)).collect();
    let expected = [
        ("listPets", Effect::Pure),
        ("createPet", Effect::AtMostOnce),
        ("get_pet", Effect::Pure),
        ("replacePet", Effect::Idempotent),
        ("patch_pets_id", Effect::Idempotent),
        ("deletePet", Effect::Idempotent),
    ];
    let seen: Vec<_> = seen.iter().map(|(name, effect)| (name.as_str(), *effect)).collect();
    assert_eq!(seen, expected);
    let left_out = pets.left_out();
    assert!(left_out[0].starts_with("GET /secret: it needs a secret for other"), "{left_out:?}");
    assert!(left_out[1].starts_with("POST /upload: its body is 'multipart/form-data'"), "{left_out:?}");
    assert_eq!(pets.tools().name(), "Pets");
}

#[test]
fn what_the_document_says_is_what_the_model_is_told() {
    let pets = OpenApi::builder(PETS).secret("key", "hush-hush").build().expect("builds");
    let tools = pets.tools().into_tools().expect("tools");
    let spec = |name: &str| tools.iter().map(Tool::spec).find(|spec| spec.name == name).expect("the tool");
    let list = spec("listPets");
    let said = "Lists pets. All pets, newest first.\nRequest: GET /pets\nResults come in pages: call again with `page` to go on.";
    assert_eq!(list.description, said);
    let expected = json!({"type": "object", "properties": {
        "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 100, "description": "At most so many."},
        "page": {"type": "integer"},
        "filter_kind": {"type": "array", "items": {"type": "string"}},
    }});
    assert_eq!(list.parameters, expected);
    let create = spec("createPet").parameters;
    assert_eq!(create["required"], json!(["name"]), "what only comes back is not sent");
    let expected = json!({
        "name": {"type": "string", "description": "(pattern: \"^[A-Z](?=x)\"; example: \"Ada\")"},
        "nick": {"type": ["string", "null"]},
        "parent": {"description": "As Pet."},
        "limit": list.parameters["properties"]["limit"],
    });
    assert_eq!(create["properties"], expected);
    assert!(spec("deletePet").description.ends_with("Deprecated: use another tool if one does the same."));
    let patch = spec("patch_pets_id").parameters;
    let names: Vec<_> = patch["properties"].as_object().expect("properties").keys().collect();
    assert_eq!(names, ["body", "id", "id_query"], "neither the key nor what proves who asks is the model's");
    for tool in &tools {
        assert!(!format!("{:?}", tool.spec()).contains("hush-hush"));
    }
    assert!(!format!("{pets:?}").contains("hush-hush"));
}

#[test]
fn operations_are_chosen_by_tag_id_and_request() {
    let names = |api: agent_tools::openapi::OpenApiBuilder| {
        api.secret("key", "hush-hush").build().expect("builds").tools().names()
    };
    assert_eq!(names(OpenApi::builder(PETS).tag("reading")), ["listPets", "get_pet"]);
    assert_eq!(names(OpenApi::builder(PETS).operation("createPet")), ["createPet"]);
    assert_eq!(
        names(OpenApi::builder(PETS).operation("PATCH /pets/{id}").tag("reading")),
        ["listPets", "get_pet", "patch_pets_id"]
    );
}

#[test]
fn what_cannot_work_is_refused_when_it_is_built() {
    let with = |paths: Value| {
        json!({"openapi": "3.1.0", "servers": [{"url": "https://a.example"}], "paths": paths}).to_string()
    };
    let get = |operation: Value| with(json!({"/x": {"get": operation}}));
    let parameter = |parameter: Value| get(json!({"operationId": "x", "parameters": [parameter]}));
    let pets = || OpenApi::builder(PETS).secret("key", "hush-hush");
    let cases = [
        (OpenApi::builder("{"), "cannot be read as JSON"),
        (OpenApi::builder("a: [b"), "cannot be read as YAML"),
        (OpenApi::builder(""), "no field 'openapi'"),
        (OpenApi::builder(r#"{"swagger": "2.0"}"#), "Swagger 2"),
        (OpenApi::builder(r#"{"openapi": "4.0"}"#), "OpenAPI 4.0"),
        (OpenApi::builder(with(json!({}))), "has no operations"),
        (pets().operation("noSuch"), "there are: listPets"),
        (pets().tag("none"), "has the tag 'none'"),
        (pets().operation("upload"), "multipart/form-data"),
        (pets().operation("secret"), ".secret("),
        (pets().secret("kye", "x"), "there are: key, other"),
        (OpenApi::builder(PETS).secret("key", ""), "is empty"),
        (OpenApi::builder(PETS).secret("key", "a\nb"), "is empty, or holds"),
        (OpenApi::builder(PETS).operation("createPet"), "it needs a secret for key"),
        (pets().server("pets.example"), "not the address of a server"),
        (pets().server("https://u:p@pets.example"), "not the address of a server"),
        (pets().allow_private("x"), "is not an address"),
        (pets().timeout(Duration::ZERO), "no time"),
        (OpenApi::builder(r#"{"openapi": "3.0.0", "paths": {"/x": {"get": {}}}}"#), "names no server"),
        (
            OpenApi::builder(r#"{"openapi": "3.0.0", "servers": [{"url": "/v1"}], "paths": {"/x": {"get": {}}}}"#),
            "is not an address",
        ),
        (
            OpenApi::builder(PETS.replace("default: https", "default: http")).secret("key", "hush-hush"),
            "is not encrypted",
        ),
        (OpenApi::builder(parameter(json!({"$ref": "#/components/parameters/X"}))).operation("x"), "leads to nothing"),
        (OpenApi::builder(parameter(json!({"$ref": "other.yaml#/X"}))).operation("x"), "bundle the document"),
        (OpenApi::builder(parameter(json!({"name": "a", "in": "body"}))).operation("x"), "is in 'body'"),
        (OpenApi::builder(parameter(json!({"name": "a b", "in": "header"}))).operation("x"), "is no header"),
        (
            OpenApi::builder(parameter(json!({"name": "a", "in": "path", "style": "matrix"}))).operation("x"),
            "style 'matrix'",
        ),
    ];
    for (builder, why) in cases {
        let e = builder.build().expect_err(why);
        assert!(e.kind() == ErrorKind::Config && e.message().contains(why), "{why}: {e}");
        assert!(!format!("{e:?}").contains("hush-hush"));
    }
}

#[test]
fn a_server_of_the_document_may_be_anywhere_only_if_it_is_allowed() {
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "http://127.0.0.1:1"}], "paths": {"/x": {"get": {"operationId": "x"}}}});
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let refused = |builder: agent_tools::openapi::OpenApiBuilder| {
        let tool = builder.build().expect("builds").tools().into_iter().next().expect("a tool");
        runtime.block_on(api(&*tool, json!({}))).expect_err("nobody is there")
    };
    assert!(refused(OpenApi::builder(document.to_string())).contains("not on the public internet"));
    assert!(
        refused(OpenApi::builder(document.to_string()).allow_private("127.0.0.1:1")).contains("cannot be connected to")
    );
    assert!(
        refused(OpenApi::builder(document.to_string()).server("http://127.0.0.1:1")).contains("cannot be connected to")
    );
}
