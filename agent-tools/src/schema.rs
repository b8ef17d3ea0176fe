//! JSON Schemas of types, kept compact since they are part of every model call.

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::Value;

/// Returns the schema of a type that holds all arguments.
pub(crate) fn of_arguments<A: JsonSchema>() -> Value {
    // The type's doc comment is for readers of the code, not for the model.
    of_type::<A>().0
}

/// Returns the schema of a tool's serialised output.
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None).for_serialize();
    let mut schema = generator.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    lean(schema)
}

/// Returns the schema of a type, and its doc comment.
pub(crate) fn of_type<T: JsonSchema>() -> (Value, Option<String>) {
    let mut schema = generator().into_root_schema_for::<T>();
    schema.remove("title");
    let description = schema.remove("description").and_then(|text| text.as_str().map(str::to_owned));
    (lean(schema), description)
}

pub(crate) fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None).into_generator()
}

/// Removes the formats of numbers: `int64` and the like do not help a model, and some providers
/// reject them.
pub(crate) fn lean(mut schema: Schema) -> Value {
    let mut without_formats = RecursiveTransform(|schema: &mut Schema| {
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        if format.trim_start_matches('u').starts_with("int") || matches!(format, "float" | "double") {
            schema.remove("format");
        }
    });
    without_formats.transform(&mut schema);
    schema.to_value()
}
