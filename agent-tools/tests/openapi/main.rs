//! Tools from OpenAPI documents.
