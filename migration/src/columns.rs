//! Columns as the migrations write them: one that must have a value by its type's name, one that need not with `_null` behind.
use sea_orm::sea_query::{ColumnDef, IntoIden};

macro_rules! columns {
    ($($name:ident, $null:ident: $type:ident;)*) => {$(
        #[allow(dead_code, reason = "not every type has been wanted both ways")]
        pub fn $name(name: impl IntoIden) -> ColumnDef {
            ColumnDef::new(name).$type().not_null().take()
        }

        #[allow(dead_code, reason = "not every type has been wanted both ways")]
        pub fn $null(name: impl IntoIden) -> ColumnDef {
            ColumnDef::new(name).$type().null().take()
        }
    )*};
}

columns! {
    big_integer, big_integer_null: big_integer;
    boolean, boolean_null: boolean;
    double, double_null: double;
    integer, integer_null: integer;
    json_binary, json_binary_null: json_binary;
    text, text_null: text;
    uuid, uuid_null: uuid;
}
