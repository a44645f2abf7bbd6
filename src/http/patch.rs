//! How a JSON merge patch reads in the OpenAPI document.
use schemars::SchemaGenerator;

/// Any part of a `T`: what a JSON merge patch may hold.
pub struct Patch<T>(std::marker::PhantomData<T>);

impl<T: schemars::JsonSchema> schemars::JsonSchema for Patch<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}Patch", T::schema_name()).into()
    }
    /// Several resources have `Settings` of their own.
    fn schema_id() -> std::borrow::Cow<'static, str> {
        format!("Patch<{}>", T::schema_id()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        let mut schema = T::json_schema(generator);
        schema.remove("required");
        schema
    }
}
