//! Columns as the migrations write them: one that must have a value by its type's name, one that need not with `_null` behind.
use sea_orm::sea_query::{ColumnDef, IntoIden};

macro_rules! columns {
    ($($name:ident: $type:ident, $null:ident;)*) => {$(
        pub fn $name(name: impl IntoIden) -> ColumnDef {
            ColumnDef::new(name).$type().$null().take()
        }
    )*};
}

columns! {
    big_integer: big_integer, not_null;
    big_integer_null: big_integer, null;
    boolean: boolean, not_null;
    double_null: double, null;
    integer: integer, not_null;
    integer_null: integer, null;
    json_binary: json_binary, not_null;
    json_binary_null: json_binary, null;
    text: text, not_null;
    text_null: text, null;
    uuid: uuid, not_null;
    uuid_null: uuid, null;
}
