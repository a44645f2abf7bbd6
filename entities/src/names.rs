//! Names that begin with what somebody typed, and addresses that are it.
use sea_orm::{
    ColumnTrait, Condition,
    sea_query::{Expr, ExprTrait, Func, LikeExpr},
};
use std::collections::BTreeSet;

/// Is it this address, in any case? Word for word what the indexes are for: only where there is one.
pub fn is_email<C: ColumnTrait>(column: C, spellings: &[String]) -> Condition {
    let lower = Expr::from(Func::lower(column.into_expr()));
    Condition::all()
        .add(column.is_not_null())
        .add(lower.is_in(spellings.iter().map(String::as_str)))
}

/// In whatever case. Databases differ in which letters they know to have two; it is asked for in the ways in which they may write it.
pub fn begins(name: &Expr, typed: &str) -> Condition {
    let literal: String = typed
        .chars()
        .flat_map(|letter| ['\\', letter].into_iter().skip(usize::from(!"\\%_".contains(letter))))
        .collect();
    let spellings = BTreeSet::from([
        literal.to_lowercase(),
        literal.to_ascii_lowercase(),
        literal.to_uppercase().to_ascii_lowercase(),
    ]);
    let lower = || Expr::from(Func::lower(name.clone()));
    let like = |spelling: String| lower().like(LikeExpr::new(format!("{spelling}%")).escape('\\'));
    spellings.into_iter().map(like).fold(Condition::any(), Condition::add)
}
