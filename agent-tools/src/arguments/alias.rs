//! Renames aliases of parameters to the declared names.

use serde_json::Value;

use super::shape::Shape;

impl<'a> Shape<'a> {
    /// Renames aliases of properties, in a value of the root and everything nested in it; returns
    /// the aliases that were found. A property's own name is not an alias, and an alias is kept if
    /// the property is present too.
    pub(super) fn rename(self, value: &mut Value, aliases: &[(String, String)]) -> Vec<String> {
        let mut found = Vec::new();
        if !aliases.is_empty() {
            self.rename_in(value, &[self.root()], aliases, &mut found);
        }
        found
    }

    fn rename_in(
        self,
        value: &mut Value,
        schemas: &[&'a Value],
        aliases: &[(String, String)],
        found: &mut Vec<String>,
    ) {
        match value {
            _ if schemas.is_empty() => {}
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    self.rename_in(item, &self.of_item(schemas, i), aliases, found);
                }
            }
            Value::Object(fields) => {
                for (alias, name) in aliases {
                    let is_meant = fields.contains_key(alias) && !fields.contains_key(name);
                    if is_meant && self.has_property(schemas, name) && !self.has_property(schemas, alias) {
                        let value = fields.remove(alias).expect("it is there");
                        fields.insert(name.clone(), value);
                        found.push(format!("'{alias}'"));
                    }
                }
                for (name, field) in fields {
                    self.rename_in(field, &self.of_property(schemas, name), aliases, found);
                }
            }
            _ => {}
        }
    }

    fn has_property(self, schemas: &[&'a Value], name: &str) -> bool {
        let mut parts = schemas.iter().flat_map(|schema| self.parts(schema));
        parts.any(|part| part.get("properties").is_some_and(|properties| properties.get(name).is_some()))
    }
}
